//! Pure: a result put together from pieces.

use bytes::{Bytes, BytesMut};

use super::blocks::is_within;

/// A block smaller than this is copied, a larger one is shared.
const SHARED_FROM: usize = 4_096;

/// Puts pieces together, sharing large ones.
pub(super) struct Builder<'a> {
    body: &'a Bytes,
    pieces: Vec<Bytes>,
    open: BytesMut,
    first: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(body: &'a Bytes) -> Self {
        Self { body, pieces: Vec::new(), open: BytesMut::with_capacity(512), first: true }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.open.extend_from_slice(text.as_bytes());
    }

    /// A comma before every block but the first.
    pub(super) fn separate(&mut self) {
        if !self.first {
            self.text(",");
        }
        self.first = false;
    }

    /// A piece that may be a slice of the server's own bytes.
    pub(super) fn raw(&mut self, text: &str) {
        if text.len() < SHARED_FROM || !is_within(self.body, text) {
            return self.text(text);
        }
        self.close();
        self.pieces.push(self.body.slice_ref(text.as_bytes()));
    }

    /// An empty piece, to be filled later: its place.
    pub(super) fn gap(&mut self) -> usize {
        self.separate();
        self.close();
        self.pieces.push(Bytes::new());
        self.pieces.len() - 1
    }

    pub(super) fn finish(mut self) -> Vec<Bytes> {
        self.close();
        self.pieces
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.pieces.push(self.open.split().freeze());
        }
    }
}
