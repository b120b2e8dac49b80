//! What the path of a call reads instead of the database: the catalog, sessions by their tokens, ended MCP sessions.
//!
//! A task asks for the change counters every [`POLL`] and loads what has moved, so that a change counts within a second
//! everywhere. A replica that could not confirm its counters for [`TRUSTED`] asks the database before each call.

mod sessions;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use gatehouse_store::{Keyring, Place, epoch, epoch::Epoch};
use gatehouse_types::{Clock, EdgeSessionId, ServerId, Settings};
use secrecy::{ExposeSecret as _, SecretString};
use time::OffsetDateTime;
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;

pub use self::sessions::{Active, Activity, Facts, Principal, Session, Sessions};
use crate::{
    audit::mask::MaskRules,
    catalog::{Catalog, Server},
    registry::stdio::Stdio,
    store::{
        self, DbError, Pool, edge_sessions,
        snapshot::{self as rows, KnownDefinitions, ServerRow},
    },
};

/// How often the counters are read.
pub const POLL: Duration = Duration::from_millis(300);
/// How long a snapshot counts that could not be confirmed.
pub const TRUSTED: Duration = Duration::from_secs(5);

/// Calls that wait for the database together share its failure, and ask again after this time.
const SHARE_FAILURE: Duration = Duration::from_secs(1);

/// Why the snapshot cannot be used or brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database does not answer.
    #[error("the database does not answer")]
    Database(#[from] DbError),
    /// The database did not answer a moment ago.
    #[error("the database did not answer a moment ago")]
    JustFailed,
}

/// The state in memory.
pub struct Snapshot {
    pool: Pool,
    keyring: Arc<Keyring>,
    clock: Arc<dyn Clock>,
    catalog: ArcSwap<Catalog>,
    /// Sessions, tokens and ended MCP sessions.
    pub sessions: Sessions,
    began: Instant,
    /// Milliseconds after `began` at which the counters were last confirmed.
    confirmed: AtomicU64,
    /// Counts what was loaded; whoever waits for a change hears it here.
    changes: watch::Sender<u64>,
    /// The counters that were last loaded. The lock makes loading single.
    known: Mutex<Known>,
}

struct Known {
    sessions_epoch: i64,
    /// When the database last did not answer; `None` when it did.
    failed: Option<Instant>,
    definitions: KnownDefinitions,
}

impl Snapshot {
    /// Loads the snapshot for the first time.
    pub async fn load(pool: Pool, keyring: Arc<Keyring>, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let empty = Catalog::new(0, Settings::default(), Vec::new(), Vec::new(), Vec::new());
        let snapshot = Self {
            sessions: Sessions::new(pool.clone()),
            pool,
            keyring,
            clock,
            catalog: ArcSwap::from_pointee(empty),
            began: Instant::now(),
            confirmed: AtomicU64::new(0),
            changes: watch::Sender::new(0),
            known: Mutex::new(Known { sessions_epoch: 0, failed: None, definitions: KnownDefinitions::new() }),
        };
        snapshot.refresh().await?;
        Ok(snapshot)
    }

    /// The catalog as last loaded.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Changes of the catalog or of sessions.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns at once while the counters were confirmed within [`TRUSTED`]; asks the database otherwise.
    pub async fn ensure_trusted(&self) -> Result<(), Error> {
        let now = self.millis();
        let confirmed = self.confirmed.load(Ordering::Relaxed);
        if now.saturating_sub(confirmed) < u64::try_from(TRUSTED.as_millis()).unwrap_or(u64::MAX) {
            return Ok(());
        }
        self.confirm_since(now).await
    }

    /// Asks the database for what has moved until now, however fresh the snapshot is: a person is about to be asked something.
    /// Callers that come together share one question.
    pub async fn confirm(&self) -> Result<(), Error> {
        // What was asked within this millisecond may have been asked before.
        self.confirm_since(self.millis() + 1).await
    }

    /// Makes sure that the counters were asked for at this time or later.
    async fn confirm_since(&self, since: u64) -> Result<(), Error> {
        let mut known = self.known.lock().await;
        // Someone else may have asked while this caller waited: its answer counts for all who waited with it.
        if self.confirmed.load(Ordering::Relaxed) >= since {
            return Ok(());
        }
        if known.failed.is_some_and(|failed| failed.elapsed() < SHARE_FAILURE) {
            return Err(Error::JustFailed);
        }
        self.load_moved(&mut known).await
    }

    /// Reads the counters and loads what has moved.
    pub async fn refresh(&self) -> Result<(), Error> {
        let mut known = self.known.lock().await;
        self.load_moved(&mut known).await
    }

    async fn load_moved(&self, known: &mut Known) -> Result<(), Error> {
        let loaded = timeout(store::ANSWER_WITHIN, self.load_what_moved(known)).await;
        let loaded = loaded.unwrap_or_else(|_| Err(Error::Database(store::no_answer())));
        known.failed = loaded.is_err().then(Instant::now);
        loaded
    }

