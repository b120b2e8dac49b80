//! Gateway replicas and what they leave behind.
//!
//! Time is the database's: a replica whose clock is wrong must not orphan the others.

use gatehouse_types::ReplicaId;
use sqlx::PgConnection;

/// Seconds after which a heartbeat has lapsed.
pub const LEASE_SEC: i32 = 15;

/// Records that a replica lives.
pub async fn beat(connection: &mut PgConnection, id: ReplicaId, address: &str) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO replicas (id, address, started_at, heartbeat_at) VALUES ($1, $2, now(), now())
         ON CONFLICT (id) DO UPDATE SET heartbeat_at = now()",
        id.uuid(),
        address
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records that a replica has ended and holds nothing any more.
pub async fn leave(connection: &mut PgConnection, id: ReplicaId) -> Result<(), sqlx::Error> {
    sqlx::query!("DELETE FROM replicas WHERE id = $1", id.uuid()).execute(connection).await?;
    Ok(())
}

/// Closes the running calls of replicas that are gone, as `interrupted`, and returns how many. A lapse counts only after one
/// lease of database uptime, so that a database restart orphans nothing.
pub async fn close_orphans(connection: &mut PgConnection) -> Result<u64, sqlx::Error> {
    let closed = sqlx::query!(
        "UPDATE calls SET outcome = 'interrupted',
                error = CASE decision
                    WHEN 'waiting' THEN 'the gateway ended while the call waited for approval; nothing was carried out'
                    ELSE 'the gateway ended while the call ran; it may or may not have been carried out' END,
                decision = CASE decision WHEN 'waiting' THEN 'interrupted' ELSE decision END,
                duration_us = greatest(0, (extract(epoch FROM now() - started_at) * 1000000)::bigint)
         WHERE outcome IS NULL
           AND pg_postmaster_start_time() < now() - make_interval(secs => $1)
           AND started_at < now() - make_interval(secs => $1)
           AND NOT EXISTS (SELECT FROM replicas r WHERE r.id = calls.replica_id
                           AND r.heartbeat_at > now() - make_interval(secs => $1))",
        f64::from(LEASE_SEC)
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!("DELETE FROM replicas WHERE heartbeat_at < now() - interval '1 day'").execute(connection).await?;
    Ok(closed.rows_affected())
}
