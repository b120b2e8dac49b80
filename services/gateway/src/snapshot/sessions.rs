//! Sessions by their tokens.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use gatehouse_types::{EdgeSessionId, Locale, PermissionMode, ProfileId, RunId, ServerId, SessionId, TokenId};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    registry::session::EngineKind,
    store::{
        Connection, DbError, Pool,
        snapshot::{self as rows, Belongings, Granted, SessionRow},
    },
};

/// How long an unknown token is remembered as unknown.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);
/// Most unknown tokens remembered at once.
const UNKNOWN_MOST: usize = 10_000;
/// A token that was not used for so long is forgotten and read again when it comes back.
const FORGET_AFTER_SEC: i64 = 3_600;

/// What a session says, as last loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its profile.
    pub profile: ProfileId,
    /// Kind of engine that uses it; one that this version does not know counts as any other client.
    pub engine: EngineKind,
    /// What its calls may do without a person.
    pub mode: PermissionMode,
    /// Its folder under the configured root; empty for none.
    pub workspace: String,
    /// The language of its models and people.
    pub locale: Locale,
    /// Its last change.
    pub epoch: i64,
    /// Its open runs, by actor.
    pub runs: HashMap<String, RunId>,
    /// Approvals for the rest of the session, by server and tool.
    pub grants: HashMap<(ServerId, String), Granted>,
}

/// A session in memory.
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Cancelled when the session is deleted.
    pub ended: CancellationToken,
    /// What runs in it.
    pub activity: Activity,
    facts: ArcSwap<Facts>,
}

/// A good token's session and actor.
pub struct Principal {
    /// The token.
    pub token: TokenId,
    /// The actor; empty is the default one.
    pub actor: String,
    /// The session.
    pub session: Arc<Session>,
    hash: [u8; 32],
    /// The session's last change when the token was found to be good.
    good_at: i64,
    last_used: AtomicI64,
}

/// Sessions, tokens and ended MCP sessions in memory.
pub struct Sessions {
    pool: Pool,
    memory: RwLock<Memory>,
}

#[derive(Default)]
struct Memory {
    tokens: HashMap<[u8; 32], Arc<Principal>>,
    sessions: HashMap<SessionId, Arc<Session>>,
    unknown: HashMap<[u8; 32], Instant>,
    ended: HashMap<EdgeSessionId, OffsetDateTime>,
    /// Grows with every change, so that a token read before a change is not remembered after it.
    changes: u64,
}

/// Calls in flight of a session on this replica.
#[derive(Debug, Default)]
pub struct Activity {
    in_flight: AtomicU32,
    idle_since: Mutex<Option<Instant>>,
}

/// A call in flight, until it is dropped.
#[derive(Debug)]
pub struct Active<'a>(&'a Activity);

impl Activity {
    /// Counts a call until the guard is dropped.
    pub fn begin(&self) -> Active<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Active(self)
    }

    /// Whether no call has been in flight for so long.
    pub fn idle_for(&self, pause: Duration) -> bool {
        let since = *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner);
        self.in_flight.load(Ordering::Relaxed) == 0 && since.is_none_or(|since| since.elapsed() >= pause)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        *self.0.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    fn new(row: SessionRow, belongings: Belongings) -> Self {
        Self {
            id: row.id,
            ended: CancellationToken::new(),
            activity: Activity::default(),
            facts: ArcSwap::from_pointee(Facts::new(row, belongings)),
        }
    }

    /// What it says now.
    pub fn facts(&self) -> Arc<Facts> {
        self.facts.load_full()
    }
}

impl Facts {
    fn new(row: SessionRow, belongings: Belongings) -> Self {
        Self {
            profile: row.profile,
            engine: EngineKind::from_stored(&row.engine).unwrap_or_default(),
            mode: row.mode,
            workspace: row.workspace,
            locale: Locale::of(&row.locale),
            epoch: row.epoch,
            runs: belongings.runs,
            grants: belongings.grants,
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Sessions {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, memory: RwLock::default() }
    }

    /// The principal of a bearer token: from memory, or read once from the database. `None` for a token that is not good.
    pub async fn principal(&self, token: &str, now: OffsetDateTime) -> Result<Option<Arc<Principal>>, DbError> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let changes = {
            let memory = self.read();
            if let Some(principal) = memory.tokens.get(&hash) {
                principal.last_used.store(now.unix_timestamp(), Ordering::Relaxed);
                return Ok(Some(Arc::clone(principal)));
            }
            if memory.unknown.get(&hash).is_some_and(|since| since.elapsed() < UNKNOWN_FOR) {
                return Ok(None);
            }
            memory.changes
        };
        let mut connection = self.pool.acquire().await?;
        let Some((token, actor, row)) = rows::find_token(&mut connection, &hash).await? else {
            let mut memory = self.write();
            if memory.unknown.len() >= UNKNOWN_MOST {
                memory.unknown.clear();
            }
            memory.unknown.insert(hash, Instant::now());
            return Ok(None);
        };
        let belongings = rows::belongings(&mut connection, row.id).await?;
        let mut memory = self.write();
        let good_at = row.epoch;
        let session = memory.session(row, belongings);
        let last_used = AtomicI64::new(now.unix_timestamp());
        let principal = Arc::new(Principal { token, actor, session, hash, good_at, last_used });
        // What was read before a change may be old: use it once, and read again next time.
        if memory.changes == changes {
            memory.unknown.remove(&hash);
            memory.tokens.insert(hash, Arc::clone(&principal));
        }
        Ok(Some(principal))
    }

