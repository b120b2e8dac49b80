//! Deletes closed cards that are as old as the audit's rows of calls may become (`audit.retentionDays`). Every replica does.

use std::time::Duration;

use gatehouse_platform::error::chain;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::{
    error::Error,
    store::{self, Pool, retention},
};

/// How often it is looked for what is old enough.
const EVERY: Duration = Duration::from_mins(10);
/// Most batches at one look: the rest waits for the next.
const MOST_BATCHES: usize = 1_000;

/// Deletes now and then until `shutdown`.
pub async fn keep(pool: Pool, shutdown: CancellationToken) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
        match shutdown.run_until_cancelled(Box::pin(sweep(&pool))).await {
            None => return,
            Some(Ok(0)) => {}
            Some(Ok(cards)) => tracing::info!(cards, "cards that were old enough have been deleted"),
            Some(Err(error)) => {
                tracing::warn!(error.message = chain(&error), "old cards were not deleted; trying again later");
            }
        }
    }
}

/// Deletes what is old enough now, in batches; gives how many cards that were.
pub async fn sweep(pool: &Pool) -> Result<u64, Error> {
    let mut total = 0;
    for _ in 0..MOST_BATCHES {
        let batch = async {
            let mut connection = pool.acquire().await?;
            let days = gatehouse_store::settings::load(&mut connection).await?.settings.audit_retention_days;
            retention::delete(&mut connection, days).await
        };
        let deleted = store::within(store::ANSWER_WITHIN, batch).await?;
        total += deleted;
        if deleted < retention::AT_ONCE {
            break;
        }
    }
    Ok(total)
}
