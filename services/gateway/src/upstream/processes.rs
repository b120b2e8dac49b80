//! Servers that are programs: one process for each, shared by all sessions.
//!
//! It is started on first use, started again with growing pauses when it ends by itself, and stopped when nobody has used it for a
//! while, when its registration changes or is gone, and with the gateway.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use futures_util::future::{BoxFuture, join_all};
use gatehouse_mcp::client::{Connection, Inbound, Options, Reply, ServerNotification, ServerRequest};
use gatehouse_stdio::{Allowed, Config, Exit, Process, Sandboxes, Spec};
use gatehouse_types::{Clock, ServerId, SessionId, Settings, backoff::Backoff};
use time::OffsetDateTime;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    pools::connection_options,
    refresh::Refresher,
    slot::{Live, Slot},
};
use crate::{
    call::words::{self, Words},
    catalog::{Catalog, Server},
};

/// Pauses between an end and the next start.
const PAUSES: Backoff = Backoff { first: Duration::from_secs(1), most: Duration::from_mins(1) };
/// A process that lived for so long has started well: the pauses begin anew.
const LIVED: Duration = Duration::from_mins(1);
/// A call waits for a pause that is no longer than this, else it is told.
const WAIT_FOR_PAUSE: Duration = Duration::from_secs(3);
/// How long a process has after its input was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How long the news of an end may take after the end of the output.
const END_WITHIN: Duration = Duration::from_secs(2);
/// How much of the last words goes into an admin's message.
const LAST_LINES: usize = 5;

/// The processes of this replica.
pub struct Processes {
    sandboxes: Option<Sandboxes>,
    clock: Arc<dyn Clock>,
    slots: Mutex<HashMap<ServerId, Arc<Place>>>,
    refresher: OnceLock<Weak<Refresher>>,
    tasks: TaskTracker,
}

/// The place of one server's process.
struct Place {
    slot: Slot,
    past: Mutex<Past>,
}

/// What was seen of the processes of a server.
#[derive(Default)]
struct Past {
    starts: u32,
    started_at: Option<OffsetDateTime>,
    /// Ends by itself on end, each soon after its start.
    crashes: u32,
    next_start: Option<Instant>,
    last_exit: String,
    stderr: Vec<String>,
}

/// What an admin is shown of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Whether it runs.
    pub running: bool,
    /// When it was started last.
    pub started_at: Option<OffsetDateTime>,
    /// How often it was started.
    pub starts: u32,
    /// How it ended last; empty when it has not ended by itself.
    pub last_exit: String,
    /// The last lines of stderr.
    pub stderr: Vec<String>,
    /// Memory that it takes.
    pub memory_bytes: u64,
    /// Processes that it has.
    pub processes: u64,
}

