//! Runs: at most one open for a session and actor.

use gatehouse_types::{RunId, SessionId};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    Connection, Made,
    sessions::{self, count},
};
use crate::{error::Error, registry::session::Run};

/// Most open runs that are shown with a session.
const OPEN_SHOWN: i64 = 500;

struct Row {
    id: Uuid,
    session_id: Uuid,
    actor: String,
    began_at: OffsetDateTime,
    ended_at: Option<OffsetDateTime>,
    waiting_input: bool,
}

impl From<Row> for Run {
    fn from(row: Row) -> Self {
        Self {
            id: RunId::from_uuid(row.id),
            session_id: SessionId::from_uuid(row.session_id),
            actor: row.actor,
            began_at: row.began_at,
            ended_at: row.ended_at,
            waiting_input: row.waiting_input,
        }
    }
}

/// Opens a run. The same `request_id` gives the run that it opened before, ended or not. [`Error::Precondition`] when
/// the actor has one open.
pub async fn begin(
    connection: &mut Connection,
    session: &str,
    actor: &str,
    request_id: Option<&str>,
    now: OffsetDateTime,
) -> Result<Made<Run>, Error> {
    let session = sessions::lock(connection, session).await?;
    let row = sqlx::query_as!(
        Row,
        r#"INSERT INTO runs (id, session_id, actor, request_id, began_at) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT DO NOTHING RETURNING id, session_id, actor, began_at, ended_at, false AS "waiting_input!""#,
        RunId::new().uuid(),
        session.uuid(),
        actor,
        request_id,
        now
    )
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(row) = row {
        count(connection, session).await?;
        return Ok(Made::New(row.into()));
    }
    if let Some(request_id) = request_id
        && let Some(before) = begun_by(connection, request_id).await?
    {
        if before.session_id == session && before.actor == actor {
            return Ok(Made::Before(before));
        }
        let words = format!("`request_id` `{request_id}` was used before for another session or actor; use a new one");
        return Err(Error::AlreadyExists(words));
    }
    let open = sqlx::query_scalar!(
        "SELECT id FROM runs WHERE session_id = $1 AND actor = $2 AND ended_at IS NULL",
        session.uuid(),
        actor
    )
    .fetch_one(connection)
    .await?;
    let words = format!("the run `{open}` of this session and actor is open; end it first");
    Err(Error::Precondition(words))
}

async fn begun_by(connection: &mut Connection, request_id: &str) -> Result<Option<Run>, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT id, session_id, actor, began_at, ended_at,
                  EXISTS (SELECT FROM interactions i WHERE i.run_id = runs.id AND i.state = 'open') AS "waiting_input!"
           FROM runs WHERE request_id = $1"#,
        request_id
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(Run::from))
}

/// Closes a run. Closing it again changes nothing.
pub async fn end(connection: &mut Connection, run: RunId, now: OffsetDateTime) -> Result<Run, Error> {
    let not_found = || Error::not_found("run", run.to_string());
    // The session first: everything that changes it or its runs takes its lock before any other.
    let session = sqlx::query_scalar!(
        "SELECT id FROM sessions WHERE id = (SELECT session_id FROM runs WHERE id = $1) FOR UPDATE",
        run.uuid()
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or_else(not_found)?;
    let ended = sqlx::query_as!(
        Row,
        r#"UPDATE runs SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL
           RETURNING id, session_id, actor, began_at, ended_at, false AS "waiting_input!""#,
        run.uuid(),
        now
    )
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(row) = ended {
        count(connection, SessionId::from_uuid(session)).await?;
        return Ok(row.into());
    }
    let before = sqlx::query_as!(
        Row,
        r#"SELECT id, session_id, actor, began_at, ended_at, false AS "waiting_input!" FROM runs WHERE id = $1"#,
        run.uuid()
    )
    .fetch_optional(connection)
    .await?;
    before.map(Run::from).ok_or_else(not_found)
}

/// The open runs of a session, in the order of their actors.
pub async fn open(connection: &mut Connection, session: SessionId) -> Result<Vec<Run>, Error> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT id, session_id, actor, began_at, ended_at,
                  EXISTS (SELECT FROM interactions i WHERE i.run_id = runs.id AND i.state = 'open') AS "waiting_input!"
           FROM runs WHERE session_id = $1 AND ended_at IS NULL ORDER BY actor LIMIT $2"#,
        session.uuid(),
        OPEN_SHOWN
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Run::from).collect())
}
