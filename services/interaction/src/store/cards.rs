//! Cards.

use gatehouse_types::{CallId, InteractionId, RunId, SessionId};
use time::OffsetDateTime;
use uuid::Uuid;

use super::Connection;
use crate::{
    card::{Card, NewCard},
    error::Error,
    page::Filter,
    state::{Answer, Decision, State, Word},
};

pub(super) struct Row {
    pub(super) id: Uuid,
    pub(super) state: String,
    pub(super) session_id: Uuid,
    pub(super) actor: String,
    pub(super) run_id: Option<Uuid>,
    pub(super) call_id: Uuid,
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) card: String,
    pub(super) arguments_sha256: Option<Vec<u8>>,
    pub(super) terms_sha256: Option<Vec<u8>>,
    pub(super) created_at: OffsetDateTime,
    pub(super) expires_at: OffsetDateTime,
    pub(super) closed_at: Option<OffsetDateTime>,
    pub(super) answer: Option<String>,
    pub(super) reason: String,
    pub(super) answered_by: String,
    pub(super) answered_at: Option<OffsetDateTime>,
    pub(super) version: i64,
}

impl Row {
    pub(super) fn into_card(self) -> Result<Card, Error> {
        let broken = |what: &str| Error::Broken(format!("interaction {}: {what}", self.id));
        let approval = serde_json::from_str(&self.card).map_err(|error| broken(&format!("`card`: {error}")))?;
        let answer = match (self.answer, self.answered_at) {
            (Some(word), Some(at)) => {
                let decision = Decision::parse(&word).ok_or_else(|| broken("`answer` is no known word"))?;
                Some(Answer { decision, reason: self.reason, by: self.answered_by, at })
            }
            _ => None,
        };
        let state = match (Word::parse(&self.state), self.closed_at, answer) {
            (Some(Word::Open), None, None) => State::Open,
            (Some(Word::Answered), Some(_), Some(answer)) => State::Answered(answer),
            (Some(Word::Ended(end)), Some(at), answer) => State::Ended { end, at, answer },
            _ => return Err(broken("`state` does not go with its times and answer")),
        };
        Ok(Card {
            id: InteractionId::from_uuid(self.id),
            state,
            session_id: SessionId::from_uuid(self.session_id),
            actor: self.actor,
            run_id: self.run_id.map(RunId::from_uuid),
            call_id: CallId::from_uuid(self.call_id),
            server: self.server,
            tool: self.tool,
            approval,
            arguments_sha256: self.arguments_sha256.unwrap_or_default(),
            terms_sha256: self.terms_sha256.unwrap_or_default(),
            created_at: self.created_at,
            expires_at: self.expires_at,
            version: self.version,
        })
    }
}

/// Makes a card, or returns the one that has its id already. One statement and no notice: a call waits for it.
pub async fn create(connection: &mut Connection, new: &NewCard) -> Result<Card, Error> {
    let card = serde_json::to_string(&new.approval).map_err(|error| Error::Broken(error.to_string()))?;
    let made = sqlx::query!(
        "INSERT INTO interactions (id, kind, state, session_id, actor, run_id, call_id, replica_id, server, tool, card,
                                   arguments_sha256, terms_sha256, created_at, expires_at)
         VALUES ($1, 'approval', 'open', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, now(), now() + make_interval(secs => $12))
         ON CONFLICT (id) DO NOTHING RETURNING created_at, expires_at, version",
        new.id.uuid(),
        new.session_id.uuid(),
        new.actor,
        new.run_id.map(RunId::uuid),
        new.call_id.uuid(),
        new.replica_id.uuid(),
        new.server,
        new.tool,
        card,
        &new.arguments_sha256[..],
        &new.terms_sha256[..],
        new.timeout.as_secs_f64()
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(made) = made else { return get(connection, new.id).await };
    Ok(Card {
        id: new.id,
        state: State::Open,
        session_id: new.session_id,
        actor: new.actor.clone(),
        run_id: new.run_id,
        call_id: new.call_id,
        server: new.server.clone(),
        tool: new.tool.clone(),
        approval: new.approval.clone(),
        arguments_sha256: new.arguments_sha256.to_vec(),
        terms_sha256: new.terms_sha256.to_vec(),
        created_at: made.created_at,
        expires_at: made.expires_at,
        version: made.version,
    })
}

