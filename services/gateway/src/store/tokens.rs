//! Bearer tokens of sessions. A secret is given back once; its SHA-256 is stored.

use gatehouse_store::api_keys;
use gatehouse_types::{SessionId, TokenId, secret};
use secrecy::{ExposeSecret as _, SecretString};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    Connection,
    sessions::{self, count},
};
use crate::{
    error::Error,
    registry::session::{MOST_TOKENS, Revoke, TOKENS_SHOWN, Token},
};

struct Row {
    id: Uuid,
    actor: String,
    prefix: String,
    created_at: OffsetDateTime,
    revoked_at: Option<OffsetDateTime>,
}

impl From<Row> for Token {
    fn from(row: Row) -> Self {
        Self {
            id: TokenId::from_uuid(row.id),
            actor: row.actor,
            prefix: row.prefix,
            created_at: row.created_at,
            revoked_at: row.revoked_at,
        }
    }
}

/// Puts the token that a session is made with. It has the session's own UUID as its id, so that doing it again
/// replaces it, and leaves tokens that were issued later alone.
pub(super) async fn put_first(
    connection: &mut Connection,
    session: SessionId,
    now: OffsetDateTime,
) -> Result<SecretString, Error> {
    put(connection, TokenId::from_uuid(session.uuid()), session, "", now).await.map(|(_, secret)| secret)
}

async fn put(
    connection: &mut Connection,
    id: TokenId,
    session: SessionId,
    actor: &str,
    now: OffsetDateTime,
) -> Result<(Token, SecretString), Error> {
    let token = secret::generate(secret::SESSION_TOKEN_PREFIX)?;
    let hash = api_keys::hash(token.expose_secret());
    let row = sqlx::query_as!(
        Row,
        "INSERT INTO session_tokens (id, session_id, actor, hash, prefix, created_at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, prefix = excluded.prefix,
             created_at = excluded.created_at, revoked_at = NULL
         RETURNING id, actor, prefix, created_at, revoked_at",
        id.uuid(),
        session.uuid(),
        actor,
        hash.as_slice(),
        secret::shown_prefix(token.expose_secret()),
        now
    )
    .fetch_one(connection)
    .await?;
    Ok((row.into(), token))
}

/// Makes a token for an actor, beside those it has. [`Error::Precondition`] when the session has too many.
pub async fn issue(
    connection: &mut Connection,
    session: &str,
    actor: &str,
    now: OffsetDateTime,
) -> Result<(Token, SecretString), Error> {
    let session = sessions::lock(connection, session).await?;
    let live = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM session_tokens WHERE session_id = $1 AND revoked_at IS NULL"#,
        session.uuid()
    )
    .fetch_one(&mut *connection)
    .await?;
    if live >= MOST_TOKENS {
        let words = format!("the session has {live} tokens, and {MOST_TOKENS} is the most; revoke some first");
        return Err(Error::Precondition(words));
    }
    put(connection, TokenId::new(), session, actor, now).await
}

/// Makes a token for an actor and revokes its others.
pub async fn rotate(
    connection: &mut Connection,
    session: &str,
    actor: &str,
    now: OffsetDateTime,
) -> Result<(Token, SecretString), Error> {
    let session = sessions::lock(connection, session).await?;
    revoke_of_actor(connection, session, actor, now).await?;
    let made = put(connection, TokenId::new(), session, actor, now).await?;
    count(connection, session).await?;
    Ok(made)
}

/// Revokes one token, or all of an actor. Gives how many were good until now.
pub async fn revoke(
    connection: &mut Connection,
    session: &str,
    which: &Revoke,
    now: OffsetDateTime,
) -> Result<u64, Error> {
    let session = sessions::lock(connection, session).await?;
    let revoked = match which {
        Revoke::One(token) => revoke_one(connection, session, *token, now).await?,
        Revoke::Actor(actor) => revoke_of_actor(connection, session, actor, now).await?,
    };
    if revoked > 0 {
        count(connection, session).await?;
    }
    Ok(revoked)
}

async fn revoke_of_actor(
    connection: &mut Connection,
    session: SessionId,
    actor: &str,
    now: OffsetDateTime,
) -> Result<u64, Error> {
    let done = sqlx::query!(
        "UPDATE session_tokens SET revoked_at = $3 WHERE session_id = $1 AND actor = $2 AND revoked_at IS NULL",
        session.uuid(),
        actor,
        now
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

async fn revoke_one(
    connection: &mut Connection,
    session: SessionId,
    token: TokenId,
    now: OffsetDateTime,
) -> Result<u64, Error> {
    let done = sqlx::query!(
        "UPDATE session_tokens SET revoked_at = $3 WHERE session_id = $1 AND id = $2 AND revoked_at IS NULL",
        session.uuid(),
        token.uuid(),
        now
    )
    .execute(&mut *connection)
    .await?;
    if done.rows_affected() == 1 {
        return Ok(1);
    }
    let known = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM session_tokens WHERE session_id = $1 AND id = $2) AS "known!""#,
        session.uuid(),
        token.uuid()
    )
    .fetch_one(connection)
    .await?;
    if known { Ok(0) } else { Err(Error::not_found("token", token.to_string())) }
}

/// The newest tokens of a session, revoked ones too, the newest first.
pub async fn list(connection: &mut Connection, session: &str) -> Result<Vec<Token>, Error> {
    let session = sessions::get(connection, session).await?;
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, actor, prefix, created_at, revoked_at FROM session_tokens WHERE session_id = $1
         ORDER BY created_at DESC, id DESC LIMIT $2",
        session.id.uuid(),
        TOKENS_SHOWN
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Token::from).collect())
}
