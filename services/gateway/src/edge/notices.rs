//! Event streams to engines: a call's messages, and the stream that says when the offered tools have changed.
//!
//! What a turn listed stays what it listed: a change is announced once, when the actor's run has ended, or, without runs,
//! when no call has been in flight for [`QUIET`].

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, stream};
use gatehouse_mcp::sse;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::exchange::{Exchange, Next, priming_id};
use crate::{
    catalog::Offer,
    snapshot::{Principal, Snapshot},
};

/// A comment keeps balancers from closing a silent stream.
const COMMENT_EVERY: Duration = Duration::from_secs(15);
/// A progress notification of our own keeps an engine with an idle limit waiting.
const TICK_EVERY: Duration = Duration::from_secs(45);
/// Without runs: how long no call must have been in flight before a change is announced.
const QUIET: Duration = Duration::from_secs(5);
/// How often it is looked whether it is quiet.
const LOOK_EVERY: Duration = Duration::from_secs(1);

const COMMENT: &[u8] = b": keep-alive\n\n";

/// The messages of an exchange after `after`, until its end. With a revision (the older era), events have ids, and since
/// 2025-11-25 a priming event comes first. `_cancel` is held as long as the stream is.
pub(super) fn replay(
    exchange: Arc<Exchange>,
    after: Option<usize>,
    version: Option<&'static str>,
    cancel: Option<DropGuard>,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let prime = after.is_none() && version.is_some_and(|version| version >= "2025-11-25");
    // An id from the engine: a place beyond what there is would hide the answer.
    let next = after.map_or(0, |index| index.saturating_add(1).min(exchange.count()));
    let now = Instant::now();
    let reader = Reader { exchange, next, ids: version.is_some(), prime, ticked: now, began: now, cancel };
    stream::unfold(reader, |mut reader| async move { reader.event().await.map(|event| (event, reader)) })
}

struct Reader {
    exchange: Arc<Exchange>,
    next: usize,
    ids: bool,
    prime: bool,
    ticked: Instant,
    began: Instant,
    cancel: Option<DropGuard>,
}

impl Reader {
    async fn event(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.prime) {
            let mut event = Vec::new();
            sse::encode(&mut event, Some(&priming_id(&self.exchange)), b"");
            return Some(Bytes::from(event));
        }
        loop {
            match self.exchange.read(self.next) {
                Next::Message(message) => {
                    let id = self.ids.then(|| self.exchange.event_id(self.next));
                    let mut event = Vec::with_capacity(message.iter().map(Bytes::len).sum::<usize>() + 128);
                    sse::encode(&mut event, id.as_deref(), &message.concat());
                    self.next += 1;
                    self.ticked = Instant::now();
                    return Some(Bytes::from(event));
                }
                Next::End => {
                    // The call is over: there is nothing left to cancel.
                    if let Some(guard) = self.cancel.take() {
                        guard.disarm();
                    }
                    return None;
                }
                Next::Nothing => {}
            }
            tokio::select! {
                () = self.exchange.wait(self.next) => {}
                () = sleep_until(self.ticked + TICK_EVERY) => {
                    self.ticked = Instant::now();
                    self.exchange.tick(self.began.elapsed().as_secs());
                }
                () = sleep(COMMENT_EVERY) => return Some(Bytes::from_static(COMMENT)),
            }
        }
    }
}

/// One event that holds `message`.
pub(super) fn one(message: &[Bytes]) -> impl Stream<Item = Bytes> + Send + use<> {
    let mut event = Vec::new();
    sse::encode(&mut event, None, &message.concat());
    stream::iter([Bytes::from(event)])
}

/// A stream that says when the offered tools have changed. `first` is sent at once, `notice` at each change, `last` when
/// the gateway shuts down or the session ends.
pub(super) fn watch_tools(
    snapshot: Arc<Snapshot>,
    principal: Arc<Principal>,
    shutdown: CancellationToken,
    first: Option<Bytes>,
    notice: Bytes,
    last: Option<Bytes>,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let changes = snapshot.changes();
    let mut watcher =
        Watcher { snapshot, principal, shutdown, changes, notice, last, told: None, pending: false, over: false };
    watcher.told = watcher.offer();
    stream::unfold((watcher, first), |(mut watcher, first)| async move {
        let event = match first {
            Some(first) => Some(first),
            None => watcher.event().await,
        };
        event.map(|event| (event, (watcher, None)))
    })
}

struct Watcher {
    snapshot: Arc<Snapshot>,
    principal: Arc<Principal>,
    shutdown: CancellationToken,
    changes: watch::Receiver<u64>,
    notice: Bytes,
    last: Option<Bytes>,
    /// What the engine has been told of.
    told: Option<Arc<Offer>>,
    pending: bool,
    over: bool,
}

impl Watcher {
    async fn event(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let comment = sleep(COMMENT_EVERY);
        tokio::pin!(comment);
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return self.end(),
                () = self.principal.session.ended.cancelled() => return self.end(),
                () = &mut comment => return Some(Bytes::from_static(COMMENT)),
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        return self.end();
                    }
                    self.pending = self.has_changed();
                }
                () = sleep(LOOK_EVERY), if self.pending => {}
            }
            if self.pending && self.is_quiet() {
                self.pending = false;
                self.told = self.offer();
                return Some(self.notice.clone());
            }
        }
    }

    fn end(&mut self) -> Option<Bytes> {
        self.over = true;
        self.last.take()
    }

    fn offer(&self) -> Option<Arc<Offer>> {
        let facts = self.principal.session.facts();
        self.snapshot.catalog().offer(facts.profile, facts.mode).cloned()
    }

    fn has_changed(&mut self) -> bool {
        let now = self.offer();
        match (&self.told, &now) {
            (Some(told), Some(now)) if Arc::ptr_eq(told, now) => false,
            (Some(told), Some(new)) if told.version == new.version => {
                self.told = now;
                false
            }
            (None, None) => false,
            _ => true,
        }
    }

    fn is_quiet(&self) -> bool {
        let session = &self.principal.session;
        !session.facts().runs.contains_key(&self.principal.actor) && session.activity.idle_for(QUIET)
    }
}
