//! Opening transactions.

use std::io;

use sqlx::{PgPool, Postgres, Transaction};

/// Opens a transaction, and the only way to.
///
/// `Pool::begin` of sqlx 0.9 must not be cancelled: a caller that goes away while it waits gives a connection back to the pool that
/// is inside a transaction, and what others write over it is never committed. Here the beginning runs to its end, whoever waits; a
/// transaction that nobody took is rolled back.
pub async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let pool = pool.clone();
    #[expect(clippy::disallowed_methods, reason = "the task is not cancelled with its caller")]
    let beginning = tokio::spawn(async move { pool.begin().await });
    beginning.await.unwrap_or_else(|lost| Err(sqlx::Error::Io(io::Error::other(lost))))
}
