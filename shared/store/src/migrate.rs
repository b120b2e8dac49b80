//! Bringing the schema up to date, and refusing a schema that this version does not know.

use std::collections::BTreeMap;

use sqlx::{Connection as _, PgConnection, PgPool, migrate::MigrateError, migrate::Migrator};

static MIGRATOR: Migrator = sqlx::migrate!("./migrations");

/// Why the schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A newer Gatehouse has migrated this database.
    #[error(
        "the database has schema version {found}, which this version of Gatehouse does not know; \
         install the version that migrated it, or a later one"
    )]
    Newer {
        /// Highest version in the database.
        found: i64,
    },
    /// The schema lacks migrations.
    #[error(
        "the database has schema version {found}, this version of Gatehouse needs {wanted}; run `gatehouse migrate`"
    )]
    Older {
        /// Highest version in the database, 0 for an empty one.
        found: i64,
        /// Highest version that is built in.
        wanted: i64,
    },
    /// A migration in the database is not the one that is built in.
    #[error("schema version {version} of the database was made by another migration than the one that is built in")]
    Different {
        /// The version.
        version: i64,
    },
    /// A migration failed; the database stays at the version before it.
    #[error("the migration failed; the database stays at the version before it")]
    Migration(#[source] MigrateError),
    /// The database did not answer.
    #[error("the database did not answer")]
    Database(#[from] sqlx::Error),
}

/// Applies what is missing, under an advisory lock, so that replicas that start together migrate once and all succeed.
pub async fn migrate(pool: &PgPool) -> Result<(), Error> {
    // A connection of its own: the pool's statement timeout must not cut a long migration or the wait for the lock.
    let mut connection = pool.acquire().await?.detach();
    sqlx::query!("SELECT set_config('statement_timeout', '0', false) AS statement, set_config('lock_timeout', '0', false) AS lock")
        .fetch_one(&mut connection)
        .await?;
    let outcome = apply(&mut connection).await;
    let closed = connection.close().await;
    outcome?;
    closed?;
    Ok(())
}

async fn apply(connection: &mut PgConnection) -> Result<(), Error> {
    match compare(connection).await {
        Ok(()) => return Ok(()),
        Err(Error::Older { .. }) => {}
        Err(error) => return Err(error),
    }
    // A replica that waited for the lock finds everything applied.
    match MIGRATOR.run(&mut *connection).await {
        Ok(()) => compare(connection).await,
        Err(MigrateError::VersionMissing(found)) => Err(Error::Newer { found }),
        Err(MigrateError::VersionMismatch(version)) => Err(Error::Different { version }),
        Err(error) => Err(Error::Migration(error)),
    }
}

/// Whether the schema is exactly the one that is built in. Changes nothing.
pub async fn check(pool: &PgPool) -> Result<(), Error> {
    compare(&mut *pool.acquire().await?).await
}

/// A name for the set of migrations that is built in; another set has another name.
pub fn fingerprint() -> String {
    use std::fmt::Write as _;

    use sha2::{Digest as _, Sha256};
    let mut hash = Sha256::new();
    for migration in MIGRATOR.iter() {
        hash.update(migration.version.to_be_bytes());
        hash.update(&migration.checksum);
    }
    hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

async fn compare(connection: &mut PgConnection) -> Result<(), Error> {
    let wanted = MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or(0);
    let exists =
        sqlx::query_scalar!("SELECT to_regclass('_sqlx_migrations') IS NOT NULL").fetch_one(&mut *connection).await?;
    if exists != Some(true) {
        return Err(Error::Older { found: 0, wanted });
    }
    // Not a checked macro: the table is the migrator's own and is not part of the schema that queries are checked
    // against.
    let rows: Vec<(i64, Vec<u8>, bool)> =
        sqlx::query_as("SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version")
            .fetch_all(&mut *connection)
            .await?;
    let built_in: BTreeMap<i64, &[u8]> = MIGRATOR.iter().map(|own| (own.version, own.checksum.as_ref())).collect();
    if let Some((found, ..)) = rows.iter().rev().find(|(version, ..)| !built_in.contains_key(version)) {
        return Err(Error::Newer { found: *found });
    }
    for (version, checksum, _) in &rows {
        if built_in.get(version) != Some(&checksum.as_slice()) {
            return Err(Error::Different { version: *version });
        }
    }
    let applied = rows.iter().filter(|(.., success)| *success);
    if applied.clone().count() < built_in.len() {
        return Err(Error::Older { found: applied.map(|(version, ..)| *version).max().unwrap_or(0), wanted });
    }
    Ok(())
}
