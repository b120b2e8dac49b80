//! A Postgres database for one test: cloned from a migrated template, dropped with the test.

use std::{fmt::Write as _, str::FromStr as _, thread};

use anyhow::Context as _;
use gatehouse_types::secret::random_bytes;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

const MOST_CONNECTIONS: u32 = 10;
/// "The source database is being accessed by other users": another test clones the template at this moment.
const OBJECT_IN_USE: &str = "55006";
const ADVISORY_LOCK: i64 = 0x6761_7465_686f_7573;

/// A database of its own, with the schema applied. Dropped when this is, together with whatever is still connected.
#[derive(Debug)]
pub struct Database {
    name: String,
    cluster: PgConnectOptions,
    pool: PgPool,
}

impl Database {
    /// Makes one in the cluster at `TEST_DATABASE_URL`, whose user must be allowed to create databases.
    ///
    /// # Panics
    /// When there is no such cluster, with words on what to do.
    #[expect(clippy::panic, reason = "a test without its database cannot go on")]
    pub async fn new() -> Self {
        match Self::create().await {
            Ok(database) => database,
            Err(error) => panic!("no test database: {error:#}"),
        }
    }

    /// A pool of up to 10 connections.
    pub fn pool(&self) -> PgPool {
        self.pool.clone()
    }

    /// Its address, for processes that connect by themselves.
    pub fn url(&self) -> String {
        self.cluster.clone().database(&self.name).to_url_lossy().to_string()
    }

    /// Lets nobody else use a table until the transaction ends: like a disk that does not answer.
    pub async fn lock(&self, table: &str) -> anyhow::Result<sqlx::Transaction<'static, sqlx::Postgres>> {
        let mut transaction = gatehouse_store::begin(&self.pool).await?;
        let statement = AssertSqlSafe(format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"));
        sqlx::query(statement).execute(&mut *transaction).await?;
        Ok(transaction)
    }

    /// Cuts everybody off: connections are ended and no new ones are let in, until [`Self::allow_connections`].
    pub async fn refuse_connections(&self) -> anyhow::Result<()> {
        self.connections(false).await
    }

    /// Lets connections in again.
    pub async fn allow_connections(&self) -> anyhow::Result<()> {
        self.connections(true).await
    }

    async fn connections(&self, allowed: bool) -> anyhow::Result<()> {
        let mut connection = self.cluster.connect().await?;
        let name = &self.name;
        let statement = AssertSqlSafe(format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {allowed}"));
        sqlx::query(statement).execute(&mut connection).await?;
        if !allowed {
            let statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1";
            sqlx::query(statement).bind(name).execute(&mut connection).await?;
        }
        Ok(connection.close().await?)
    }

    /// An empty database, without the schema.
    ///
    /// # Panics
    /// Like [`Self::new`].
    #[expect(clippy::panic, reason = "a test without its database cannot go on")]
    pub async fn empty() -> Self {
        match Self::create_from("template0").await {
            Ok(database) => database,
            Err(error) => panic!("no test database: {error:#}"),
        }
    }

    async fn create() -> anyhow::Result<Self> {
        let template = format!("gatehouse_template_{}", gatehouse_store::migrate::fingerprint());
        let cluster = cluster()?;
        ensure_template(&cluster, &template).await.context("making the template database")?;
        Self::create_from(&template).await
    }

    async fn create_from(template: &str) -> anyhow::Result<Self> {
        let cluster = cluster()?;
        let mut name = String::from("gatehouse_test_");
        for byte in random_bytes::<8>()? {
            write!(name, "{byte:02x}")?;
        }
        let mut connection = cluster.connect().await.context("connecting to TEST_DATABASE_URL")?;
        loop {
            // Names of databases cannot be bound; both are made of letters and digits above.
            let create = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE {template}"));
            match sqlx::query(create).execute(&mut connection).await {
                Ok(_) => break,
                Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(OBJECT_IN_USE) => {
                    tokio::task::yield_now().await;
                }
                Err(error) => return Err(error).context("cloning the template"),
            }
        }
        connection.close().await?;
        let pool =
            PgPoolOptions::new().max_connections(MOST_CONNECTIONS).connect_lazy_with(cluster.clone().database(&name));
        Ok(Self { name, cluster, pool })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (cluster, name) = (self.cluster.clone(), self.name.clone());
        // A thread of its own: the test's runtime may be the one that is unwinding.
        let dropped = thread::spawn(move || -> anyhow::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let mut connection = cluster.connect().await?;
                let drop = AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
                sqlx::query(drop).execute(&mut connection).await?;
                Ok(connection.close().await?)
            })
        })
        .join();
        // Panicking while a test panics would abort the whole run.
        if !thread::panicking() {
            assert!(matches!(dropped, Ok(Ok(()))), "database {} was not dropped: {dropped:?}", self.name);
        }
    }
}

fn cluster() -> anyhow::Result<PgConnectOptions> {
    let url = std::env::var("TEST_DATABASE_URL").ok().filter(|url| !url.is_empty());
    let url = url.context("TEST_DATABASE_URL is not set: run `./dev test`, or set TEST_DATABASE_URL")?;
    PgConnectOptions::from_str(&url).context("TEST_DATABASE_URL is not a Postgres URL")
}

async fn ensure_template(cluster: &PgConnectOptions, template: &str) -> anyhow::Result<()> {
    let mut connection = cluster.connect().await.context("connecting to TEST_DATABASE_URL")?;
    // The lock ends with the connection, whatever happens.
    sqlx::query("SELECT pg_advisory_lock($1)").bind(ADVISORY_LOCK).execute(&mut connection).await?;
    let made = make_template(&mut connection, cluster, template).await;
    connection.close().await?;
    made
}

async fn make_template(
    connection: &mut PgConnection,
    cluster: &PgConnectOptions,
    template: &str,
) -> anyhow::Result<()> {
    let finished: Option<bool> = sqlx::query_scalar("SELECT datistemplate FROM pg_database WHERE datname = $1")
        .bind(template)
        .fetch_optional(&mut *connection)
        .await?;
    if finished == Some(true) {
        return Ok(());
    }
    // Half made, by a run that was killed.
    sqlx::query(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {template} WITH (FORCE)")))
        .execute(&mut *connection)
        .await?;
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {template} TEMPLATE template0")))
        .execute(&mut *connection)
        .await?;
    let pool = PgPoolOptions::new().max_connections(1).connect_with(cluster.clone().database(template)).await?;
    gatehouse_store::migrate(&pool).await?;
    pool.close().await;
    sqlx::query(AssertSqlSafe(format!("ALTER DATABASE {template} IS_TEMPLATE true"))).execute(connection).await?;
    Ok(())
}