/// One card, or [`Error::NotFound`].
pub async fn get(connection: &mut Connection, id: InteractionId) -> Result<Card, Error> {
    let row = sqlx::query_as!(
        Row,
        "SELECT id, state, session_id, actor, run_id, call_id, server, tool, card, arguments_sha256, terms_sha256,
                created_at, expires_at, closed_at, answer, reason, answered_by, answered_at, version
         FROM interactions WHERE id = $1",
        id.uuid()
    )
    .fetch_optional(connection)
    .await?;
    row.ok_or_else(|| Error::NotFound(id.to_string()))?.into_card()
}

/// One card that nobody else can change until the transaction ends, or [`Error::NotFound`].
pub async fn lock(connection: &mut Connection, id: InteractionId) -> Result<Card, Error> {
    let row = sqlx::query_as!(
        Row,
        "SELECT id, state, session_id, actor, run_id, call_id, server, tool, card, arguments_sha256, terms_sha256,
                created_at, expires_at, closed_at, answer, reason, answered_by, answered_at, version
         FROM interactions WHERE id = $1 FOR UPDATE",
        id.uuid()
    )
    .fetch_optional(connection)
    .await?;
    row.ok_or_else(|| Error::NotFound(id.to_string()))?.into_card()
}

/// Writes the new state of a card that was `before`; nothing else about a card ever changes.
pub async fn save(connection: &mut Connection, before: &Card, state: State) -> Result<Card, Error> {
    let answer = state.answer();
    let version = sqlx::query_scalar!(
        "UPDATE interactions
         SET state = $1, closed_at = $2, answer = $3, reason = $4, answered_by = $5, answered_at = $6, version = version + 1
         WHERE id = $7 AND state = $8 AND version = $9 RETURNING version",
        state.word().as_str(),
        state.closed_at(),
        answer.map(|answer| answer.decision.as_str()),
        answer.map_or("", |answer| &answer.reason),
        answer.map_or("", |answer| &answer.by),
        answer.map(|answer| answer.at),
        before.id.uuid(),
        before.state.word().as_str(),
        before.version
    )
    .fetch_optional(connection)
    .await?;
    let version = version.ok_or_else(|| Error::Broken(format!("interaction {} changed under its lock", before.id)))?;
    Ok(Card { state, version, ..before.clone() })
}

/// Cards that a filter lets through, the newest first: at most `most`, before the card `after`.
pub async fn list(
    connection: &mut Connection,
    filter: Filter,
    after: Option<InteractionId>,
    most: usize,
) -> Result<Vec<Card>, Error> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, state, session_id, actor, run_id, call_id, server, tool, card, arguments_sha256, terms_sha256,
                created_at, expires_at, closed_at, answer, reason, answered_by, answered_at, version
         FROM interactions
         WHERE ($1::uuid IS NULL OR session_id = $1) AND ($2::text IS NULL OR state = $2) AND ($3::uuid IS NULL OR id < $3)
         ORDER BY id DESC LIMIT $4",
        filter.session.map(SessionId::uuid),
        filter.word.map(Word::as_str),
        after.map(InteractionId::uuid),
        i64::try_from(most).unwrap_or(i64::MAX)
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Row::into_card).collect()
}

/// Open cards of a session, or of all, the oldest first: at most `most`, after the card `after`.
pub async fn open(
    connection: &mut Connection,
    session: Option<SessionId>,
    after: Option<InteractionId>,
    most: usize,
) -> Result<Vec<Card>, Error> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, state, session_id, actor, run_id, call_id, server, tool, card, arguments_sha256, terms_sha256,
                created_at, expires_at, closed_at, answer, reason, answered_by, answered_at, version
         FROM interactions
         WHERE state = 'open' AND ($1::uuid IS NULL OR session_id = $1) AND ($2::uuid IS NULL OR id > $2)
         ORDER BY id LIMIT $3",
        session.map(SessionId::uuid),
        after.map(InteractionId::uuid),
        i64::try_from(most).unwrap_or(i64::MAX)
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Row::into_card).collect()
}
