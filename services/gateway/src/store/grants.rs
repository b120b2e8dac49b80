//! Approvals for the rest of a session.

use gatehouse_types::{GrantId, InteractionId, ServerId, SessionId};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    Connection,
    sessions::{self, count},
};
use crate::{error::Error, registry::grant::Grant};

/// Most grants that a list shows.
const SHOWN: i64 = 1_000;

/// A grant to keep.
#[derive(Debug)]
pub struct NewGrant<'a> {
    /// The session.
    pub session: SessionId,
    /// The server.
    pub server: ServerId,
    /// Name of the tool there.
    pub tool: &'a str,
    /// The definition that the person saw.
    pub fingerprint: &'a str,
    /// The card that was answered.
    pub interaction: InteractionId,
    /// Who answered.
    pub by: &'a str,
    /// When.
    pub at: OffsetDateTime,
}

/// Keeps a grant in place of an older one for the same tool. [`Error::NotFound`] when the session or the server is gone.
pub async fn put(connection: &mut Connection, grant: &NewGrant<'_>) -> Result<(), Error> {
    // The server first, as a listing does that drops grants.
    sqlx::query_scalar!("SELECT id FROM servers WHERE id = $1 FOR KEY SHARE", grant.server.uuid())
        .fetch_optional(&mut *connection)
        .await?
        .ok_or_else(|| Error::not_found("server", grant.server.to_string()))?;
    let session = sessions::lock(connection, &grant.session.to_string()).await?;
    sqlx::query!(
        "INSERT INTO grants (id, session_id, server_id, tool, fingerprint, interaction_id, granted_by, granted_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (session_id, server_id, tool) DO UPDATE SET
             id = excluded.id, fingerprint = excluded.fingerprint, interaction_id = excluded.interaction_id,
             granted_by = excluded.granted_by, granted_at = excluded.granted_at",
        GrantId::new().uuid(),
        session.uuid(),
        grant.server.uuid(),
        grant.tool,
        grant.fingerprint,
        grant.interaction.uuid(),
        grant.by,
        grant.at
    )
    .execute(&mut *connection)
    .await?;
    count(connection, session).await
}

struct Row {
    id: Uuid,
    server: String,
    tool: String,
    interaction_id: Uuid,
    granted_by: String,
    granted_at: OffsetDateTime,
}

impl From<Row> for Grant {
    fn from(row: Row) -> Self {
        Self {
            id: GrantId::from_uuid(row.id),
            server: row.server,
            tool: row.tool,
            interaction: InteractionId::from_uuid(row.interaction_id),
            by: row.granted_by,
            at: row.granted_at,
        }
    }
}

/// The grants of a session that count now, in the order of server and tool.
pub async fn list(connection: &mut Connection, session: &str) -> Result<Vec<Grant>, Error> {
    let session = sessions::get(connection, session).await?.id;
    let rows = sqlx::query_as!(
        Row,
        "SELECT g.id, v.name AS server, g.tool, g.interaction_id, g.granted_by, g.granted_at
         FROM grants g JOIN servers v ON v.id = g.server_id
         JOIN tools t ON t.server_id = g.server_id AND t.name = g.tool AND t.fingerprint = g.fingerprint
         WHERE g.session_id = $1 AND t.position IS NOT NULL ORDER BY v.name, g.tool LIMIT $2",
        session.uuid(),
        SHOWN
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Grant::from).collect())
}

/// Takes grants of a session back: one, or all. Returns how many.
pub async fn revoke(connection: &mut Connection, session: &str, grant: Option<GrantId>) -> Result<u64, Error> {
    let session = sessions::lock(connection, session).await?;
    let revoked = sqlx::query!(
        "DELETE FROM grants WHERE session_id = $1 AND ($2::uuid IS NULL OR id = $2)",
        session.uuid(),
        grant.map(GrantId::uuid)
    )
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if revoked > 0 {
        count(connection, session).await?;
    }
    Ok(revoked)
}

/// Drops the grants for tools of a server whose definition is not the one that was approved any more, or that are gone: should it
/// come back, a person is asked again. Takes the locks of the sessions concerned, so it comes before the change is counted.
pub async fn drop_outdated(connection: &mut Connection, server: ServerId) -> Result<(), Error> {
    let sessions = sqlx::query_scalar!(
        "SELECT id FROM sessions WHERE deleted_at IS NULL AND id IN (
             SELECT session_id FROM grants g WHERE server_id = $1 AND NOT EXISTS (
                 SELECT FROM tools t WHERE t.server_id = g.server_id AND t.name = g.tool AND t.fingerprint = g.fingerprint
                 AND t.position IS NOT NULL))
         ORDER BY id FOR UPDATE",
        server.uuid()
    )
    .fetch_all(&mut *connection)
    .await?;
    if sessions.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "DELETE FROM grants g WHERE server_id = $1 AND session_id = ANY($2) AND NOT EXISTS (
             SELECT FROM tools t WHERE t.server_id = g.server_id AND t.name = g.tool AND t.fingerprint = g.fingerprint
             AND t.position IS NOT NULL)",
        server.uuid(),
        &sessions
    )
    .execute(&mut *connection)
    .await?;
    for session in sessions {
        count(connection, SessionId::from_uuid(session)).await?;
    }
    Ok(())
}
