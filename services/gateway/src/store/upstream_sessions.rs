//! MCP sessions at upstream servers, so that a restarted or another replica can take them up. Ids are sealed by the caller.

use gatehouse_types::{ServerId, SessionId};
use sqlx::PgConnection;
use time::OffsetDateTime;

/// A stored MCP session.
pub struct Stored {
    /// The `Mcp-Session-Id`, sealed.
    pub mcp_session_id_sealed: Vec<u8>,
    /// The negotiated revision.
    pub protocol_version: String,
    /// The `initialize` result as it was sent.
    pub initialize_result: String,
}

/// Stores an MCP session in place of an older one.
pub async fn put(
    connection: &mut PgConnection,
    server: ServerId,
    session: SessionId,
    stored: &Stored,
    config_hash: &[u8],
    now: OffsetDateTime,
) -> Result<(), sqlx::Error> {
    // The server or the session may have been removed meanwhile: then there is nothing to remember.
    sqlx::query!(
        "INSERT INTO upstream_sessions
             (server_id, session_id, mcp_session_id_sealed, protocol_version, initialize_result, config_hash, used_at)
         SELECT $1, $2, $3, $4, $5, $6, $7
         WHERE EXISTS (SELECT FROM servers WHERE id = $1)
           AND EXISTS (SELECT FROM sessions WHERE id = $2 AND deleted_at IS NULL)
         ON CONFLICT (server_id, session_id) DO UPDATE SET
             mcp_session_id_sealed = excluded.mcp_session_id_sealed, protocol_version = excluded.protocol_version,
             initialize_result = excluded.initialize_result, config_hash = excluded.config_hash, used_at = excluded.used_at",
        server.uuid(),
        session.uuid(),
        stored.mcp_session_id_sealed,
        stored.protocol_version,
        stored.initialize_result,
        config_hash,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The MCP session of this server and session that was begun with this configuration.
pub async fn find(
    connection: &mut PgConnection,
    server: ServerId,
    session: SessionId,
    config_hash: &[u8],
) -> Result<Option<Stored>, sqlx::Error> {
    sqlx::query_as!(
        Stored,
        "SELECT mcp_session_id_sealed, protocol_version, initialize_result FROM upstream_sessions
         WHERE server_id = $1 AND session_id = $2 AND config_hash = $3",
        server.uuid(),
        session.uuid(),
        config_hash
    )
    .fetch_optional(connection)
    .await
}

/// Forgets an MCP session.
pub async fn remove(connection: &mut PgConnection, server: ServerId, session: SessionId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM upstream_sessions WHERE server_id = $1 AND session_id = $2",
        server.uuid(),
        session.uuid()
    )
    .execute(connection)
    .await?;
    Ok(())
}