    /// Whether a token was still good at the session's change `epoch`; asks the database when the session has changed since
    /// the token was read. A token that is replaced is a change of its session.
    pub async fn is_good(&self, principal: &Principal, epoch: i64) -> Result<bool, DbError> {
        if principal.good_at >= epoch {
            return Ok(true);
        }
        let mut connection = self.pool.acquire().await?;
        Ok(rows::find_token(&mut connection, &principal.hash).await?.is_some())
    }

    /// A session by its id, for callers that are not engines.
    pub async fn by_id(&self, id: SessionId) -> Result<Option<Arc<Session>>, DbError> {
        if let Some(session) = self.read().sessions.get(&id) {
            return Ok(Some(Arc::clone(session)));
        }
        let mut connection = self.pool.acquire().await?;
        let Some(row) = rows::find_session(&mut connection, id).await? else { return Ok(None) };
        let belongings = rows::belongings(&mut connection, id).await?;
        Ok(Some(self.write().session(row, belongings)))
    }

    /// Whether an engine's MCP session was ended.
    pub fn has_ended(&self, id: EdgeSessionId) -> bool {
        self.read().ended.contains_key(&id)
    }

    /// How many tokens and sessions are in memory.
    pub fn len(&self) -> (usize, usize) {
        let memory = self.read();
        (memory.tokens.len(), memory.sessions.len())
    }

    /// Whether nothing is in memory.
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    pub(super) fn edge_session_ended(&self, id: EdgeSessionId, expires_at: OffsetDateTime) {
        self.write().ended.insert(id, expires_at);
    }

    /// Takes over changed sessions. Their tokens are read again when they come back.
    pub(super) async fn apply(&self, connection: &mut Connection, changed: Vec<SessionRow>) -> Result<(), DbError> {
        for row in changed {
            let in_memory = self.read().sessions.contains_key(&row.id);
            let belongings = if in_memory && !row.deleted {
                rows::belongings(connection, row.id).await?
            } else {
                Belongings::default()
            };
            self.write().change(row, belongings);
        }
        Ok(())
    }

    pub(super) fn forget_unused(&self, now: OffsetDateTime) {
        let oldest = now.unix_timestamp() - FORGET_AFTER_SEC;
        let mut memory = self.write();
        memory.tokens.retain(|_, principal| principal.last_used.load(Ordering::Relaxed) >= oldest);
        // A session that someone still holds stays, so that its end reaches them.
        memory.sessions.retain(|_, session| Arc::strong_count(session) > 1);
        memory.ended.retain(|_, expires_at| *expires_at > now);
        memory.unknown.retain(|_, since| since.elapsed() < UNKNOWN_FOR);
    }

    fn read(&self) -> RwLockReadGuard<'_, Memory> {
        // The maps are whole after each statement, also when a thread has panicked.
        self.memory.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Memory> {
        self.memory.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn session(&mut self, row: SessionRow, belongings: Belongings) -> Arc<Session> {
        let known = self.sessions.get(&row.id);
        if let Some(session) = known.filter(|session| session.facts.load().epoch >= row.epoch) {
            return Arc::clone(session);
        }
        if let Some(session) = known {
            session.facts.store(Arc::new(Facts::new(row, belongings)));
            return Arc::clone(session);
        }
        let session = Arc::new(Session::new(row, belongings));
        self.sessions.insert(session.id, Arc::clone(&session));
        session
    }

    fn change(&mut self, row: SessionRow, belongings: Belongings) {
        self.changes += 1;
        self.tokens.retain(|_, principal| principal.session.id != row.id);
        if row.deleted {
            if let Some(session) = self.sessions.remove(&row.id) {
                session.ended.cancel();
            }
        } else if self.sessions.contains_key(&row.id) {
            self.session(row, belongings);
        }
    }
}
