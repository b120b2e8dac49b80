//! The change counters. Whatever an engine's next call must see moves one of them, in the transaction of the change.

use sqlx::PgConnection;

/// Both counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    /// Servers, tools, profiles, settings.
    pub catalog: i64,
    /// Sessions, tokens, runs' ends, ended edge sessions.
    pub sessions: i64,
}

/// The counters as committed.
pub async fn read(connection: &mut PgConnection) -> Result<Epoch, sqlx::Error> {
    sqlx::query_as!(Epoch, "SELECT catalog, sessions FROM config_epoch").fetch_one(connection).await
}

/// Counts a change of servers, tools, profiles or settings, and returns the new count. Holds the row until the
/// transaction ends, which puts changes in the order of their commits: call it last.
pub async fn bump_catalog(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!("UPDATE config_epoch SET catalog = catalog + 1 RETURNING catalog").fetch_one(connection).await
}

/// Counts a change of sessions, tokens or runs, and returns the new count. Holds the row like [`bump_catalog`].
pub async fn bump_sessions(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!("UPDATE config_epoch SET sessions = sessions + 1 RETURNING sessions")
        .fetch_one(connection)
        .await
}
