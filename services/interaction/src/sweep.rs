//! Closes the cards that nobody will answer: their time is over, their session is deleted, or the gateway that waits is gone.
//! Every replica sweeps; side by side they do no harm.

use std::{collections::BTreeMap, time::Duration};

use gatehouse_platform::error::chain;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::{
    error::Error,
    grpc::closed_as,
    state::Word,
    store::{self, Pool, sweep},
};

/// How often.
const EVERY: Duration = Duration::from_secs(1);

/// Sweeps until `shutdown`.
pub async fn run(pool: Pool, shutdown: CancellationToken) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
        match sweep_all(&pool).await {
            Ok(()) => failing = false,
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(error.message = chain(&error), "cards cannot be swept; trying again");
                }
            }
        }
    }
}

async fn sweep_all(pool: &Pool) -> Result<(), Error> {
    loop {
        let words = store::within(store::ANSWER_WITHIN, async {
            let mut transaction = pool.begin().await?;
            let words = sweep::close_due(&mut transaction).await?;
            if !words.is_empty() {
                store::notify(&mut transaction).await?;
            }
            transaction.commit().await?;
            Ok(words)
        });
        let words = words.await?;
        let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
        for word in &words {
            let known = Word::parse(word).ok_or_else(|| Error::Broken(format!("cards were closed as `{word}`")))?;
            *counted.entry(known.as_str()).or_default() += 1;
            closed_as(known);
        }
        for (word, cards) in counted {
            tracing::info!(interaction.state = word, cards, "cards were closed that nobody will answer");
        }
        if words.len() < sweep::AT_ONCE {
            return Ok(());
        }
    }
}
