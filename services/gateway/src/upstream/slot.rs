//! The place of one connection: its server and session, and the connection while there is one.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use gatehouse_mcp::client::Connection;
use gatehouse_stdio::{Exit, Process};
use gatehouse_types::{ServerId, SessionId};
use tokio::{
    sync::{Mutex, Notify, OwnedSemaphorePermit},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::processes::exit_of;
use crate::call::words::Words;

/// A connection that was opened.
pub(super) struct Live {
    pub(super) connection: Connection,
    /// The process, when the server is a program.
    pub(super) process: Option<Arc<Process>>,
    config_hash: [u8; 32],
    in_use: AtomicU64,
    freed: Notify,
}

/// A connection that could not be opened.
pub(super) struct Failure {
    pub(super) at: Instant,
    /// The configuration that it was tried with.
    pub(super) config_hash: [u8; 32],
    /// In words for the model.
    pub(super) why: Words,
}

/// The place of a connection.
pub(super) struct Slot {
    pub(super) server: ServerId,
    pub(super) session: SessionId,
    /// Held while a connection is opened; the last failure.
    pub(super) opening: Mutex<Option<Failure>>,
    live: ArcSwapOption<Live>,
    session_ended: CancellationToken,
    began: Instant,
    used_at: AtomicU64,
}

/// A connection in use by one request, with the server's permit.
pub struct Lease {
    /// Its place; `None` for a process, which has one of its own.
    pub(super) slot: Option<Arc<Slot>>,
    pub(super) live: Arc<Live>,
    _permit: OwnedSemaphorePermit,
}

impl Live {
    pub(super) fn new(connection: Connection, config_hash: [u8; 32]) -> Self {
        Self { connection, process: None, config_hash, in_use: AtomicU64::new(0), freed: Notify::new() }
    }

    pub(super) fn of_process(connection: Connection, config_hash: [u8; 32], process: Arc<Process>) -> Self {
        Self { process: Some(process), ..Self::new(connection, config_hash) }
    }

    /// Returns when no request uses it.
    pub(super) async fn unused(&self) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.in_use.load(Ordering::Acquire) == 0 {
                return;
            }
            freed.await;
        }
    }
}

impl Slot {
    pub(super) fn new(server: ServerId, session: SessionId, session_ended: CancellationToken) -> Self {
        Self {
            server,
            session,
            opening: Mutex::new(None),
            live: ArcSwapOption::empty(),
            session_ended,
            began: Instant::now(),
            used_at: AtomicU64::new(0),
        }
    }

    /// The connection, when it was opened with this configuration.
    pub(super) fn live(&self, config_hash: [u8; 32]) -> Option<Arc<Live>> {
        self.live.load_full().filter(|live| live.config_hash == config_hash)
    }

    /// The connection, whatever it was opened with.
    pub(super) fn current(&self) -> Option<Arc<Live>> {
        self.live.load_full()
    }

    pub(super) fn put(&self, live: Arc<Live>) -> Option<Arc<Live>> {
        self.live.swap(Some(live))
    }

    pub(super) fn take(&self) -> Option<Arc<Live>> {
        self.live.swap(None)
    }

    /// Takes out this connection, unless another has taken its place. Returns whether it was there.
    pub(super) fn remove(&self, live: &Arc<Live>) -> bool {
        let before = self.live.compare_and_swap(live, None);
        before.as_ref().is_some_and(|before| Arc::ptr_eq(before, live))
    }

    pub(super) fn is_open(&self) -> bool {
        self.live.load().is_some()
    }

    pub(super) fn is_in_use(&self) -> bool {
        // An opening slot is in use as well.
        self.opening.try_lock().is_err()
            || self.live.load().as_ref().is_some_and(|live| live.in_use.load(Ordering::Acquire) > 0)
    }

    pub(super) fn touch(&self) {
        self.used_at.store(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn idle_for(&self, pause: Duration) -> bool {
        self.began.elapsed().saturating_sub(Duration::from_millis(self.used_at.load(Ordering::Relaxed))) >= pause
    }

    pub(super) fn session_has_ended(&self) -> bool {
        self.session_ended.is_cancelled()
    }
}

impl Lease {
    pub(super) fn new(slot: Option<Arc<Slot>>, live: Arc<Live>, permit: OwnedSemaphorePermit) -> Self {
        live.in_use.fetch_add(1, Ordering::AcqRel);
        Self { slot, live, _permit: permit }
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.live.connection
    }

    /// How the server's process ended, when it is a program and has ended.
    pub async fn exit(&self) -> Option<Exit> {
        exit_of(&self.live).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            slot.touch();
        }
        if self.live.in_use.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.live.freed.notify_waiters();
        }
    }
}
