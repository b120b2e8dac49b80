//! What the service remembers: free functions on a connection. The caller opens the transaction and commits it.
//!
//! Time is the database's, so that replicas whose clocks differ agree on when a card expires.

pub mod cards;
pub mod changes;
pub mod listen;
pub mod retention;
pub mod sweep;

use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::timeout;

use crate::error::Error;

/// What the database driver reports.
pub type DbError = sqlx::Error;
/// Connections to Postgres.
pub type Pool = sqlx::PgPool;
/// One connection, or a transaction on one.
pub type Connection = sqlx::PgConnection;
/// An open transaction: undone unless it is committed.
pub type Transaction = sqlx::Transaction<'static, sqlx::Postgres>;

/// How long work on the database may take that others wait behind.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Channel of the notices that cards have changed. They carry nothing.
pub const CHANNEL: &str = "gatehouse_interactions";

/// Bounds work on the database: the system notices only after many minutes that a host is gone without a word.
pub async fn within<T>(most: Duration, work: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
    timeout(most, work).await.unwrap_or_else(|_| {
        Err(DbError::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            "the database did not answer within the time allowed",
        )))
    })
}

/// A connection for reading.
pub async fn acquire(pool: &Pool) -> Result<sqlx::pool::PoolConnection<sqlx::Postgres>, Error> {
    Ok(pool.acquire().await?)
}

/// Opens a transaction.
pub async fn begin(pool: &Pool) -> Result<Transaction, Error> {
    Ok(gatehouse_store::begin(pool).await?)
}

/// Commits a transaction.
pub async fn commit(transaction: Transaction) -> Result<(), Error> {
    Ok(transaction.commit().await?)
}

/// The database's time at this moment, not at the transaction's begin.
pub async fn now(connection: &mut Connection) -> Result<OffsetDateTime, DbError> {
    sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#).fetch_one(connection).await
}

/// Tells every replica, once the transaction is committed, that cards have changed.
pub async fn notify(connection: &mut Connection) -> Result<(), DbError> {
    sqlx::query!("SELECT pg_notify($1, '')", CHANNEL).execute(connection).await?;
    Ok(())
}

/// Whether the database does not answer, as opposed to refusing.
pub fn is_unavailable(error: &DbError) -> bool {
    match error {
        DbError::Io(_) | DbError::Tls(_) | DbError::PoolTimedOut | DbError::PoolClosed => true,
        // Classes 08 (connection), 53 (resources) and 57P (an operator stops the server).
        DbError::Database(error) => {
            error.code().is_some_and(|code| ["08", "53", "57P"].iter().any(|class| code.starts_with(class)))
        }
        _ => false,
    }
}
