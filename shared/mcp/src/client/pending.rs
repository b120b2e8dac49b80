//! Requests whose answer or progress may come on another stream than their own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;

use crate::client::shared::locked;

/// The open requests that can be reached by id. A request that is answered at once never gets in here.
#[derive(Default)]
pub(crate) struct Pending(Mutex<HashMap<u64, Arc<Slot>>>);

/// Where other streams leave what belongs to one request. Holds one answer and the latest report of progress, no queue.
#[derive(Default)]
pub(crate) struct Slot {
    waker: AtomicWaker,
    left: Mutex<Left>,
}

#[derive(Default)]
struct Left {
    answer: Option<Item>,
    progress: Option<Bytes>,
}

/// A message that was left, as the server wrote it.
pub(crate) enum Item {
    Progress(Bytes),
    Answer(Bytes),
    /// An answer that was too large to be read.
    TooLarge,
}

impl Pending {
    pub(crate) fn register(&self, id: u64) -> Arc<Slot> {
        locked(&self.0).entry(id).or_default().clone()
    }

    pub(crate) fn remove(&self, id: u64) {
        locked(&self.0).remove(&id);
    }

    /// Leaves a message for a request; `false` when no such request waits here.
    pub(crate) fn leave(&self, id: u64, item: Item) -> bool {
        let Some(slot) = locked(&self.0).get(&id).cloned() else { return false };
        let mut left = locked(&slot.left);
        match item {
            Item::Progress(message) => left.progress = Some(message),
            // The first answer counts.
            answer => _ = left.answer.get_or_insert(answer),
        }
        drop(left);
        slot.waker.wake();
        true
    }
}

impl Slot {
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Item> {
        self.waker.register(context.waker());
        let mut left = locked(&self.left);
        if let Some(message) = left.progress.take() {
            return Poll::Ready(Item::Progress(message));
        }
        left.answer.take().map_or(Poll::Pending, Poll::Ready)
    }
}
