//! The record of calls, as it is read.

use std::time::Duration;

use gatehouse_types::{CallId, Hints, InteractionId, RunId, SessionId};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Connection, known, limit, sessions, unsigned};
use crate::{
    audit::WAITING,
    error::Error,
    registry::call::{Call, CallFilter, Outcome, Payload},
};

struct Row {
    id: Uuid,
    session_id: Uuid,
    actor: String,
    run_id: Option<Uuid>,
    server: String,
    tool: String,
    hints: i16,
    outcome: Option<String>,
    started_at: OffsetDateTime,
    duration_us: Option<i64>,
    retries: i32,
    arguments_bytes: i64,
    arguments_sha256: Vec<u8>,
    result_bytes: i64,
    error: String,
    trace_id: String,
    arguments: Option<String>,
    structured_result: Option<String>,
    policy: String,
    permission_mode: String,
    decision: String,
    decided_by: String,
    decided_at: Option<OffsetDateTime>,
    interaction_id: Option<Uuid>,
    files: Vec<String>,
    notes: Option<Vec<String>>,
}

impl Row {
    fn into_call(self) -> Result<Call, Error> {
        let duration = self.duration_us.map(|micros| unsigned("duration_us", micros)).transpose()?;
        let (structured_result, notes) = (self.structured_result, self.notes.unwrap_or_default());
        Ok(Call {
            id: CallId::from_uuid(self.id),
            session_id: SessionId::from_uuid(self.session_id),
            actor: self.actor,
            run_id: self.run_id.map(RunId::from_uuid),
            server: self.server,
            tool: self.tool,
            hints: Hints::from_bits(self.hints),
            outcome: known("calls.outcome", Outcome::from_stored(self.outcome.as_deref()))?,
            started_at: self.started_at,
            duration: duration.map(Duration::from_micros),
            retries: unsigned("retries", self.retries)?,
            arguments_bytes: self.arguments_bytes,
            arguments_sha256: self.arguments_sha256,
            result_bytes: self.result_bytes,
            error: self.error,
            trace_id: self.trace_id,
            policy: self.policy,
            permission_mode: self.permission_mode,
            decision: self.decision,
            decided_by: self.decided_by,
            decided_at: self.decided_at,
            interaction: self.interaction_id.map(InteractionId::from_uuid),
            files: self.files,
            payload: self.arguments.map(|arguments| Payload { arguments, structured_result, notes }),
        })
    }
}

/// Calls that a filter lets through, the newest first, without arguments and results: one more than `size`, when
/// there are so many, before the call `after`.
pub async fn list(
    connection: &mut Connection,
    filter: &CallFilter,
    after: Option<CallId>,
    size: usize,
) -> Result<Vec<Call>, Error> {
    let sessions: Option<Vec<Uuid>> = match &filter.session {
        Some(key) => Some(sessions::ever(connection, key).await?.into_iter().map(SessionId::uuid).collect()),
        None => None,
    };
    let running = filter.outcome == Some(Outcome::Running);
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT id, session_id, actor, run_id, server, tool, hints, outcome, started_at, duration_us, retries,
                  arguments_bytes, arguments_sha256, result_bytes, error, trace_id,
                  policy, permission_mode, decision, decided_by, decided_at, interaction_id, files,
                  NULL::text AS arguments, NULL::text AS structured_result, NULL::text[] AS notes
           FROM calls
           WHERE ($1::uuid[] IS NULL OR session_id = ANY($1)) AND ($2::text IS NULL OR server = $2)
             AND ($3::text IS NULL OR tool = $3) AND ($4::text IS NULL OR outcome = $4)
             AND (NOT $5 OR outcome IS NULL) AND ($6::timestamptz IS NULL OR started_at >= $6)
             AND ($7::timestamptz IS NULL OR started_at < $7) AND ($8::uuid IS NULL OR id < $8)
           ORDER BY id DESC LIMIT $9"#,
        sessions.as_deref(),
        filter.server,
        filter.tool,
        filter.outcome.and_then(Outcome::stored),
        running,
        filter.from,
        filter.to,
        after.map(CallId::uuid),
        limit(size)
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Row::into_call).collect()
}

/// What the record knows of a call whose answer is asked for once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It waits for a person.
    Waiting,
    /// Its gateway died while it waited for a person: it never went out.
    NeverSent,
    /// It may have been carried out.
    Unknown,
}

/// The fate of a session's call; `None` when it has no row.
pub async fn fate(connection: &mut Connection, call: CallId, session: SessionId) -> Result<Option<Fate>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT outcome, decision FROM calls WHERE id = $1 AND session_id = $2",
        call.uuid(),
        session.uuid()
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| match (row.outcome.as_deref(), row.decision.as_str()) {
        (None, WAITING) => Fate::Waiting,
        (Some("interrupted"), "interrupted") => Fate::NeverSent,
        _ => Fate::Unknown,
    }))
}

/// One call with its arguments and result, or [`Error::NotFound`].
pub async fn get(connection: &mut Connection, id: CallId) -> Result<Call, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT id, session_id, actor, run_id, server, tool, hints, outcome, started_at, duration_us, retries,
                  arguments_bytes, arguments_sha256, result_bytes, error, trace_id,
                  policy, permission_mode, decision, decided_by, decided_at, interaction_id, files,
                  arguments AS "arguments?", structured_result, notes AS "notes?"
           FROM calls WHERE id = $1"#,
        id.uuid()
    )
    .fetch_optional(connection)
    .await?;
    row.ok_or_else(|| Error::not_found("call", id.to_string()))?.into_call()
}
