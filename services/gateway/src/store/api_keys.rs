//! API keys, as an admin sees them. `gatehouse_store::api_keys` finds them for authentication.

use gatehouse_platform::auth::Scope;
use gatehouse_types::{ApiKeyId, secret};
use secrecy::{ExposeSecret as _, SecretString};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Connection, as_id, is_taken, known, limit};
use crate::{
    error::Error,
    registry::{
        key::{ApiKey, scope_from_stored, scope_word},
        page::TimeKey,
    },
};

struct Row {
    id: Uuid,
    name: String,
    scope: String,
    prefix: String,
    created_at: OffsetDateTime,
    last_used_at: Option<OffsetDateTime>,
    revoked_at: Option<OffsetDateTime>,
}

impl Row {
    fn into_key(self) -> Result<ApiKey, Error> {
        Ok(ApiKey {
            id: ApiKeyId::from_uuid(self.id),
            name: self.name,
            scope: known("api_keys.scope", scope_from_stored(&self.scope))?,
            prefix: self.prefix,
            created_at: self.created_at,
            last_used_at: self.last_used_at,
            revoked_at: self.revoked_at,
        })
    }
}

/// Makes a key. [`Error::AlreadyExists`] when a key that is not revoked has the name.
pub async fn create(
    connection: &mut Connection,
    name: &str,
    scope: Scope,
    now: OffsetDateTime,
) -> Result<(ApiKey, SecretString), Error> {
    let key = secret::generate(secret::API_KEY_PREFIX)?;
    let hash = gatehouse_store::api_keys::hash(key.expose_secret());
    let row = sqlx::query_as!(
        Row,
        "INSERT INTO api_keys (id, name, scope, hash, prefix, created_at) VALUES ($1, $2, $3, $4, $5, $6)
         RETURNING id, name, scope, prefix, created_at, last_used_at, revoked_at",
        ApiKeyId::new().uuid(),
        name,
        scope_word(scope),
        hash.as_slice(),
        secret::shown_prefix(key.expose_secret()),
        now
    )
    .fetch_one(connection)
    .await;
    match row {
        Ok(row) => Ok((row.into_key()?, key)),
        Err(error) if is_taken(&error, "api_keys_name") => {
            Err(Error::AlreadyExists(format!("there is a key `{name}` already; revoke it or choose another name")))
        }
        Err(error) => Err(error.into()),
    }
}

/// Keys, revoked ones too, the newest first: one more than `size`, when there are so many, after `after`.
pub async fn list(
    connection: &mut Connection,
    after: Option<TimeKey<ApiKeyId>>,
    size: usize,
) -> Result<Vec<ApiKey>, Error> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, name, scope, prefix, created_at, last_used_at, revoked_at FROM api_keys
         WHERE $1::timestamptz IS NULL OR (created_at, id) < ($1, $2) ORDER BY created_at DESC, id DESC LIMIT $3",
        after.map(|key| key.at),
        after.map(|key| key.id.uuid()),
        limit(size)
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Row::into_key).collect()
}

/// Revokes a key, by id or by name. Of keys with one name, the one that is not revoked is meant, else the newest.
/// Revoking again changes nothing. [`Error::Precondition`] for the last admin key.
pub async fn revoke(connection: &mut Connection, key: &str, now: OffsetDateTime) -> Result<ApiKey, Error> {
    // Two admins who revoke each other's key at once must not both succeed: each locks all admin keys.
    let admins = sqlx::query_scalar!(
        "SELECT id FROM api_keys WHERE scope = 'admin' AND revoked_at IS NULL ORDER BY id FOR UPDATE"
    )
    .fetch_all(&mut *connection)
    .await?;
    let found = sqlx::query_as!(
        Row,
        "SELECT id, name, scope, prefix, created_at, last_used_at, revoked_at FROM api_keys WHERE id = $1 OR name = $2
         ORDER BY (id = $1) IS TRUE DESC, (revoked_at IS NULL) DESC, created_at DESC LIMIT 1 FOR UPDATE",
        as_id(key),
        key
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or_else(|| Error::not_found("API key", key))?;
    if found.revoked_at.is_some() {
        return found.into_key();
    }
    if admins == [found.id] {
        let words = "this is the last admin key; make another with `gatehouse keys create --scope admin` first";
        return Err(Error::Precondition(words.to_owned()));
    }
    let revoked = sqlx::query_as!(
        Row,
        "UPDATE api_keys SET revoked_at = $2 WHERE id = $1
         RETURNING id, name, scope, prefix, created_at, last_used_at, revoked_at",
        found.id,
        now
    )
    .fetch_one(connection)
    .await?;
    revoked.into_key()
}