impl Processes {
    /// None run yet. Without a folder for homes none can.
    pub fn new(homes: Option<PathBuf>, allowed: Allowed, clock: Arc<dyn Clock>) -> Self {
        let config = |homes| Config { allowed, ..Config::from(homes) };
        Self {
            sandboxes: homes.map(config).map(Sandboxes::new),
            clock,
            slots: Mutex::default(),
            refresher: OnceLock::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Who is told that a list of tools has changed.
    pub fn tell(&self, refresher: &Arc<Refresher>) {
        // Told once, when the gateway starts.
        let _ = self.refresher.set(Arc::downgrade(refresher));
    }

    /// The connection to a server's process, which is started if need be. Whether it was opened by this call is told, too. The error
    /// is in words for people.
    pub(super) async fn live(&self, server: &Server, settings: &Settings) -> Result<(Arc<Live>, bool), Words> {
        let place = self.place(server.id);
        place.slot.touch();
        if let Some(live) = place.live(server) {
            return Ok((live, false));
        }
        let _turn = place.slot.opening.lock().await;
        if let Some(live) = place.live(server) {
            return Ok((live, false));
        }
        if let Some(before) = place.slot.take() {
            self.stop_later(before);
        }
        place.pause(&server.name).await?;
        // Boxed: rare and large, it would make every call larger.
        let live = Arc::new(Box::pin(self.open(&place, server, settings)).await?);
        place.slot.put(Arc::clone(&live));
        Ok((live, true))
    }

    async fn open(&self, place: &Arc<Place>, server: &Server, settings: &Settings) -> Result<Live, Words> {
        let process = Arc::new(self.start(server, server.id.to_string()).await?);
        let started = Instant::now();
        {
            let mut past = place.past();
            past.starts = past.starts.saturating_add(1);
            past.started_at = Some(self.clock.now());
        }
        self.note_end(place, &process, started, server.name.clone());
        let ears =
            Ears { server: server.id, refresher: self.refresher.get().cloned(), process: Arc::downgrade(&process) };
        let opened = connect(&process, connection_options(server, settings), Arc::new(ears)).await;
        match opened {
            Ok(connection) => Ok(Live::of_process(connection, server.config_hash(), process)),
            Err(why) => {
                let words = not_opened(&process, &why).await;
                process.stop(GRACE).await;
                // One that has ended by itself has its pause already; one that hangs would be started for each call.
                place.past().pause_if_none(started);
                Err(words)
            }
        }
    }

    async fn start(&self, server: &Server, name: String) -> Result<Process, Words> {
        let Some(sandboxes) = &self.sandboxes else { return Err(words::no_homes()) };
        let Some(stdio) = &server.stdio else { return Err(words::no_homes()) };
        let spec = Spec {
            name,
            program: stdio.program.clone(),
            args: stdio.args.clone(),
            env: server.headers.clone(),
            open: stdio.opened(),
            network: stdio.network,
            trusted: stdio.trusted,
            limits: stdio.limits.effective(),
        };
        if stdio.trusted {
            tracing::warn!(server.name = server.name, server.id = %server.id, "a trusted program is started without a sandbox");
        }
        let started = sandboxes.start(spec).await;
        started.map_err(|error| words::not_started(&gatehouse_platform::error::chain(&error)))
    }

    /// Runs a program that is not registered, as long as `work` takes. Its home is its own, and goes with it.
    pub(super) async fn try_program<T>(
        &self,
        server: &Server,
        settings: &Settings,
        work: impl AsyncFnOnce(Result<&Connection, &Words>) -> T,
    ) -> T {
        let name = format!("test-{}", server.id);
        let process = match self.start(server, name.clone()).await {
            Ok(process) => Arc::new(process),
            Err(why) => return work(Err(&why)).await,
        };
        let options = Options { listen: false, ..connection_options(server, settings) };
        let done = match connect(&process, options, Arc::new(())).await {
            Ok(connection) => {
                let done = work(Ok(&connection)).await;
                connection.close().await;
                done
            }
            Err(why) => work(Err(&not_opened(&process, &why).await)).await,
        };
        process.stop(GRACE).await;
        if let Some(sandboxes) = &self.sandboxes
            && let Err(error) = sandboxes.remove_home(&name).await
        {
            tracing::warn!(error.message = %error, "the home of a program that was tried could not be removed");
        }
        done
    }

    /// Remembers how a process ended.
    fn note_end(&self, place: &Arc<Place>, process: &Arc<Process>, started: Instant, name: String) {
        let (place, process) = (Arc::downgrade(place), Arc::clone(process));
        self.tasks.spawn(async move {
            let exit = process.ended().await;
            let Some(place) = place.upgrade() else { return };
            let mut past = place.past();
            past.stderr = process.stderr_tail();
            if exit.is_stop() {
                return;
            }
            past.last_exit.clone_from(&exit.words);
            past.failed(started);
            tracing::warn!(server.name = name, exit = exit.words, "the program of a server ended by itself");
        });
    }

    /// What is to be seen of a server's process; `None` when there never was one here.
    pub fn seen(&self, server: ServerId) -> Option<Seen> {
        let place = self.slots().get(&server).cloned()?;
        let process =
            place.slot.current().and_then(|live| live.process.clone()).filter(|process| process.exit().is_none());
        let past = place.past();
        if past.starts == 0 {
            return None;
        }
        let usage = process.as_ref().map(|process| process.usage()).unwrap_or_default();
        Some(Seen {
            running: process.is_some(),
            started_at: past.started_at,
            starts: past.starts,
            last_exit: past.last_exit.clone(),
            stderr: process.map_or_else(|| past.stderr.clone(), |process| process.stderr_tail()),
            memory_bytes: usage.memory_bytes,
            processes: usage.processes,
        })
    }

    /// Stops processes that nobody has used for `idle`, and those of servers that are gone or switched off.
    pub(super) fn sweep(&self, catalog: &Catalog, idle: Duration) {
        let places: Vec<(ServerId, Arc<Place>)> =
            self.slots().iter().map(|(id, place)| (*id, Arc::clone(place))).collect();
        for (id, place) in places {
            let server = catalog.servers.get(&id);
            let gone = server.is_none_or(|server| !server.enabled || server.stdio.is_none());
            if !place.slot.is_in_use() && (gone || place.slot.idle_for(idle)) {
                if let Some(live) = place.slot.take() {
                    self.stop_later(live);
                }
                if server.is_none() {
                    self.slots().remove(&id);
                }
            }
        }
    }

    /// Stops all of them, and waits until they have ended.
    pub async fn stop_all(&self) {
        let places: Vec<Arc<Place>> = self.slots().drain().map(|(_, place)| place).collect();
        let lives = places.iter().filter_map(|place| place.slot.take());
        join_all(lives.map(stop)).await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Takes a connection out that is of no use any more.
    pub(super) fn discard(&self, server: ServerId, live: &Arc<Live>) {
        let place = self.slots().get(&server).cloned();
        if place.is_some_and(|place| place.slot.remove(live)) {
            self.stop_later(Arc::clone(live));
        }
    }

    fn stop_later(&self, live: Arc<Live>) {
        self.tasks.spawn(async move {
            live.unused().await;
            stop(live).await;
        });
    }

    fn place(&self, server: ServerId) -> Arc<Place> {
        let new = || {
            let slot = Slot::new(server, SessionId::from_uuid(uuid::Uuid::nil()), CancellationToken::new());
            Arc::new(Place { slot, past: Mutex::default() })
        };
        Arc::clone(self.slots().entry(server).or_insert_with(new))
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<ServerId, Arc<Place>>> {
        // The map is whole after each statement.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Past {
    /// A process that was started then is of no use any more.
    fn failed(&mut self, started: Instant) {
        self.crashes = if started.elapsed() >= LIVED { 1 } else { self.crashes.saturating_add(1) };
        self.next_start = Some(Instant::now() + PAUSES.pause(self.crashes, 0.0));
    }

    fn pause_if_none(&mut self, started: Instant) {
        if self.next_start.is_none_or(|at| at < Instant::now()) {
            self.failed(started);
        }
    }
}

impl Place {
    /// The connection, when it was opened with this configuration and its process lives.
    fn live(&self, server: &Server) -> Option<Arc<Live>> {
        self.slot.live(server.config_hash()).filter(|live| !live.connection.has_ended())
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the pause after an end to be over, when it is short.
    async fn pause(&self, server: &str) -> Result<(), Words> {
        let (left, crashes, exit) = {
            let past = self.past();
            let left = past.next_start.map(|at| at.saturating_duration_since(Instant::now())).unwrap_or_default();
            (left, past.crashes, past.last_exit.clone())
        };
        if left > WAIT_FOR_PAUSE {
            return Err(words::pauses(server, crashes, &exit, left.as_secs() + 1));
        }
        sleep(left).await;
        Ok(())
    }
}

/// Closes a connection and stops its process.
async fn stop(live: Arc<Live>) {
    live.connection.close().await;
    if let Some(process) = &live.process {
        process.stop(GRACE).await;
    }
}

async fn connect(process: &Arc<Process>, options: Options, ears: Arc<dyn Inbound>) -> Result<Connection, String> {
    let Some((input, output)) = process.take_pipes() else { return Err("its pipes are gone".to_owned()) };
    let opened = Connection::open_pipes(output, input, options, ears).await;
    opened.map_err(|error| super::why::open_error_words(&error))
}

/// Why a process did not become a server, with its exit and its last words.
async fn not_opened(process: &Process, why: &str) -> Words {
    let exit = timeout(END_WITHIN, process.ended()).await.ok();
    let lines = process.stderr_tail();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    words::not_a_server(why, exit.as_ref().map(|exit| exit.words.as_str()), last)
}

/// How the process of a connection ended, when it has or is about to.
pub(super) async fn exit_of(live: &Live) -> Option<Exit> {
    timeout(END_WITHIN, live.process.as_ref()?.ended()).await.ok()
}

/// Hears what a program says of its own accord. It serves many sessions: no question of its can be told to be one's.
struct Ears {
    server: ServerId,
    refresher: Option<Weak<Refresher>>,
    process: Weak<Process>,
}

impl Inbound for Ears {
    fn notification(&self, notification: ServerNotification<'_>) {
        if notification.method == "notifications/tools/list_changed"
            && let Some(refresher) = self.refresher.as_ref().and_then(Weak::upgrade)
        {
            refresher.list_changed(self.server);
        }
    }

    fn request(&self, _: ServerRequest) -> Option<BoxFuture<'static, Reply>> {
        None
    }

    fn stray_line(&self, line: &str) {
        tracing::info!(server.id = %self.server, bytes = line.len(), "a line of a program's output is no message and was skipped");
        if let Some(process) = self.process.upgrade() {
            process.add_to_tail(line);
        }
    }
}