    async fn load_what_moved(&self, known: &mut Known) -> Result<(), Error> {
        let asked = self.millis();
        let mut connection = self.pool.acquire().await?;
        let epoch = epoch::read(&mut connection).await?;
        drop(connection);
        let mut moved = self.load_sessions(known, epoch).await?;
        if epoch.catalog != self.catalog.load().epoch {
            self.load_catalog(known).await?;
            moved = true;
        }
        if moved {
            self.changes.send_modify(|changes| *changes += 1);
        }
        self.confirmed.store(asked, Ordering::Relaxed);
        Ok(())
    }

    /// Keeps the snapshot up to date until `shutdown`.
    pub async fn follow(&self, shutdown: CancellationToken) {
        let mut tick = interval(POLL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failing = false;
        let mut turns: u64 = 0;
        while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
            match self.refresh().await {
                Ok(()) => {
                    if std::mem::take(&mut failing) {
                        tracing::info!("the change counters can be read again");
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        let why = gatehouse_platform::error::chain(&error);
                        tracing::warn!(error.message = why, "the change counters cannot be read; trying again");
                    }
                }
            }
            turns += 1;
            if turns.is_multiple_of(200) {
                self.sessions.forget_unused(self.clock.now());
            }
        }
    }

    /// Ends an engine's MCP session everywhere.
    pub async fn end_edge_session(
        &self,
        id: EdgeSessionId,
        session: gatehouse_types::SessionId,
        expires_at: OffsetDateTime,
    ) -> Result<(), Error> {
        self.sessions.edge_session_ended(id, expires_at);
        let ended = async {
            let mut transaction = gatehouse_store::begin(&self.pool).await?;
            let epoch = epoch::bump_sessions(&mut transaction).await?;
            edge_sessions::end(&mut transaction, id, session, epoch, expires_at).await?;
            transaction.commit().await
        };
        Ok(store::within(store::ANSWER_WITHIN, ended).await?)
    }

    /// Whether anything had moved.
    async fn load_sessions(&self, known: &mut Known, epoch: Epoch) -> Result<bool, Error> {
        if epoch.sessions == known.sessions_epoch {
            return Ok(false);
        }
        let mut connection = self.pool.acquire().await?;
        let ended = edge_sessions::ended_since(&mut connection, known.sessions_epoch, self.clock.now()).await?;
        for (id, expires_at) in ended {
            self.sessions.edge_session_ended(id, expires_at);
        }
        // At the first load nothing is in memory yet that could have changed.
        if known.sessions_epoch > 0 {
            let changed = rows::sessions_changed(&mut connection, known.sessions_epoch).await?;
            self.sessions.apply(&mut connection, changed).await?;
        }
        known.sessions_epoch = epoch.sessions;
        Ok(true)
    }

    async fn load_catalog(&self, known: &mut Known) -> Result<(), Error> {
        let mut transaction = self.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let loaded = rows::load(&mut transaction, &known.definitions).await?;
        transaction.commit().await?;
        known.definitions = loaded
            .tools
            .iter()
            .map(|tool| ((tool.server, tool.name.clone()), (tool.fingerprint.clone(), Arc::clone(&tool.definition))))
            .collect();
        let servers = loaded.servers.into_iter().map(|row| self.server(row)).collect();
        let catalog = Catalog::new(loaded.epoch.catalog, loaded.settings, servers, loaded.tools, loaded.profiles);
        self.catalog.store(Arc::new(catalog));
        Ok(())
    }

    fn server(&self, row: ServerRow) -> Server {
        let id = ServerId::from_uuid(row.id);
        let mut problem = row.state_message;
        let headers = match row.headers_sealed.as_deref().map(|sealed| self.open_headers(id, sealed)) {
            None => Vec::new(),
            Some(Some(headers)) => headers,
            Some(None) => {
                "its headers cannot be unsealed: set them again, or put the key that sealed them back"
                    .clone_into(&mut problem);
                Vec::new()
            }
        };
        let positive = |number: i32| u32::try_from(number).unwrap_or(1).max(1);
        Server {
            id,
            name: row.name,
            enabled: row.enabled,
            url: row.url,
            stdio: row.stdio.as_deref().and_then(Stdio::from_stored),
            headers,
            connect_timeout: Duration::from_millis(u64::from(positive(row.connect_timeout_ms))),
            request_timeout: Duration::from_millis(u64::from(positive(row.request_timeout_ms))),
            max_concurrency: positive(row.max_concurrency),
            listed_at: row.listed_at,
            problem,
            mask_rules: MaskRules::from_stored(&row.mask_rules),
            hash: std::sync::OnceLock::new(),
        }
    }

    fn open_headers(&self, id: ServerId, sealed: &[u8]) -> Option<Vec<(String, SecretString)>> {
        let opened = self.keyring.open(&Place::new("servers", "headers_sealed", id), sealed);
        let opened = opened.inspect_err(|error| {
            tracing::error!(server.id = %id, error.message = %error, "a server's headers cannot be unsealed");
        });
        let headers: HashMap<String, String> = serde_json::from_slice(opened.ok()?.expose_secret()).ok()?;
        let mut headers: Vec<_> = headers.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect();
        headers.sort_by(|(one, _), (other, _)| one.cmp(other));
        Some(headers)
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
