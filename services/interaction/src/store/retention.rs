//! Cards that are old enough to be deleted.

use super::{Connection, DbError};

/// Most cards that are deleted by one statement.
pub const AT_ONCE: u64 = 1_000;

/// Deletes cards that were closed more than so many days ago. Those that somebody else holds are left to the next time.
pub async fn delete(connection: &mut Connection, days: u32) -> Result<u64, DbError> {
    let deleted = sqlx::query!(
        "DELETE FROM interactions WHERE id IN (
             SELECT id FROM interactions WHERE closed_at < now() - make_interval(days => $1)
             ORDER BY closed_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        i32::try_from(days).unwrap_or(i32::MAX),
        i64::try_from(AT_ONCE).unwrap_or(i64::MAX)
    )
    .execute(connection)
    .await?;
    Ok(deleted.rows_affected())
}
