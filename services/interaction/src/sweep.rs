//! Closes the cards that nobody will answer: their time is over, their session is deleted, or the gateway that waits is gone.
//! Every replica sweeps; side by side they do no harm.

use std::{collections::BTreeMap, time::Duration};

use gatehouse_platform::error::chain;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::{
    error::Error,
    grpc::closed_as,
    state::Word,
    store::{self, Pool, sweep},
};

/// How often.
const EVERY: Duration = Duration::from_secs(1);
/// A pause between two answers of the database from which on it was away.
const BREAK: Duration = Duration::from_secs(5);

/// Sweeps until `shutdown`.
pub async fn run(pool: Pool, shutdown: CancellationToken) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    let mut contact = Contact::default();
    while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
        match sweep_all(&pool, contact.is_long(Instant::now())).await {
            Ok(()) => {
                failing = false;
                contact.made(Instant::now());
            }
            Err(error) => {
                contact = Contact::default();
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(error.message = chain(&error), "cards cannot be swept; trying again");
                }
            }
        }
    }
}

/// How long the database has answered without a break. While it is away no gateway can say that it lives, whatever kept it away: a
/// lapsed heartbeat means something only after a lease in which it could have been renewed.
#[derive(Debug, Default)]
struct Contact(Option<(Instant, Instant)>);

impl Contact {
    /// It answered.
    fn made(&mut self, now: Instant) {
        let since = self.0.filter(|(_, last)| now - *last < BREAK).map_or(now, |(since, _)| since);
        self.0 = Some((since, now));
    }

    /// Whether it has answered for a lease.
    fn is_long(&self, now: Instant) -> bool {
        self.0
            .is_some_and(|(since, last)| now - last < BREAK && now - since >= Duration::from_secs_f64(sweep::LEASE_SEC))
    }
}

async fn sweep_all(pool: &Pool, lapses: bool) -> Result<(), Error> {
    loop {
        let words = store::within(store::ANSWER_WITHIN, async {
            let mut transaction = gatehouse_store::begin(pool).await?;
            let words = sweep::close_due(&mut transaction, lapses).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lapse_counts_only_after_a_lease_of_unbroken_contact() {
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let mut contact = Contact::default();
        assert!(!contact.is_long(at(0)));
        (0..=15).for_each(|second| contact.made(at(second)));
        assert!(!contact.is_long(at(14)) && contact.is_long(at(15)));
        // Nothing was heard for eight seconds: it begins anew.
        assert!(!contact.is_long(at(23)));
        contact.made(at(23));
        assert!(!contact.is_long(at(24)));
        (24..=38).for_each(|second| contact.made(at(second)));
        assert!(contact.is_long(at(38)));
    }
}
