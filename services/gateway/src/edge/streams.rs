//! What is in flight at the edge: calls by their request ids, and exchanges that can be resumed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gatehouse_types::EdgeSessionId;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::exchange::Exchange;

/// Bytes of finished exchanges that are kept for engines that resume.
const MOST_KEPT_BYTES: usize = 128 << 20;
/// How often old exchanges are forgotten.
const SWEEP: Duration = Duration::from_secs(5);

/// Calls and exchanges of this replica.
#[derive(Default)]
pub(super) struct Streams {
    in_flight: Mutex<HashMap<(EdgeSessionId, String), CancellationToken>>,
    exchanges: Mutex<HashMap<Uuid, Arc<Exchange>>>,
}

/// A call in flight, until it is dropped.
pub(super) struct InFlight<'a> {
    streams: &'a Streams,
    key: (EdgeSessionId, String),
}

impl Streams {
    /// Enters a call under its request id; `None` when that id is in flight already.
    pub(super) fn enter(
        &self,
        session: EdgeSessionId,
        rpc_id: &str,
        cancel: &CancellationToken,
    ) -> Option<InFlight<'_>> {
        let key = (session, rpc_id.to_owned());
        let mut in_flight = lock(&self.in_flight);
        if in_flight.contains_key(&key) {
            return None;
        }
        in_flight.insert(key.clone(), cancel.clone());
        Some(InFlight { streams: self, key })
    }

    /// Cancels the call of this request id, if it is in flight.
    pub(super) fn cancel(&self, session: EdgeSessionId, rpc_id: &str) {
        if let Some(cancel) = lock(&self.in_flight).get(&(session, rpc_id.to_owned())) {
            cancel.cancel();
        }
    }

    /// Keeps an exchange for engines that resume.
    pub(super) fn keep(&self, exchange: &Arc<Exchange>) {
        lock(&self.exchanges).insert(exchange.stream, Arc::clone(exchange));
    }

    /// The exchange of this stream.
    pub(super) fn find(&self, stream: Uuid) -> Option<Arc<Exchange>> {
        lock(&self.exchanges).get(&stream).cloned()
    }

    pub(super) async fn sweep(&self, shutdown: &CancellationToken) {
        let mut tick = interval(SWEEP);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
            self.forget_old();
        }
    }

    /// Forgets what is too old; then the oldest of what is too much. Streams are named in the order they began.
    fn forget_old(&self) {
        let mut exchanges = lock(&self.exchanges);
        exchanges.retain(|_, exchange| !exchange.is_old());
        let mut sizes: Vec<(Uuid, usize)> = exchanges
            .iter()
            .map(|(stream, exchange)| (*stream, exchange.finished_bytes()))
            .filter(|(_, size)| *size > 0)
            .collect();
        let mut whole: usize = sizes.iter().map(|(_, size)| size).sum();
        sizes.sort_unstable();
        for (stream, size) in sizes {
            if whole <= MOST_KEPT_BYTES {
                break;
            }
            whole -= size;
            exchanges.remove(&stream);
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        lock(&self.streams.in_flight).remove(&self.key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
