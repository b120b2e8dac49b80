//! Tells those who wait what has changed. One watcher for a process: each time it is woken, or a second has passed, it reads
//! which cards are open or were closed lately, compares their versions with what it knew, and hands the changed ones out. What
//! it costs does not grow with the number of those who wait.
//!
//! Changes commit in another order than they were made in. So a closed card is looked for longer than any transaction can take,
//! counted from the last time that the table was read: nothing is missed, neither by a slow transaction nor while the database
//! was away.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gatehouse_platform::error::chain;
use gatehouse_types::InteractionId;
use secrecy::SecretString;
use time::OffsetDateTime;
use tokio::{
    sync::{Notify, broadcast, oneshot, watch},
    time::{MissedTickBehavior, interval, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    card::Card,
    error::Error,
    store::{self, Pool, changes, listen::Listener},
};

/// How often the table is read when nothing wakes the watcher.
const EVERY: Duration = Duration::from_secs(1);
/// How far a change may lie before the last reading and still have been missed by it: longer than a statement (30 s) and an
/// idle transaction (60 s) may take.
const OVERLAP: Duration = Duration::from_mins(2);
/// Most changes that a follower may be behind.
const MOST_BEHIND: usize = 512;
/// Most cards that are read at once.
const AT_ONCE: usize = 200;
/// Pause before listening is tried again.
const LISTEN_PAUSE: Duration = Duration::from_secs(1);

type Waiting = HashMap<InteractionId, Vec<(u64, oneshot::Sender<Arc<Card>>)>>;

/// Hands changes to those who wait.
#[derive(Debug)]
pub struct Watcher {
    pool: Pool,
    wake: Notify,
    waiting: Mutex<Waiting>,
    tickets: AtomicU64,
    changes: broadcast::Sender<Arc<Card>>,
    /// Readings that have begun, and the number of the last one that was told.
    begun: AtomicU64,
    told: watch::Sender<u64>,
}

/// A place among those who wait for a card to be closed. Given up when dropped.
#[derive(Debug)]
pub struct Waiter {
    watcher: Arc<Watcher>,
    id: InteractionId,
    ticket: u64,
    closed: oneshot::Receiver<Arc<Card>>,
}

/// What the watcher knew at its last reading.
#[derive(Debug, Default)]
struct Known {
    versions: HashMap<InteractionId, i64>,
    read_at: Option<OffsetDateTime>,
}

impl Watcher {
    /// One that reads this database.
    pub fn new(pool: Pool) -> Self {
        Self {
            pool,
            wake: Notify::new(),
            waiting: Mutex::default(),
            tickets: AtomicU64::new(0),
            changes: broadcast::Sender::new(MOST_BEHIND),
            begun: AtomicU64::new(0),
            told: watch::Sender::new(0),
        }
    }

    /// Has the table read now.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits for this card to be closed. What was closed before is not told: read the card after this.
    pub fn wait(self: &Arc<Self>, id: InteractionId) -> Waiter {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let (sender, closed) = oneshot::channel();
        self.waiting().entry(id).or_default().push((ticket, sender));
        Waiter { watcher: Arc::clone(self), id, ticket, closed }
    }

    /// Every change from now on. What is open now is not told: read it after this.
    pub async fn follow(&self) -> broadcast::Receiver<Arc<Card>> {
        // A whole reading must lie between, so that what was changed before is not told as a change.
        let begun = self.begun.load(Ordering::SeqCst);
        self.wake();
        // The sender is part of `self`.
        let _ = self.told.subscribe().wait_for(|told| *told > begun).await;
        self.changes.subscribe()
    }

    /// How many wait for one card or another.
    pub fn waiters(&self) -> usize {
        self.waiting().values().map(Vec::len).sum()
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and tells until `shutdown`; then nobody waits any more.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut tick = interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut known, mut failing) = (Known::default(), false);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ = tick.tick() => {}
                () = self.wake.notified() => {}
            }
            match self.read(&mut known).await {
                Ok(()) => {
                    if std::mem::take(&mut failing) {
                        tracing::info!("cards can be read again");
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(error.message = chain(&error), "cards cannot be read; trying again");
                    }
                }
            }
        }
        self.waiting().clear();
    }

    /// Reads once. What was read counts as known only when it has been told.
    async fn read(&self, known: &mut Known) -> Result<(), Error> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let since = known.read_at.map(|at| at - OVERLAP);
        let heads = store::within(store::ANSWER_WITHIN, async {
            let mut connection = self.pool.acquire().await?;
            changes::heads(&mut connection, since, OVERLAP).await
        });
        let heads = heads.await?;
        #[expect(clippy::cast_precision_loss, reason = "a gauge; there are far fewer cards than 2⁵²")]
        metrics::gauge!("gatehouse_interactions_open").set(heads.cards.iter().filter(|head| head.open).count() as f64);
        // At the first reading nothing is known: a card that was closed before it may be waited for by one who has seen it open.
        let first = known.read_at.is_none();
        let is_news = |head: &&changes::Head| {
            if first { !head.open } else { known.versions.get(&head.id) != Some(&head.version) }
        };
        let changed: Vec<_> = heads.cards.iter().filter(is_news).map(|head| head.id).collect();
        self.tell(&changed).await?;
        known.versions = heads.cards.iter().map(|head| (head.id, head.version)).collect();
        known.read_at = Some(heads.at);
        self.told.send_replace(number);
        Ok(())
    }

    async fn tell(&self, changed: &[InteractionId]) -> Result<(), Error> {
        let wanted: Vec<InteractionId> = if self.changes.receiver_count() > 0 {
            changed.to_vec()
        } else {
            let waiting = self.waiting();
            changed.iter().copied().filter(|id| waiting.contains_key(id)).collect()
        };
        for some in wanted.chunks(AT_ONCE) {
            let cards = store::within(store::ANSWER_WITHIN, async {
                let mut connection = self.pool.acquire().await?;
                changes::cards(&mut connection, some).await
            });
            for card in cards.await? {
                match card {
                    Ok(card) => self.hand_out(&Arc::new(card)),
                    // One broken row must not keep the others waiting.
                    Err(error) => tracing::error!(error.message = chain(&error), "a card cannot be read"),
                }
            }
        }
        Ok(())
    }

    fn hand_out(&self, card: &Arc<Card>) {
        if !card.state.is_open() {
            let waiters = self.waiting().remove(&card.id).unwrap_or_default();
            for (_, waiter) in waiters {
                // One that has gone away needs no answer.
                let _ = waiter.send(Arc::clone(card));
            }
        }
        // Nobody may be following.
        let _ = self.changes.send(Arc::clone(card));
    }
}

