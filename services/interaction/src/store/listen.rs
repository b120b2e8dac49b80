//! Hearing that something has changed.

use std::str::FromStr as _;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};

use super::{ANSWER_WITHIN, CHANNEL, DbError, Pool, within};

/// A connection that listens.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Listener {
    /// Opens one at `direct`, else where the pool's connections go.
    pub async fn open(pool: &Pool, direct: Option<&SecretString>) -> Result<Self, DbError> {
        let options = match direct {
            Some(url) => PgConnectOptions::from_str(url.expose_secret())?,
            None => pool.connect_options().as_ref().clone(),
        };
        within(ANSWER_WITHIN, async {
            // A pool for this one connection: the listener takes its connections from one.
            let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
            let mut listener = PgListener::connect_with(&own).await?;
            listener.eager_reconnect(false);
            listener.listen(CHANNEL).await?;
            Ok(Self(listener))
        })
        .await
    }

    /// Waits for a notice. False when the connection is lost.
    pub async fn heard(&mut self) -> bool {
        matches!(self.0.try_recv().await, Ok(Some(_)))
    }
}
