//! Connections to servers: one for each server and session, opened on first use, closed when idle, reopened when the
//! server has forgotten it.
//!
//! MCP session ids are stored sealed, so that a restarted replica goes on where the last one was. Everything is bounded
//! per server: a server that hangs holds its own permits and nobody else's.

mod facade;
mod pools;
mod probe;
pub mod processes;
pub mod refresh;
mod slot;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use gatehouse_mcp::client::{Connection, Inbound, OpenError, Reply, ServerNotification, ServerRequest, StoredSession};
use gatehouse_store::{Keyring, Place};
use gatehouse_types::{Clock, ServerId, SessionId};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    pools::Pools,
    processes::Processes,
    refresh::Refresher,
    slot::{Failure, Live, Slot},
};
use crate::{
    call::words::{self, Words},
    catalog::Server,
    snapshot::{Session, Snapshot},
    store::{ANSWER_WITHIN, DbError, Pool, upstream_sessions, within},
};

pub use self::{facade::Upstream, pools::connection_options, slot::Lease};

/// Most connections of one replica.
const MOST_SLOTS: usize = 50_000;
/// Calls that find a connection broken within this time of a failed attempt share its failure.
const SHARE_FAILURE: Duration = Duration::from_secs(1);
/// How often idle connections are looked for.
const SWEEP: Duration = Duration::from_secs(2);

/// Why there is no connection.
#[derive(Debug)]
pub enum Acquire {
    /// It could not be opened; in words for people, without inner addresses.
    Open(Words),
    /// Too many calls wait for this server, or there are too many connections.
    Busy,
}

/// All connections of this replica.
pub struct Upstreams {
    pool: Pool,
    keyring: Arc<Keyring>,
    clock: Arc<dyn Clock>,
    snapshot: Arc<Snapshot>,
    pools: Pools,
    refresher: Arc<Refresher>,
    processes: Arc<Processes>,
    slots: Mutex<HashMap<(ServerId, SessionId), Arc<Slot>>>,
    tasks: TaskTracker,
}

