//! Writes the audit in batches.
//!
//! Two tasks. One inserts the rows of calls that wait to go out: whatever has gathered while the last statement ran goes
//! into the next one, so that many calls share one commit. The other writes ends every [`FLUSH`] or [`BATCH`] rows.

use std::{sync::Arc, time::Duration};

use gatehouse_types::backoff::Backoff;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Ended, Started};
use crate::store::{ANSWER_WITHIN, DbError, Pool, calls_write, no_answer, within};

/// How long an end may wait for others.
pub const FLUSH: Duration = Duration::from_millis(200);
/// Most rows in one statement.
pub const BATCH: usize = 1_000;
/// Most ends that wait; more make calls wait.
pub const QUEUE: usize = 20_000;
/// How long a closing writer may take for what is left.
const DRAIN: Duration = Duration::from_secs(10);
/// How long one write of ends may take before it is tried again on another connection. The database ends a statement earlier.
const WRITE_WITHIN: Duration = Duration::from_secs(40);
const RETRY: Backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(5) };

/// What the audit says of a call that wants to go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// The row is on disk.
    Recorded,
    /// Something has changed since the decision: decide anew.
    Stale,
    /// The database did not take it: the call must not go out.
    Failed,
}

/// The way into the writer. Cheap to clone; the writer ends when the last one is gone.
#[derive(Clone)]
pub struct Writer {
    begins: mpsc::Sender<Begin>,
    ends: mpsc::Sender<Entry>,
}

/// The tasks behind a [`Writer`].
pub struct Tasks {
    closing: CancellationToken,
    begins: JoinHandle<()>,
    ends: JoinHandle<()>,
}

struct Begin {
    call: Arc<Started>,
    catalog: i64,
    reply: oneshot::Sender<Begun>,
}

enum Entry {
    StillRunning(Arc<Started>),
    End(Arc<Started>, Ended),
}

impl Writer {
    /// Starts the two tasks.
    pub fn start(pool: Pool) -> (Self, Tasks) {
        let (begins, begin_queue) = mpsc::channel(QUEUE);
        let (ends, end_queue) = mpsc::channel(QUEUE);
        let closing = CancellationToken::new();
        let tasks = Tasks {
            begins: tokio::spawn(write_begins(pool.clone(), begin_queue, closing.clone())),
            ends: tokio::spawn(write_ends(pool, end_queue, closing.clone())),
            closing,
        };
        (Self { begins, ends }, tasks)
    }

    /// Commits the row of a call that was decided at this catalog epoch. Returns once it is on disk, or is not.
    pub async fn begin(&self, call: Arc<Started>, catalog: i64) -> Begun {
        let (reply, answer) = oneshot::channel();
        if self.begins.send(Begin { call, catalog, reply }).await.is_err() {
            return Begun::Failed;
        }
        answer.await.unwrap_or(Begun::Failed)
    }

    /// Records that a read-only call takes its time.
    pub async fn still_running(&self, call: Arc<Started>) {
        self.put(Entry::StillRunning(call)).await;
    }

    /// Records how a call ended. Waits while the queue is full.
    pub async fn end(&self, call: Arc<Started>, ended: Ended) {
        self.put(Entry::End(call, ended)).await;
    }

    /// Records a call that was refused because its row could not be written: when the row got there after all, it must not
    /// stay open. Never waits: while the database is away calls are refused at once.
    pub fn end_unwritten(&self, call: Arc<Started>, ended: Ended) {
        if self.ends.try_send(Entry::End(call, ended)).is_err() {
            tracing::error!("the audit queue is full: a call that was refused is not recorded");
        }
    }

    async fn put(&self, entry: Entry) {
        if self.ends.send(entry).await.is_err() {
            tracing::error!("the audit writer has ended: a row was not recorded");
        }
    }
}

impl Tasks {
    /// Takes nothing more, and waits until everything is written.
    pub async fn finished(self) {
        self.closing.cancel();
        for task in [self.begins, self.ends] {
            if let Err(error) = task.await {
                tracing::error!(error.message = %error, "an audit writer failed");
            }
        }
    }
}

/// Fills the batch; 0 when the queue is closed and empty.
async fn next<T>(queue: &mut mpsc::Receiver<T>, batch: &mut Vec<T>, closing: &CancellationToken) -> usize {
    if let Some(count) = closing.run_until_cancelled(queue.recv_many(batch, BATCH)).await {
        return count;
    }
    queue.close();
    queue.recv_many(batch, BATCH).await
}

