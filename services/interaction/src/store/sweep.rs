//! Cards that nobody will answer.

use super::{Connection, DbError};

/// Most cards that are closed in one transaction.
pub const AT_ONCE: usize = 500;
/// Seconds after which a replica's heartbeat has lapsed, as the gateway counts them.
pub const LEASE_SEC: f64 = 15.0;
/// How long after an answer it is looked whether anybody was left to use it, in seconds: several leases, and a pause of the database.
const ANSWERS_SEC: f64 = 600.0;

/// Closes the cards whose session is deleted, whose time is over, or, with `lapses`, whose replica is gone, and returns the words. A
/// lapsed heartbeat counts only after one lease of database uptime, so that a database restart interrupts nothing; a card that is
/// younger than one lease is left alone. Cards that somebody else holds are left to the next time.
///
/// A card that a person answered when its replica was gone already is closed as well: the call's record says that the answer was not
/// used, and nobody is left to use it.
pub async fn close_due(connection: &mut Connection, lapses: bool) -> Result<Vec<String>, DbError> {
    sqlx::query_scalar!(
        "WITH due AS MATERIALIZED (
             SELECT i.id, i.state, ends.word
             FROM interactions i CROSS JOIN LATERAL (SELECT CASE
                 WHEN i.state = 'open' AND NOT EXISTS (SELECT FROM sessions s WHERE s.id = i.session_id AND s.deleted_at IS NULL)
                     THEN 'session_deleted'
                 WHEN i.state = 'open' AND i.expires_at <= clock_timestamp() THEN 'timed_out'
                 WHEN $3 AND pg_postmaster_start_time() < now() - make_interval(secs => $1)
                     AND i.created_at < now() - make_interval(secs => $1)
                     AND NOT EXISTS (SELECT FROM replicas r WHERE r.id = i.replica_id
                                     AND r.heartbeat_at > now() - make_interval(secs => $1))
                     AND (i.state = 'open' OR NOT EXISTS (SELECT FROM calls c WHERE c.id = i.call_id
                                                          AND c.decision NOT IN ('waiting', 'interrupted')))
                     THEN 'interrupted'
             END AS word) ends
             WHERE (i.state = 'open' OR (i.state = 'answered' AND i.closed_at > now() - make_interval(secs => $4)))
                 AND ends.word IS NOT NULL
             ORDER BY i.expires_at LIMIT $2
             FOR UPDATE OF i SKIP LOCKED
         )
         UPDATE interactions SET state = due.word, closed_at = clock_timestamp(), version = version + 1
         FROM due WHERE due.id = interactions.id AND interactions.state = due.state
         RETURNING interactions.state",
        LEASE_SEC,
        i64::try_from(AT_ONCE).unwrap_or(i64::MAX),
        lapses,
        ANSWERS_SEC
    )
    .fetch_all(connection)
    .await
}
