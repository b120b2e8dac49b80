//! The Postgres pool of a process.

use std::{str::FromStr as _, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::{
    Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::Instant;

use crate::error::chain;

/// How long a process waits for a database that is not up yet.
pub const STARTUP_WAIT: Duration = Duration::from_secs(30);
/// Most connections of a process.
pub const MOST_CONNECTIONS: u32 = 20;
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_TIMEOUT: Duration = Duration::from_mins(10);
const STARTUP_PAUSE: Duration = Duration::from_millis(250);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is not one.
    #[error("DATABASE_URL is not a Postgres URL")]
    Url,
    /// It did not come up.
    #[error("the database at {at} did not answer within {} s; is it running, and is DATABASE_URL right?", STARTUP_WAIT.as_secs())]
    Silent {
        /// Host and port, or the socket's folder.
        at: String,
        /// The last error.
        #[source]
        last: Option<sqlx::Error>,
    },
    /// It answers, and refuses.
    #[error("the database at {at} refuses the connection")]
    Refused {
        /// Host and port, or the socket's folder.
        at: String,
        /// Why.
        #[source]
        why: sqlx::Error,
    },
}

/// Opens the pool of `process`; waits up to [`STARTUP_WAIT`] for a database that is not up yet. Each statement ends
/// after 30 s, each wait for a lock after 10 s, each idle transaction after 60 s.
pub async fn connect(process: &str, url: &SecretString) -> Result<PgPool, Error> {
    let options = PgConnectOptions::from_str(url.expose_secret()).map_err(|_| Error::Url)?;
    let options = options.application_name(&format!("gatehouse-{process}"));
    wait_until_up(&options).await?;
    Ok(PgPoolOptions::new()
        .max_connections(MOST_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(IDLE_TIMEOUT)
        // Not as startup parameters, which poolers refuse.
        .after_connect(|connection, _| Box::pin(set_limits(connection)))
        .connect_lazy_with(options))
}

async fn set_limits(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(
        "SELECT set_config('statement_timeout', '30s', false), set_config('lock_timeout', '10s', false),
                set_config('idle_in_transaction_session_timeout', '60s', false)",
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn wait_until_up(options: &PgConnectOptions) -> Result<(), Error> {
    let at = match options.get_socket() {
        Some(folder) => folder.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let started = Instant::now();
    let mut told = false;
    let mut last = None;
    while started.elapsed() < STARTUP_WAIT {
        match tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options)).await {
            Ok(Ok(connection)) => {
                if let Err(error) = connection.close().await {
                    tracing::debug!(error.message = %error, "the first connection did not close in order");
                }
                return Ok(());
            }
            Ok(Err(error)) if may_pass(&error) => last = Some(error),
            Ok(Err(why)) => return Err(Error::Refused { at, why }),
            Err(_) => {}
        }
        if !told {
            let error = last.as_ref().map(|error| chain(error)).unwrap_or_default();
            tracing::warn!(database.at = at, error.message = error, "waiting for the database");
            told = true;
        }
        tokio::time::sleep(STARTUP_PAUSE).await;
    }
    Err(Error::Silent { at, last })
}

/// Whether the same attempt may succeed a little later: not there yet, starting, stopping, or out of connections.
fn may_pass(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => {
            error.code().is_some_and(|code| code.starts_with("57P") || code.starts_with("53"))
        }
        _ => false,
    }
}