async fn write_begins(pool: Pool, mut queue: mpsc::Receiver<Begin>, closing: CancellationToken) {
    let mut batch = Vec::with_capacity(BATCH);
    while next(&mut queue, &mut batch, &closing).await > 0 {
        // A caller that has given up needs no row.
        batch.retain(|begin: &Begin| !begin.reply.is_closed());
        let inserted = insert(&pool, &batch).await;
        if let Err(error) = &inserted {
            tracing::error!(error.message = %error, calls = batch.len(), "calls are refused: their audit rows cannot be written");
        }
        for begin in batch.drain(..) {
            let begun = match &inserted {
                Ok(ids) if ids.contains(&begin.call.id.uuid()) => Begun::Recorded,
                Ok(_) => Begun::Stale,
                Err(_) => Begun::Failed,
            };
            // Nobody waits any more: the row stays and is closed by its call's end.
            let _ = begin.reply.send(begun);
        }
    }
}

async fn insert(pool: &Pool, batch: &[Begin]) -> Result<Vec<Uuid>, DbError> {
    if batch.is_empty() {
        return Ok(Vec::new());
    }
    let calls: Vec<&Started> = batch.iter().map(|begin| begin.call.as_ref()).collect();
    let catalog: Vec<i64> = batch.iter().map(|begin| begin.catalog).collect();
    let inserted = async {
        let mut connection = pool.acquire().await?;
        calls_write::begin(&mut connection, &calls, &catalog).await
    };
    within(ANSWER_WITHIN, inserted).await
}

async fn write_ends(pool: Pool, mut queue: mpsc::Receiver<Entry>, closing: CancellationToken) {
    let mut batch = Vec::with_capacity(BATCH);
    while next(&mut queue, &mut batch, &closing).await > 0 {
        let due = Instant::now() + FLUSH;
        while batch.len() < BATCH && !closing.is_cancelled() {
            let room = BATCH - batch.len();
            match timeout_at(due, queue.recv_many(&mut batch, room)).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        metrics::gauge!("gatehouse_audit_queue").set(u32::try_from(queue.len()).unwrap_or(u32::MAX));
        write_batch(&pool, &batch, &closing).await;
        batch.clear();
    }
}

/// Writes a batch; tries again until the database takes it. Gives up only when the process ends.
async fn write_batch(pool: &Pool, batch: &[Entry], closing: &CancellationToken) {
    let mut failures = 0;
    let mut give_up = None;
    loop {
        // At the end of the process there is no time to wait out a connection that may be dead.
        let overdue = async {
            closing.cancelled().await;
            sleep(DRAIN).await;
        };
        let written = tokio::select! {
            written = within(WRITE_WITHIN, write(pool, batch)) => written,
            () = overdue => Err(no_answer()),
        };
        let error = match written {
            Ok(()) => return,
            Err(error) => error,
        };
        if error.as_database_error().is_some_and(|error| error.code().is_some_and(|code| code.starts_with("22"))) {
            return write_one_by_one(pool, batch).await;
        }
        failures += 1;
        tracing::error!(error.message = %error, rows = batch.len(), "the audit cannot be written; trying again");
        if closing.is_cancelled() {
            let until = *give_up.get_or_insert_with(|| Instant::now() + DRAIN);
            if Instant::now() >= until {
                tracing::error!(
                    rows = batch.len(),
                    "the audit lost rows: the database did not take them before the end"
                );
                return;
            }
        }
        sleep(RETRY.pause(failures, 0.0)).await;
    }
}

/// One row that the database refuses must not cost the others.
async fn write_one_by_one(pool: &Pool, batch: &[Entry]) {
    for entry in batch {
        if let Err(error) = within(WRITE_WITHIN, write(pool, std::slice::from_ref(entry))).await {
            let (Entry::StillRunning(call) | Entry::End(call, _)) = entry;
            tracing::error!(error.message = %error, call.id = %call.id, "the database refuses a row of the audit");
        }
    }
}

async fn write(pool: &Pool, batch: &[Entry]) -> Result<(), DbError> {
    let mut connection = pool.acquire().await?;
    let mut running = Vec::new();
    let mut ended = Vec::new();
    for entry in batch {
        match entry {
            Entry::StillRunning(call) => running.push(call.as_ref()),
            Entry::End(call, end) => ended.push((call.as_ref(), end)),
        }
    }
    if !running.is_empty() {
        calls_write::still_running(&mut connection, &running).await?;
    }
    if !ended.is_empty() {
        calls_write::end(&mut connection, &ended).await?;
    }
    Ok(())
}
