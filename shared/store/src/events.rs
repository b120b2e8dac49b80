//! What happened, for those who follow it: a durable stream per session, and one over everything.

use gatehouse_types::SessionId;
use serde_json::Value;
use sqlx::PgConnection;

/// Most bytes of a payload. A longer one is a defect of whoever appends it: payloads name things, they do not hold them.
pub const PAYLOAD_BYTES: usize = 64 << 10;

/// Appends an event to the stream of a session, or, with `None`, to the stream over everything. Gives its id. It is there
/// when the caller's transaction commits.
///
/// Ids of one session are given under a lock that the transaction holds until its end, so that they commit in their order:
/// who follows a session and has seen an id has seen every smaller one. Append last, since whoever else appends to the
/// session waits, and for more than one session in the order of their ids. Without a session nothing is locked: readers over
/// everything stay below the oldest transaction that is still open.
pub async fn append(
    connection: &mut PgConnection,
    session: Option<SessionId>,
    kind: &str,
    payload: &Value,
) -> Result<i64, sqlx::Error> {
    if let Some(session) = session {
        // A statement of its own: no id is given before the lock is held.
        sqlx::query!(
            "SELECT pg_advisory_xact_lock(hashtextextended('events', 0) # hashtextextended($1, 1))",
            session.to_string()
        )
        .execute(&mut *connection)
        .await?;
    }
    let text = payload.to_string();
    if !payload.is_object() || text.len() > PAYLOAD_BYTES {
        return Err(sqlx::Error::Encode(format!("the payload of an event `{kind}` is no object or too long").into()));
    }
    sqlx::query_scalar!(
        "INSERT INTO events (session_id, kind, payload) VALUES ($1, $2, $3) RETURNING id",
        session.map(SessionId::uuid),
        kind,
        text
    )
    .fetch_one(connection)
    .await
}