impl Waiter {
    /// The card once it is closed, or [`Error::Ending`] when the server ends before.
    pub async fn closed(mut self) -> Result<Arc<Card>, Error> {
        (&mut self.closed).await.map_err(|_| Error::Ending)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.watcher.waiting();
        if let Some(waiters) = waiting.get_mut(&self.id) {
            waiters.retain(|(ticket, _)| *ticket != self.ticket);
            if waiters.is_empty() {
                waiting.remove(&self.id);
            }
        }
    }
}

/// Wakes the watcher whenever a notice comes, on a connection of its own. Without one the watcher's timer does.
pub async fn listen(watcher: Arc<Watcher>, direct: Option<SecretString>, shutdown: CancellationToken) {
    let listening = Box::pin(async {
        let mut failing = false;
        loop {
            match Listener::open(&watcher.pool, direct.as_ref()).await {
                Ok(mut listener) => {
                    failing = false;
                    // Whatever happened while nobody listened.
                    watcher.wake();
                    while listener.heard().await {
                        watcher.wake();
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        let why = chain(&error);
                        tracing::warn!(error.message = why, "changes are not announced; cards are read each second");
                    }
                }
            }
            sleep(LISTEN_PAUSE).await;
        }
    });
    shutdown.run_until_cancelled(listening).await;
}
