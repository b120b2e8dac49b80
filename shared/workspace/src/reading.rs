//! A file that is being read.

use std::{io::Read as _, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use tokio::{task::spawn_blocking, time::timeout};

use crate::problem::{Cause, Problem};

/// Most bytes of a chunk.
pub const CHUNK_BYTES: usize = 64 << 10;
/// Longest wait for a chunk.
const CHUNK_WITHIN: Duration = Duration::from_secs(30);

/// An open file: its size when it was opened, and just as many bytes in chunks.
pub struct Reading {
    /// Size in bytes.
    pub size: u64,
    left: u64,
    source: Source,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading").field("size", &self.size).field("left", &self.left).finish_non_exhaustive()
    }
}

enum Source {
    /// `None` only while it is being read from.
    File(Option<std::fs::File>),
    Stream {
        stream: BoxStream<'static, object_store::Result<Bytes>>,
        rest: Bytes,
    },
}

impl Reading {
    pub(crate) fn file(file: std::fs::File, size: u64) -> Self {
        Self { size, left: size, source: Source::File(Some(file)) }
    }

    pub(crate) fn stream(stream: BoxStream<'static, object_store::Result<Bytes>>, size: u64) -> Self {
        Self { size, left: size, source: Source::Stream { stream, rest: Bytes::new() } }
    }

    /// The next bytes, at most [`CHUNK_BYTES`]; `None` at the end. A file that grew meanwhile ends where it ended; one
    /// that became shorter is [`Cause::Changed`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        if most == 0 {
            return Ok(None);
        }
        let chunk = timeout(CHUNK_WITHIN, self.source.next(most)).await.map_err(|_| Problem::from(Cause::Silent))??;
        if chunk.is_empty() {
            return Err(Cause::Changed.into());
        }
        self.left = self.left.saturating_sub(chunk.len() as u64);
        Ok(Some(chunk))
    }
}

impl Source {
    /// At most so many bytes; none at the end.
    async fn next(&mut self, most: usize) -> Result<Bytes, Problem> {
        match self {
            Self::File(place) => {
                let mut file = place.take().ok_or(Problem::from(Cause::Changed))?;
                let (file, chunk) = spawn_blocking(move || {
                    let mut chunk = Vec::with_capacity(most);
                    let read = (&mut file).take(most as u64).read_to_end(&mut chunk);
                    read.map(|_| (file, chunk))
                })
                .await
                .map_err(|_| Problem::from(Cause::Other))??;
                *place = Some(file);
                Ok(chunk.into())
            }
            Self::Stream { stream, rest } => {
                while rest.is_empty() {
                    match stream.next().await {
                        Some(bytes) => *rest = bytes?,
                        None => return Ok(Bytes::new()),
                    }
                }
                Ok(rest.split_to(most.min(rest.len())))
            }
        }
    }
}
