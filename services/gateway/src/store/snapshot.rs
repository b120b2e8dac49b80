//! Reading what the path of a call needs: the catalog as a whole, sessions by their tokens.

use std::{collections::HashMap, sync::Arc};

use gatehouse_store::epoch::{self, Epoch};
use gatehouse_types::{
    GrantId, PermissionMode, Policy, ProfileId, RunId, ServerId, SessionId, Settings, TokenId, hints::DeclaredHints,
};
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::catalog::{Profile, ToolRow};

/// A server as stored.
pub struct ServerRow {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Whether it is switched on.
    pub enabled: bool,
    /// The MCP endpoint.
    pub url: String,
    /// The program, as JSON, when it is one.
    pub stdio: Option<String>,
    /// Sealed header values.
    pub headers_sealed: Option<Vec<u8>>,
    /// Milliseconds for connecting.
    pub connect_timeout_ms: i32,
    /// Milliseconds for a request.
    pub request_timeout_ms: i32,
    /// Requests in flight at once.
    pub max_concurrency: i32,
    /// When its tools were last listed.
    pub listed_at: Option<OffsetDateTime>,
    /// What is wrong with it; empty when healthy.
    pub state_message: String,
    /// Mask rules.
    pub mask_rules: Vec<String>,
}

/// Everything that the catalog is built from.
pub struct Loaded {
    /// The counters it belongs to.
    pub epoch: Epoch,
    /// The settings.
    pub settings: Settings,
    /// The servers, in the order of their names.
    pub servers: Vec<ServerRow>,
    /// The listed tools, in the order of their lists.
    pub tools: Vec<ToolRow>,
    /// The profiles.
    pub profiles: Vec<Profile>,
}

/// Definitions that are already in memory, by server, tool and fingerprint.
pub type KnownDefinitions = HashMap<(ServerId, String), (String, Arc<str>)>;

/// Loads the catalog. The caller's transaction must be REPEATABLE READ, so that the parts belong together.
pub async fn load(connection: &mut PgConnection, known: &KnownDefinitions) -> Result<Loaded, sqlx::Error> {
    let epoch = epoch::read(connection).await?;
    let settings = gatehouse_store::settings::load(connection).await?.settings;
    let servers = sqlx::query_as!(
        ServerRow,
        "SELECT id, name, enabled, url, stdio, headers_sealed, connect_timeout_ms, request_timeout_ms, max_concurrency,
                listed_at, state_message, mask_rules
         FROM servers ORDER BY name"
    )
    .fetch_all(&mut *connection)
    .await?;
    let tools = load_tools(connection, known).await?;
    let profiles = load_profiles(connection).await?;
    Ok(Loaded { epoch, settings, servers, tools, profiles })
}

async fn load_tools(connection: &mut PgConnection, known: &KnownDefinitions) -> Result<Vec<ToolRow>, sqlx::Error> {
    let rows = sqlx::query!(
        "SELECT server_id, name, fingerprint, read_only, destructive, idempotent, policy
         FROM tools WHERE position IS NOT NULL ORDER BY server_id, position"
    )
    .fetch_all(&mut *connection)
    .await?;
    let in_memory = |server: Uuid, name: &str, fingerprint: &str| {
        let known = known.get(&(ServerId::from_uuid(server), name.to_owned()));
        known.filter(|(own, _)| own == fingerprint).map(|(_, definition)| Arc::clone(definition))
    };
    let missing = rows.iter().filter(|row| in_memory(row.server_id, &row.name, &row.fingerprint).is_none());
    let (servers, names): (Vec<Uuid>, Vec<String>) = missing.map(|row| (row.server_id, row.name.clone())).unzip();
    let mut fetched = HashMap::new();
    if !servers.is_empty() {
        let definitions = sqlx::query!(
            r#"SELECT server_id, name, definition FROM tools
               JOIN unnest($1::uuid[], $2::text[]) AS wanted (server_id, name) USING (server_id, name)"#,
            &servers,
            &names
        )
        .fetch_all(connection)
        .await?;
        fetched
            .extend(definitions.into_iter().map(|row| ((row.server_id, row.name), Arc::<str>::from(row.definition))));
    }
    let tools = rows.into_iter().filter_map(|row| {
        let definition = in_memory(row.server_id, &row.name, &row.fingerprint)
            .or_else(|| fetched.get(&(row.server_id, row.name.clone())).cloned())?;
        Some(ToolRow {
            server: ServerId::from_uuid(row.server_id),
            name: row.name,
            definition,
            fingerprint: row.fingerprint,
            overrides: DeclaredHints {
                read_only: row.read_only,
                destructive: row.destructive,
                idempotent: row.idempotent,
                open_world: None,
            },
            policy: row.policy.as_deref().and_then(Policy::parse),
        })
    });
    Ok(tools.collect())
}