impl Upstreams {
    /// No connections yet.
    pub fn new(
        snapshot: Arc<Snapshot>,
        refresher: Arc<Refresher>,
        pool: Pool,
        keyring: Arc<Keyring>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (pools, processes) = (refresher.pools(), refresher.processes());
        Self {
            pool,
            keyring,
            clock,
            snapshot,
            pools,
            refresher,
            processes,
            slots: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// The connection of this server and session, with a permit for one request.
    pub async fn acquire(&self, server: &Arc<Server>, session: &Arc<Session>) -> Result<Lease, Acquire> {
        let permit = self.pools.permit(server).await.ok_or(Acquire::Busy)?;
        if server.stdio.is_some() {
            let (live, opened) =
                self.processes.live(server, &self.snapshot.catalog().settings).await.map_err(Acquire::Open)?;
            if opened {
                self.refresher.connected(server.id);
            }
            return Ok(Lease::new(None, live, permit));
        }
        let slot = self.slot(server.id, session).ok_or(Acquire::Busy)?;
        slot.touch();
        if let Some(live) = slot.live(server.config_hash()) {
            return Ok(Lease::new(Some(slot), live, permit));
        }
        let mut failure = slot.opening.lock().await;
        if let Some(live) = slot.live(server.config_hash()) {
            drop(failure);
            return Ok(Lease::new(Some(slot), live, permit));
        }
        // A server that was set right is tried at once.
        if let Some(last) = failure.as_ref()
            && last.config_hash == server.config_hash()
            && last.at.elapsed() < SHARE_FAILURE
        {
            return Err(Acquire::Open(last.why.clone()));
        }
        // Boxed: rare and large, it would make every call larger.
        match Box::pin(self.open(server, session)).await {
            Ok(live) => {
                *failure = None;
                let live = Arc::new(live);
                let before = slot.put(Arc::clone(&live));
                drop(failure);
                if let Some(before) = before {
                    self.close_later(before);
                }
                let lease = Lease::new(Some(Arc::clone(&slot)), live, permit);
                self.settle(&slot, session);
                Ok(lease)
            }
            Err(error) => {
                let why = words::cause(&error);
                tracing::info!(server.name = server.name, error.message = %error, "connection to a server could not be opened");
                *failure = Some(Failure { at: Instant::now(), config_hash: server.config_hash(), why: why.clone() });
                Err(Acquire::Open(why))
            }
        }
    }

    /// While a connection was opened, its session may have been deleted, or its place swept away as unused.
    fn settle(&self, slot: &Arc<Slot>, session: &Session) {
        let key = (slot.server, session.id);
        self.lock().entry(key).or_insert_with(|| Arc::clone(slot));
        if session.ended.is_cancelled() {
            self.session_ended(session.id);
        }
    }

    /// Forgets a connection whose MCP session the server does not know any more.
    pub async fn discard(&self, server: ServerId, lease: &Lease) {
        let Some(slot) = &lease.slot else { return self.processes.discard(server, &lease.live) };
        if slot.remove(&lease.live)
            && let Err(error) = self.forget(slot.server, slot.session).await
        {
            tracing::warn!(error.message = %error, "a stored MCP session could not be removed");
        }
    }

    /// Closes the connections of a session that was deleted.
    pub fn session_ended(&self, session: SessionId) {
        self.close_where(|slot| slot.session == session);
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        self.lock().values().filter(|slot| slot.is_open()).count()
    }

    /// Closes idle connections, and those of servers and sessions that are gone, until `shutdown`.
    pub async fn sweep(&self, shutdown: CancellationToken) {
        let mut tick = interval(SWEEP);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
            let catalog = self.snapshot.catalog();
            let idle = Duration::from_secs(u64::from(catalog.settings.upstream_idle_close_sec));
            self.close_where(|slot| {
                let server = catalog.servers.get(&slot.server);
                let gone = server.is_none_or(|server| !server.enabled) || slot.session_has_ended();
                !slot.is_in_use() && (gone || slot.idle_for(idle))
            });
            self.processes.sweep(&catalog, idle);
            self.pools.keep_only(&catalog);
            metrics::gauge!("gatehouse_upstream_connections")
                .set(u32::try_from(self.open_connections()).unwrap_or(u32::MAX));
        }
    }

    /// Lets go of all connections without ending their MCP sessions: the next process takes them up.
    pub async fn let_go(&self) {
        self.lock().clear();
        self.tasks.close();
        self.tasks.wait().await;
        self.processes.stop_all().await;
    }

    fn close_where(&self, condition: impl Fn(&Slot) -> bool) {
        let closed: Vec<Arc<Slot>> = {
            let mut slots = self.lock();
            let keys: Vec<_> = slots.iter().filter(|(_, slot)| condition(slot)).map(|(key, _)| *key).collect();
            keys.iter().filter_map(|key| slots.remove(key)).collect()
        };
        for slot in closed {
            if let Some(live) = slot.take() {
                self.close_later(live);
            }
            let (pool, server, session) = (self.pool.clone(), slot.server, slot.session);
            self.tasks.spawn(async move {
                if let Err(error) = forget(&pool, server, session).await {
                    tracing::warn!(error.message = %error, "a stored MCP session could not be removed");
                }
            });
        }
    }

    fn close_later(&self, live: Arc<Live>) {
        self.tasks.spawn(async move {
            live.unused().await;
            live.connection.close().await;
        });
    }

    fn slot(&self, server: ServerId, session: &Arc<Session>) -> Option<Arc<Slot>> {
        let mut slots = self.lock();
        if let Some(slot) = slots.get(&(server, session.id)) {
            return Some(Arc::clone(slot));
        }
        if slots.len() >= MOST_SLOTS {
            return None;
        }
        let slot = Arc::new(Slot::new(server, session.id, session.ended.clone()));
        slots.insert((server, session.id), Arc::clone(&slot));
        Some(slot)
    }

    async fn open(&self, server: &Arc<Server>, session: &Arc<Session>) -> Result<Live, OpenError> {
        let hash = server.config_hash();
        let http = self.pools.client(server);
        let endpoint = pools::endpoint(server)?;
        let limits = &self.snapshot.catalog().settings;
        let options = connection_options(server, limits);
        let ears: Arc<dyn Inbound> = Arc::new(Ears { server: server.id, refresher: Arc::clone(&self.refresher) });
        if let Some(stored) = self.stored(server, session.id, hash).await {
            match Connection::resume(http.clone(), endpoint.clone(), options.clone(), Arc::clone(&ears), stored) {
                Ok(connection) => return Ok(Live::new(connection, hash)),
                Err(error) => {
                    tracing::info!(server.name = server.name, error.message = %error, "a stored MCP session is not taken up");
                }
            }
        }
        let connection = Connection::open(http, endpoint, options, ears).await?;
        let stored = connection.stored_session();
        let stored = timeout(ANSWER_WITHIN, self.store(server, session.id, &hash, stored)).await;
        if let Err(error) = stored.unwrap_or_else(|late| Err(late.into())) {
            tracing::warn!(error.message = %error, "an MCP session could not be stored; a restart will begin a new one");
        }
        self.refresher.connected(server.id);
        Ok(Live::new(connection, hash))
    }

    async fn stored(&self, server: &Arc<Server>, session: SessionId, hash: [u8; 32]) -> Option<StoredSession> {
        let found = async {
            let mut connection = self.pool.acquire().await?;
            upstream_sessions::find(&mut connection, server.id, session, &hash).await
        };
        let stored = within(ANSWER_WITHIN, found).await.inspect_err(|error| {
            tracing::warn!(error.message = %error, "stored MCP sessions cannot be read; a new one is begun");
        });
        let stored = stored.ok()??;
        let opened = self.keyring.open(&place(server.id, session), &stored.mcp_session_id_sealed);
        let opened = opened.inspect_err(|error| {
            tracing::warn!(error.message = %error, "a stored MCP session cannot be unsealed; a new one is begun");
        });
        let id = String::from_utf8(opened.ok()?.expose_secret().to_vec()).ok()?;
        Some(StoredSession {
            mcp_session_id: Some(id),
            protocol_version: stored.protocol_version,
            initialize_result: Bytes::from(stored.initialize_result),
        })
    }

    async fn store(
        &self,
        server: &Server,
        session: SessionId,
        hash: &[u8],
        stored: StoredSession,
    ) -> anyhow::Result<()> {
        let mut connection = self.pool.acquire().await?;
        let Some(id) = stored.mcp_session_id.map(SecretString::from) else {
            // A server without sessions: what an older configuration had stored is of no use.
            upstream_sessions::remove(&mut connection, server.id, session).await?;
            return Ok(());
        };
        let row = upstream_sessions::Stored {
            mcp_session_id_sealed: self.keyring.seal(&place(server.id, session), id.expose_secret().as_bytes())?,
            protocol_version: stored.protocol_version,
            initialize_result: String::from_utf8(stored.initialize_result.to_vec())?,
        };
        upstream_sessions::put(&mut connection, server.id, session, &row, hash, self.clock.now()).await?;
        Ok(())
    }

    async fn forget(&self, server: ServerId, session: SessionId) -> Result<(), DbError> {
        forget(&self.pool, server, session).await
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ServerId, SessionId), Arc<Slot>>> {
        // The map is whole after each statement.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn forget(pool: &Pool, server: ServerId, session: SessionId) -> Result<(), DbError> {
    let forgotten = async {
        let mut connection = pool.acquire().await?;
        upstream_sessions::remove(&mut connection, server, session).await
    };
    within(ANSWER_WITHIN, forgotten).await
}

fn place(server: ServerId, session: SessionId) -> Place {
    Place::new("upstream_sessions", "mcp_session_id_sealed", format_args!("{server}/{session}"))
}

/// Hears what a server says of its own accord.
struct Ears {
    server: ServerId,
    refresher: Arc<Refresher>,
}

impl Inbound for Ears {
    fn notification(&self, notification: ServerNotification<'_>) {
        if notification.method == "notifications/tools/list_changed" {
            self.refresher.list_changed(self.server);
        }
    }

    fn request(&self, _: ServerRequest) -> Option<futures_util::future::BoxFuture<'static, Reply>> {
        None
    }
}
