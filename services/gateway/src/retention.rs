//! Deleting what is older than the settings say: calls, events, what is left of deleted sessions.
//!
//! Every replica sweeps; they do not get into each other's way. Nothing here is on the path of a call.

use std::{sync::Arc, time::Duration};

use gatehouse_types::{Clock, Settings};
use time::OffsetDateTime;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::{
    snapshot::Snapshot,
    store::{self, DbError, Pool, retention},
};

/// How often it is looked for what is old enough.
const EVERY: Duration = Duration::from_mins(10);
/// How long what belonged to a deleted session stays, at least.
pub const DELETED_SESSIONS: time::Duration = time::Duration::days(7);
/// Most batches of one kind in one sweep: the rest waits for the next.
const MOST_BATCHES: usize = 1_000;

/// What a sweep deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Calls.
    pub calls: u64,
    /// Events.
    pub events: u64,
    /// Sessions.
    pub sessions: u64,
}

/// Sweeps now and then until `shutdown`.
pub async fn keep(pool: Pool, snapshot: Arc<Snapshot>, clock: Arc<dyn Clock>, shutdown: CancellationToken) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
        let settings = snapshot.catalog().settings.clone();
        match shutdown.run_until_cancelled(sweep(&pool, &settings, clock.now())).await {
            None => return,
            Some(Ok(swept)) if swept == Swept::default() => {}
            Some(Ok(Swept { calls, events, sessions })) => {
                tracing::info!(calls, events, sessions, "what was old enough has been deleted");
            }
            Some(Err(error)) => {
                tracing::warn!(error.message = %error, "what is old enough was not deleted; trying again later");
            }
        }
    }
}

/// What is deleted by its age.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Calls,
    Events,
    OfDeletedSessions,
    DeletedSessions,
}

/// Deletes what is old enough at `now`.
pub async fn sweep(pool: &Pool, settings: &Settings, now: OffsetDateTime) -> Result<Swept, DbError> {
    let ago = |days: u32| now - time::Duration::days(i64::from(days));
    let calls = batches(pool, Kind::Calls, ago(settings.audit_retention_days)).await?;
    let events = batches(pool, Kind::Events, ago(settings.events_retention_days)).await?;
    batches(pool, Kind::OfDeletedSessions, now - DELETED_SESSIONS).await?;
    let sessions = batches(pool, Kind::DeletedSessions, now - DELETED_SESSIONS).await?;
    Ok(Swept { calls, events, sessions })
}

/// Repeats a batch until one is not full. Each has a connection of its own, so that calls get one between two batches.
async fn batches(pool: &Pool, kind: Kind, before: OffsetDateTime) -> Result<u64, DbError> {
    let mut total = 0;
    for _ in 0..MOST_BATCHES {
        let mut connection = pool.acquire().await?;
        let batch = async {
            match kind {
                Kind::Calls => retention::calls(&mut connection, before).await,
                Kind::Events => retention::events(&mut connection, before).await,
                Kind::OfDeletedSessions => retention::of_deleted_sessions(&mut connection, before).await,
                Kind::DeletedSessions => retention::sessions(&mut connection, before).await,
            }
        };
        let deleted = store::within(store::ANSWER_WITHIN, batch).await?;
        total += deleted;
        if deleted < retention::BATCH.unsigned_abs() {
            break;
        }
    }
    Ok(total)
}
