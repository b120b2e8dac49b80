//! API keys as a server needs them: found by hash, marked as used, and the first one.

use gatehouse_types::{ApiKeyId, secret};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use sqlx::{PgConnection, Postgres, Transaction};
use time::{Duration, OffsetDateTime};

/// Name of the key that comes from the operator's secret or from the data folder.
pub const FIRST_ADMIN_KEY_NAME: &str = "first-admin";
/// `last_used_at` moves at most once in this time.
pub const TOUCH_INTERVAL: Duration = Duration::minutes(1);

/// A key as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// Its name.
    pub name: String,
    /// `admin` or `sessions`.
    pub scope: String,
    /// Whether it was revoked.
    pub revoked: bool,
    /// Whether [`touch`] would move `last_used_at`.
    pub touch_due: bool,
}

/// What became of the first admin key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstKey {
    /// There was no admin key; now there is this one.
    Inserted,
    /// It was there already.
    Known,
    /// It was there, and is revoked. It stays revoked.
    Revoked,
    /// It is unknown, but other admin keys exist; it was not added.
    OthersExist,
}

/// The hash under which a secret is stored: its SHA-256. Enough for secrets of 256 random bits.
pub fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Finds a key by the hash of its secret, revoked or not.
pub async fn find(
    connection: &mut PgConnection,
    hash: &[u8; 32],
    now: OffsetDateTime,
) -> Result<Option<ApiKey>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT id, name, scope, revoked_at IS NOT NULL AS "revoked!",
                  (last_used_at IS NULL OR last_used_at <= $2) AS "touch_due!"
           FROM api_keys WHERE hash = $1"#,
        hash.as_slice(),
        now - TOUCH_INTERVAL
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| ApiKey {
        id: ApiKeyId::from_uuid(row.id),
        name: row.name,
        scope: row.scope,
        revoked: row.revoked,
        touch_due: row.touch_due,
    }))
}

/// Records that a key was used; writes at most once in [`TOUCH_INTERVAL`], whoever asks. Returns whether it wrote.
pub async fn touch(connection: &mut PgConnection, id: ApiKeyId, now: OffsetDateTime) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        "UPDATE api_keys SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)",
        id.uuid(),
        now,
        now - TOUCH_INTERVAL
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Stores the operator's admin key when no admin key is in force. Doing it again changes nothing, and a key that was
/// revoked does not come back. Takes a transaction, since it locks the table so that replicas that start together
/// agree.
pub async fn ensure_first_admin_key(
    transaction: &mut Transaction<'_, Postgres>,
    key: &SecretString,
    now: OffsetDateTime,
) -> Result<FirstKey, sqlx::Error> {
    sqlx::query!("LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE").execute(&mut **transaction).await?;
    let own_hash = hash(key.expose_secret());
    if let Some(found) = find(transaction, &own_hash, now).await? {
        return Ok(if found.revoked { FirstKey::Revoked } else { FirstKey::Known });
    }
    let others = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM api_keys WHERE scope = 'admin' AND revoked_at IS NULL) AS "others!""#
    )
    .fetch_one(&mut **transaction)
    .await?;
    if others {
        return Ok(FirstKey::OthersExist);
    }
    sqlx::query!(
        "INSERT INTO api_keys (id, name, scope, hash, prefix, created_at) VALUES ($1, $2, 'admin', $3, $4, $5)",
        ApiKeyId::new().uuid(),
        FIRST_ADMIN_KEY_NAME,
        own_hash.as_slice(),
        secret::shown_prefix(key.expose_secret()),
        now
    )
    .execute(&mut **transaction)
    .await?;
    Ok(FirstKey::Inserted)
}