async fn load_profiles(connection: &mut PgConnection) -> Result<Vec<Profile>, sqlx::Error> {
    let ids = sqlx::query_scalar!("SELECT id FROM profiles").fetch_all(&mut *connection).await?;
    let rows = sqlx::query!(
        "SELECT profile_id, server_id, tools FROM profile_servers JOIN servers ON servers.id = server_id ORDER BY servers.name"
    )
    .fetch_all(connection)
    .await?;
    let mut profiles: HashMap<Uuid, Profile> =
        ids.into_iter().map(|id| (id, Profile { id: ProfileId::from_uuid(id), servers: Vec::new() })).collect();
    for row in rows {
        if let Some(profile) = profiles.get_mut(&row.profile_id) {
            let tools = row.tools.map(|tools| tools.into_iter().collect());
            profile.servers.push((ServerId::from_uuid(row.server_id), tools));
        }
    }
    Ok(profiles.into_values().collect())
}

/// A session as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Its profile.
    pub profile: ProfileId,
    /// `claude_code`, `codex` or `other`.
    pub engine: String,
    /// Its permission mode.
    pub mode: PermissionMode,
    /// Its folder under the configured root; empty for none.
    pub workspace: String,
    /// BCP 47 tag.
    pub locale: String,
    /// Its last change.
    pub epoch: i64,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// The columns of [`SessionRow`], as they are read.
struct SessionColumns {
    id: Uuid,
    profile_id: Uuid,
    engine: String,
    permission_mode: String,
    workspace: String,
    locale: String,
    epoch: i64,
    deleted: bool,
}

impl From<SessionColumns> for SessionRow {
    fn from(row: SessionColumns) -> Self {
        Self {
            id: SessionId::from_uuid(row.id),
            profile: ProfileId::from_uuid(row.profile_id),
            engine: row.engine,
            // The table holds no other word; if it did, nothing may run that a person did not see.
            mode: PermissionMode::parse(&row.permission_mode).unwrap_or(PermissionMode::ReadOnly),
            workspace: row.workspace,
            locale: row.locale,
            epoch: row.epoch,
            deleted: row.deleted,
        }
    }
}

/// The session and actor of a token that is good, by the SHA-256 of the token.
pub async fn find_token(
    connection: &mut PgConnection,
    hash: &[u8; 32],
) -> Result<Option<(TokenId, String, SessionRow)>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT t.id AS token_id, t.actor, s.id, s.profile_id, s.engine, s.permission_mode, s.workspace, s.locale, s.epoch
         FROM session_tokens t JOIN sessions s ON s.id = t.session_id
         WHERE t.hash = $1 AND t.revoked_at IS NULL AND s.deleted_at IS NULL",
        hash.as_slice()
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| {
        let session = SessionColumns {
            id: row.id,
            profile_id: row.profile_id,
            engine: row.engine,
            permission_mode: row.permission_mode,
            workspace: row.workspace,
            locale: row.locale,
            epoch: row.epoch,
            deleted: false,
        };
        (TokenId::from_uuid(row.token_id), row.actor, session.into())
    }))
}

/// A session that is not deleted.
pub async fn find_session(connection: &mut PgConnection, id: SessionId) -> Result<Option<SessionRow>, sqlx::Error> {
    let row = sqlx::query_as!(
        SessionColumns,
        r#"SELECT id, profile_id, engine, permission_mode, workspace, locale, epoch, false AS "deleted!"
           FROM sessions WHERE id = $1 AND deleted_at IS NULL"#,
        id.uuid()
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(SessionRow::from))
}

/// Sessions that changed after `since`, deleted ones included.
pub async fn sessions_changed(connection: &mut PgConnection, since: i64) -> Result<Vec<SessionRow>, sqlx::Error> {
    let rows = sqlx::query_as!(
        SessionColumns,
        r#"SELECT id, profile_id, engine, permission_mode, workspace, locale, epoch, deleted_at IS NOT NULL AS "deleted!"
           FROM sessions WHERE epoch > $1"#,
        since
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(SessionRow::from).collect())
}

/// An approval for the rest of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// Its id.
    pub id: GrantId,
    /// The definition that the person saw.
    pub fingerprint: String,
    /// Who gave it.
    pub by: String,
    /// When.
    pub at: OffsetDateTime,
}

/// What belongs to a session besides its row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Belongings {
    /// The open runs, by actor.
    pub runs: HashMap<String, RunId>,
    /// Approvals for the rest of the session, by server and tool.
    pub grants: HashMap<(ServerId, String), Granted>,
}

/// The open runs and the approvals of a session.
pub async fn belongings(connection: &mut PgConnection, session: SessionId) -> Result<Belongings, sqlx::Error> {
    let runs = sqlx::query!("SELECT actor, id FROM runs WHERE session_id = $1 AND ended_at IS NULL", session.uuid())
        .fetch_all(&mut *connection)
        .await?;
    let grants = sqlx::query!(
        "SELECT id, server_id, tool, fingerprint, granted_by, granted_at FROM grants WHERE session_id = $1",
        session.uuid()
    )
    .fetch_all(connection)
    .await?;
    let grants = grants.into_iter().map(|row| {
        let granted = Granted {
            id: GrantId::from_uuid(row.id),
            fingerprint: row.fingerprint,
            by: row.granted_by,
            at: row.granted_at,
        };
        ((ServerId::from_uuid(row.server_id), row.tool), granted)
    });
    Ok(Belongings {
        runs: runs.into_iter().map(|row| (row.actor, RunId::from_uuid(row.id))).collect(),
        grants: grants.collect(),
    })
}
