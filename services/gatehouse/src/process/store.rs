//! What is asked of a cluster of its own: whether it answers, and the one database in it.

use std::str::FromStr as _;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, postgres::PgConnectOptions};

/// What the database driver reports.
pub(super) type DbError = sqlx::Error;

/// A connection to the cluster, once it answers.
pub(super) struct Answering(PgConnection);

/// Connects to the cluster's own database.
pub(super) async fn connect(url: &str) -> Result<Answering, DbError> {
    PgConnection::connect_with(&PgConnectOptions::from_str(url)?).await.map(Answering)
}

impl Answering {
    /// Makes the database `name`, unless it is there.
    pub(super) async fn make_database(mut self, name: &'static str) -> Result<(), DbError> {
        let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)")
            .bind(name)
            .fetch_one(&mut self.0)
            .await?;
        if !exists {
            // Names of databases cannot be bound; this one is a constant of the caller's.
            sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut self.0).await?;
        }
        self.0.close().await
    }
}
