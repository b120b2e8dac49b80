//! What leaves the database when it is old enough: a batch a statement, so that no lock is held for long. Replicas that
//! sweep at the same time take different rows.

use time::OffsetDateTime;

use super::{Connection, DbError};

/// Rows of one batch.
pub const BATCH: i64 = 1_000;

/// Deletes a batch of calls that came before `before`. Never one that still runs. Gives how many were deleted.
pub async fn calls(connection: &mut Connection, before: OffsetDateTime) -> Result<u64, DbError> {
    let done = sqlx::query!(
        "DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE started_at < $1 AND outcome IS NOT NULL
                                        ORDER BY started_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        before,
        BATCH
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

/// Deletes those of the oldest events that were appended before `before`. Gives how many were deleted.
pub async fn events(connection: &mut Connection, before: OffsetDateTime) -> Result<u64, DbError> {
    // Ids are given in the order of time, nearly: the oldest few are looked at, and no index on the time is needed.
    let done = sqlx::query!(
        "DELETE FROM events WHERE created_at < $1
           AND id IN (SELECT id FROM events ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)",
        before,
        BATCH
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

/// Deletes a batch of what belonged to sessions that were deleted before `before`: files, "don't ask again", MCP sessions
/// at servers, tokens, runs. Gives how many rows were deleted of the kind with the most.
pub async fn of_deleted_sessions(connection: &mut Connection, before: OffsetDateTime) -> Result<u64, DbError> {
    let counts = [
        sqlx::query!(
            "DELETE FROM files WHERE (session_id, path) IN (
                 SELECT session_id, path FROM files JOIN sessions ON sessions.id = session_id
                 WHERE deleted_at < $1 LIMIT $2 FOR UPDATE OF files SKIP LOCKED)",
            before,
            BATCH
        )
        .execute(&mut *connection)
        .await?,
        sqlx::query!(
            "DELETE FROM grants WHERE id IN (SELECT grants.id FROM grants JOIN sessions ON sessions.id = session_id
                                             WHERE deleted_at < $1 LIMIT $2 FOR UPDATE OF grants SKIP LOCKED)",
            before,
            BATCH
        )
        .execute(&mut *connection)
        .await?,
        sqlx::query!(
            "DELETE FROM upstream_sessions WHERE (server_id, session_id) IN (
                 SELECT server_id, session_id FROM upstream_sessions JOIN sessions ON sessions.id = session_id
                 WHERE deleted_at < $1 LIMIT $2 FOR UPDATE OF upstream_sessions SKIP LOCKED)",
            before,
            BATCH
        )
        .execute(&mut *connection)
        .await?,
        sqlx::query!(
            "DELETE FROM session_tokens WHERE id IN (
                 SELECT session_tokens.id FROM session_tokens JOIN sessions ON sessions.id = session_id
                 WHERE deleted_at < $1 LIMIT $2 FOR UPDATE OF session_tokens SKIP LOCKED)",
            before,
            BATCH
        )
        .execute(&mut *connection)
        .await?,
        sqlx::query!(
            "DELETE FROM runs WHERE id IN (SELECT runs.id FROM runs JOIN sessions ON sessions.id = session_id
                                           WHERE deleted_at < $1 LIMIT $2 FOR UPDATE OF runs SKIP LOCKED)",
            before,
            BATCH
        )
        .execute(&mut *connection)
        .await?,
    ];
    Ok(counts.iter().map(sqlx::postgres::PgQueryResult::rows_affected).max().unwrap_or(0))
}

/// Deletes a batch of sessions that were deleted before `before` and that the audit holds no call of: until then their row
/// says which session an external id meant. Gives how many were deleted.
pub async fn sessions(connection: &mut Connection, before: OffsetDateTime) -> Result<u64, DbError> {
    let done = sqlx::query!(
        "DELETE FROM sessions WHERE id IN (
             SELECT id FROM sessions WHERE deleted_at < $1 AND NOT EXISTS (SELECT FROM calls WHERE session_id = sessions.id)
             ORDER BY deleted_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        before,
        BATCH
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}
