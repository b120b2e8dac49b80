//! Engines' MCP sessions that were ended with DELETE.

use gatehouse_types::{EdgeSessionId, SessionId};
use sqlx::PgConnection;
use time::OffsetDateTime;

/// Records that an MCP session was ended. Ending it twice changes nothing.
pub async fn end(
    connection: &mut PgConnection,
    id: EdgeSessionId,
    session: SessionId,
    epoch: i64,
    expires_at: OffsetDateTime,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO ended_edge_sessions (id, session_id, epoch, expires_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        id.uuid(),
        session.uuid(),
        epoch,
        expires_at
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Ids of MCP sessions that were ended after `since` and would not have expired yet.
pub async fn ended_since(
    connection: &mut PgConnection,
    since: i64,
    now: OffsetDateTime,
) -> Result<Vec<(EdgeSessionId, OffsetDateTime)>, sqlx::Error> {
    let rows =
        sqlx::query!("SELECT id, expires_at FROM ended_edge_sessions WHERE epoch > $1 AND expires_at > $2", since, now)
            .fetch_all(connection)
            .await?;
    Ok(rows.into_iter().map(|row| (EdgeSessionId::from_uuid(row.id), row.expires_at)).collect())
}

/// Forgets those that would have expired by now.
pub async fn forget_expired(connection: &mut PgConnection) -> Result<u64, sqlx::Error> {
    let done = sqlx::query!("DELETE FROM ended_edge_sessions WHERE expires_at <= now()").execute(connection).await?;
    Ok(done.rows_affected())
}
