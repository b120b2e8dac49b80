//! What the gateway remembers: free functions on a connection. The caller opens the transaction and commits it.
//!
//! Locks are taken in one order, so that no two changes wait for each other: the row that is changed, then what it
//! refers to, then the counter of changes, last.

pub mod api_keys;
pub mod audit;
pub mod calls_write;
pub mod edge_sessions;
pub mod files;
pub mod grants;
pub mod headers;
pub mod listing;
pub mod profiles;
pub mod replicas;
pub mod retention;
pub mod runs;
pub mod servers;
pub mod sessions;
pub mod settings;
pub mod snapshot;
pub mod tokens;
pub mod tools;
pub mod upstream_sessions;

use std::time::Duration;

pub use gatehouse_store::Keyring;
use tokio::time::timeout;
use uuid::Uuid;

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

/// Bounds work on the database. The database's own limits end a statement that is slow; this one ends the wait for a
/// database whose host or network is gone without a word, which the system notices only after many minutes.
pub async fn within<T>(most: Duration, work: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
    timeout(most, work).await.unwrap_or_else(|_| Err(no_answer()))
}

/// The error of a database that did not answer in time.
pub fn no_answer() -> DbError {
    DbError::Io(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        "the database did not answer within the time allowed",
    ))
}

/// What a request that makes something came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made<T> {
    /// It was made now.
    New(T),
    /// The same request had made it before.
    Before(T),
}

impl<T> Made<T> {
    /// The thing, whenever it was made.
    pub fn into_inner(self) -> T {
        match self {
            Self::New(thing) | Self::Before(thing) => thing,
        }
    }
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

/// Whether a unique index of this name refused a row.
fn is_taken(error: &DbError, index: &str) -> bool {
    matches!(error, DbError::Database(error) if error.is_unique_violation() && error.constraint() == Some(index))
}

/// The id that a request's text spells, when it spells one.
fn as_id(key: &str) -> Option<Uuid> {
    (key.len() == 36).then(|| Uuid::try_parse(key).ok()).flatten()
}

/// Checks that a `request_id` came back with the content it came with.
fn same_request(request_id: &str, stored: Option<&[u8]>, digest: [u8; 32]) -> Result<(), Error> {
    if stored == Some(digest.as_slice()) {
        return Ok(());
    }
    let words = format!("`request_id` `{request_id}` was used before with another content; use a new one");
    Err(Error::AlreadyExists(words))
}

/// A stored number that has no negative values.
fn unsigned<T: TryFrom<N>, N>(what: &str, number: N) -> Result<T, Error> {
    T::try_from(number).map_err(|_| Error::Broken(format!("`{what}` is out of range")))
}

/// A stored word as the value that it stands for.
fn known<T>(what: &str, value: Option<T>) -> Result<T, Error> {
    value.ok_or_else(|| Error::Broken(format!("`{what}` holds a word that this version does not know")))
}

/// A row limit: one more than a page, which shows whether another page follows.
fn limit(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX - 1) + 1
}
