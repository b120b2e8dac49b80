//! Sessions.

use gatehouse_store::epoch;
use gatehouse_types::{ProfileId, SessionId};
use secrecy::SecretString;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Connection, Made, as_id, known, limit, same_request, tokens};
use crate::{
    error::Error,
    registry::{
        page::TimeKey,
        session::{EngineKind, NewSession, PermissionMode, Session, SessionChange},
    },
};

struct Row {
    id: Uuid,
    external_id: Option<String>,
    profile: String,
    engine: String,
    permission_mode: String,
    workspace: String,
    locale: String,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
}

impl Row {
    fn into_session(self) -> Result<Session, Error> {
        Ok(Session {
            id: SessionId::from_uuid(self.id),
            external_id: self.external_id,
            profile: self.profile,
            engine: known("sessions.engine", EngineKind::from_stored(&self.engine))?,
            permission_mode: known("sessions.permission_mode", PermissionMode::parse(&self.permission_mode))?,
            workspace: self.workspace,
            locale: self.locale,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// A session that is not deleted, by id or external id, or [`Error::NotFound`].
pub async fn get(connection: &mut Connection, key: &str) -> Result<Session, Error> {
    let row = sqlx::query_as!(
        Row,
        "SELECT sessions.id, external_id, profiles.name AS profile, engine, permission_mode, workspace, locale,
                sessions.created_at, sessions.updated_at
         FROM sessions JOIN profiles ON profiles.id = profile_id
         WHERE (sessions.id = $1 OR external_id = $2) AND deleted_at IS NULL
         ORDER BY (sessions.id = $1) IS TRUE DESC LIMIT 1",
        as_id(key),
        key
    )
    .fetch_optional(connection)
    .await?;
    row.ok_or_else(|| Error::not_found("session", key))?.into_session()
}

/// Sessions that are not deleted, the newest first: one more than `size`, when there are so many, after `after`; of
/// one profile or of all.
pub async fn list(
    connection: &mut Connection,
    profile: Option<ProfileId>,
    after: Option<TimeKey<SessionId>>,
    size: usize,
) -> Result<Vec<Session>, Error> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT sessions.id, external_id, profiles.name AS profile, engine, permission_mode, workspace, locale,
                sessions.created_at, sessions.updated_at
         FROM sessions JOIN profiles ON profiles.id = profile_id
         WHERE deleted_at IS NULL AND ($1::uuid IS NULL OR profile_id = $1)
           AND ($2::timestamptz IS NULL OR (sessions.created_at, sessions.id) < ($2, $3))
         ORDER BY sessions.created_at DESC, sessions.id DESC LIMIT $4",
        profile.map(ProfileId::uuid),
        after.map(|key| key.at),
        after.map(|key| key.id.uuid()),
        limit(size)
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Row::into_session).collect()
}

/// Makes a session and the token of its default actor. The same `request_id` gives the session that it made before,
/// with a fresh token in place of the one that it made.
pub async fn create(
    connection: &mut Connection,
    new: &NewSession,
    now: OffsetDateTime,
) -> Result<(Made<Session>, SecretString), Error> {
    let digest = new.digest();
    if let Some(request_id) = &new.request_id
        && let Some(before) = made_by(connection, request_id, digest, now).await?
    {
        return Ok(before);
    }
    let id = SessionId::new();
    let profile = lock_profile(connection, &new.profile).await?;
    // Nothing that a replica knows changes by a new session: the counter stays.
    let inserted = sqlx::query!(
        "INSERT INTO sessions (id, external_id, profile_id, engine, permission_mode, workspace, locale, request_id,
                               request_digest, epoch, created_at, updated_at)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, sessions, $10, $10 FROM config_epoch ON CONFLICT DO NOTHING",
        id.uuid(),
        new.external_id,
        profile.uuid(),
        new.engine.as_str(),
        new.permission_mode.as_str(),
        new.workspace,
        new.locale,
        new.request_id,
        digest.as_slice(),
        now
    )
    .execute(&mut *connection)
    .await?;
    if inserted.rows_affected() == 1 {
        let token = tokens::put_first(connection, id, now).await?;
        return Ok((Made::New(get(connection, &id.to_string()).await?), token));
    }
    // An equal request was faster.
    if let Some(request_id) = &new.request_id
        && let Some(before) = made_by(connection, request_id, digest, now).await?
    {
        return Ok(before);
    }
    let external_id = new.external_id.as_deref().unwrap_or_default();
    let words = format!("there is a session with external id `{external_id}` already; delete it or use another id");
    Err(Error::AlreadyExists(words))
}

async fn made_by(
    connection: &mut Connection,
    request_id: &str,
    digest: [u8; 32],
    now: OffsetDateTime,
) -> Result<Option<(Made<Session>, SecretString)>, Error> {
    let found = sqlx::query!(
        "SELECT id, request_digest, deleted_at FROM sessions WHERE request_id = $1 FOR UPDATE",
        request_id
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(found) = found else { return Ok(None) };
    same_request(request_id, found.request_digest.as_deref(), digest)?;
    if found.deleted_at.is_some() {
        let words = format!("the session that `request_id` `{request_id}` made was deleted; use a new one");
        return Err(Error::Precondition(words));
    }
    let id = SessionId::from_uuid(found.id);
    let token = tokens::put_first(connection, id, now).await?;
    count(connection, id).await?;
    Ok(Some((Made::Before(get(connection, &id.to_string()).await?), token)))
}

/// The profile of this id or name, held so that it cannot be removed before the transaction ends.
async fn lock_profile(connection: &mut Connection, key: &str) -> Result<ProfileId, Error> {
    let id = sqlx::query_scalar!(
        "SELECT id FROM profiles WHERE id = $1 OR name = $2 ORDER BY (id = $1) IS TRUE DESC LIMIT 1 FOR KEY SHARE",
        as_id(key),
        key
    )
    .fetch_optional(connection)
    .await?;
    id.map(ProfileId::from_uuid).ok_or_else(|| Error::not_found("profile", key))
}

/// Locks a session that is not deleted until the transaction ends, by id or external id, or [`Error::NotFound`].
pub async fn lock(connection: &mut Connection, key: &str) -> Result<SessionId, Error> {
    let id = sqlx::query_scalar!(
        "SELECT id FROM sessions WHERE (id = $1 OR external_id = $2) AND deleted_at IS NULL
         ORDER BY (id = $1) IS TRUE DESC LIMIT 1 FOR UPDATE",
        as_id(key),
        key
    )
    .fetch_optional(connection)
    .await?;
    id.map(SessionId::from_uuid).ok_or_else(|| Error::not_found("session", key))
}

/// Counts a change of a locked session, its tokens or runs, so that every replica sees it. Call it last.
pub(super) async fn count(connection: &mut Connection, id: SessionId) -> Result<(), Error> {
    let epoch = epoch::bump_sessions(&mut *connection).await?;
    let done =
        sqlx::query!("UPDATE sessions SET epoch = $2 WHERE id = $1", id.uuid(), epoch).execute(connection).await?;
    if done.rows_affected() == 1 { Ok(()) } else { Err(Error::Broken("a locked session is gone".to_owned())) }
}

/// Changes a session; an empty change changes nothing.
pub async fn update(
    connection: &mut Connection,
    key: &str,
    change: &SessionChange,
    now: OffsetDateTime,
) -> Result<Session, Error> {
    let id = lock(connection, key).await?;
    if !change.is_empty() {
        let profile = match &change.profile {
            Some(profile) => Some(lock_profile(connection, profile).await?),
            None => None,
        };
        let done = sqlx::query!(
            "UPDATE sessions SET profile_id = coalesce($2, profile_id), engine = coalesce($3, engine),
                    permission_mode = coalesce($4, permission_mode), locale = coalesce($5, locale), updated_at = $6
             WHERE id = $1",
            id.uuid(),
            profile.map(ProfileId::uuid),
            change.engine.map(EngineKind::as_str),
            change.permission_mode.map(PermissionMode::as_str),
            change.locale,
            now
        )
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() != 1 {
            return Err(Error::Broken("a locked session is gone".to_owned()));
        }
        count(connection, id).await?;
    }
    get(connection, &id.to_string()).await
}

/// Ends a session with its tokens and runs. `None` when it was deleted before; [`Error::NotFound`] when it never was.
pub async fn delete(connection: &mut Connection, key: &str, now: OffsetDateTime) -> Result<Option<SessionId>, Error> {
    let id = match lock(connection, key).await {
        Ok(id) => id,
        Err(not_found @ Error::NotFound { .. }) => {
            let known = sqlx::query_scalar!(
                r#"SELECT EXISTS (SELECT 1 FROM sessions WHERE id = $1 OR external_id = $2) AS "known!""#,
                as_id(key),
                key
            )
            .fetch_one(connection)
            .await?;
            return if known { Ok(None) } else { Err(not_found) };
        }
        Err(error) => return Err(error),
    };
    sqlx::query!(
        "UPDATE session_tokens SET revoked_at = $2 WHERE session_id = $1 AND revoked_at IS NULL",
        id.uuid(),
        now
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!("UPDATE runs SET ended_at = $2 WHERE session_id = $1 AND ended_at IS NULL", id.uuid(), now)
        .execute(&mut *connection)
        .await?;
    let done = sqlx::query!("UPDATE sessions SET deleted_at = $2, updated_at = $2 WHERE id = $1", id.uuid(), now)
        .execute(&mut *connection)
        .await?;
    if done.rows_affected() != 1 {
        return Err(Error::Broken("a locked session is gone".to_owned()));
    }
    count(connection, id).await?;
    Ok(Some(id))
}

/// Ids of all sessions, deleted ones too, that this is the id or external id of: for the audit, which outlives
/// sessions.
pub async fn ever(connection: &mut Connection, key: &str) -> Result<Vec<SessionId>, Error> {
    let mut ids =
        sqlx::query_scalar!("SELECT id FROM sessions WHERE external_id = $1", key).fetch_all(connection).await?;
    ids.extend(as_id(key));
    if ids.is_empty() {
        return Err(Error::not_found("session", key));
    }
    Ok(ids.into_iter().map(SessionId::from_uuid).collect())
}
