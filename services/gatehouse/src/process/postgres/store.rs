//! What `up` asks of its own cluster.

use std::str::FromStr as _;

pub(super) use sqlx::Error as DbError;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, postgres::PgConnectOptions};

/// Where a cluster is.
pub(super) struct Place(PgConnectOptions);

impl Place {
    /// From the URL of a database.
    pub(super) fn new(url: &str) -> Result<Self, DbError> {
        PgConnectOptions::from_str(url).map(Self)
    }

    /// Connects. Fails while the cluster does not answer yet.
    pub(super) async fn connect(&self) -> Result<PgConnection, DbError> {
        PgConnection::connect_with(&self.0).await
    }
}

/// Makes a database unless it is there. `name` is a constant: names of databases cannot be bound.
pub(super) async fn make_database(mut connection: PgConnection, name: &'static str) -> Result<(), DbError> {
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)")
        .bind(name)
        .fetch_one(&mut connection)
        .await?;
    if !exists {
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await?;
    }
    connection.close().await
}
