//! The stdio transport (MCP 2025-11-25, basic/transports): messages as lines on the input and output of a process.
//!
//! One process serves many callers. A task of its own writes the lines, so that a caller who goes away leaves no half of one, and a
//! process that does not read its input holds up nobody but those who write to it.

use std::{sync::Arc, time::Duration};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        error::RequestError,
        inbound::Origin,
        pending::Item,
        shared::{Shared, Wire},
    },
    message, scan,
};

/// Most lines that wait to be written.
const MOST_WAITING: usize = 256;
/// How long a process may leave a line unread before it counts as ended.
const TAKE_WITHIN: Duration = Duration::from_secs(30);
/// How much is read at once.
const READ_AT_ONCE: usize = 64 << 10;
/// How much of a line that is too long is kept at its beginning and its end, to find whose answer it was.
const EDGE: usize = 128;
/// How much of a stray line is shown, in bytes.
const STRAY_SHOWN: usize = 400;

/// A message, and whom to tell once it is written.
type Turn = (Bytes, oneshot::Sender<()>);

/// The input of a process.
pub(crate) struct Pipe {
    lines: mpsc::Sender<Turn>,
    ended: CancellationToken,
}

impl Pipe {
    /// Writes until `stop`; then the process's input is closed.
    pub(crate) fn new(writer: impl AsyncWrite + Send + Unpin + 'static, stop: CancellationToken) -> Self {
        let (lines, waiting) = mpsc::channel(MOST_WAITING);
        // Not a child of `stop`: it also says that the process ended by itself.
        let ended = CancellationToken::new();
        let over = ended.clone();
        tokio::spawn(async move {
            // `None`: the connection was closed.
            let _ = stop.run_until_cancelled(write_lines(writer, waiting)).await;
            over.cancel();
        });
        Self { lines, ended }
    }

    /// Writes one message. [`RequestError::SessionGone`] when the process has ended before any of it was written.
    pub(crate) async fn write(&self, message: Bytes) -> Result<(), RequestError> {
        let (taken, written) = oneshot::channel();
        let turn = tokio::select! {
            biased;
            () = self.ended.cancelled() => return Err(RequestError::SessionGone),
            turn = self.lines.reserve() => turn.map_err(|_| RequestError::SessionGone)?,
        };
        turn.send((message, taken));
        written.await.map_err(|_| RequestError::Lost("the process ended".to_owned()))
    }

    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }
}

async fn write_lines(mut writer: impl AsyncWrite + Unpin, mut waiting: mpsc::Receiver<Turn>) {
    while let Some((message, taken)) = waiting.recv().await {
        // A line ends with the first line feed: one between the tokens of the message is a space as well as any other.
        let line =
            if memchr::memchr2(b'\n', b'\r', &message).is_some() { Bytes::from(one_line(&message)) } else { message };
        let mut whole = line.chain(&b"\n"[..]);
        let written = timeout(TAKE_WITHIN, async {
            writer.write_all_buf(&mut whole).await?;
            writer.flush().await
        });
        match written.await {
            // Who asked may have gone away.
            Ok(Ok(())) => _ = taken.send(()),
            Ok(Err(error)) => {
                tracing::debug!(error.message = %error, "a process closed its input");
                return;
            }
            Err(_) => {
                tracing::warn!("a process does not read its input; it counts as ended");
                return;
            }
        }
    }
}

/// The same JSON without line ends, which within strings are always escaped.
fn one_line(message: &[u8]) -> Vec<u8> {
    message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

/// Reads the output of a process to its end. Then all that wait for an answer are told.
pub(crate) async fn read(shared: &Arc<Shared>, mut reader: impl AsyncRead + Unpin) {
    let Wire::Pipe(pipe) = &shared.wire else { return };
    let mut lines = Lines::new(shared.options.most_message_bytes);
    loop {
        while let Some(line) = lines.next() {
            take(shared, line);
        }
        match reader.read_buf(lines.room()).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(error.message = %error, "the output of a process cannot be read any longer");
                break;
            }
        }
    }
    pipe.ended.cancel();
}

fn take(shared: &Arc<Shared>, line: Line) {
    let bytes = match line {
        Line::Whole(bytes) => bytes,
        Line::TooLong { begin, end } => {
            let most = shared.options.most_message_bytes;
            tracing::warn!(most, "a line of a process was too long and was skipped");
            for id in [id_in(&begin), id_in(&end)].into_iter().flatten() {
                shared.pending.leave(id, Item::TooLarge);
            }
            return;
        }
    };
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii();
    if text.is_empty() {
        return;
    }
    for message in batch(&bytes.slice_ref(text), shared.options.most_depth) {
        if let Ok(parsed) = message::parse(&message, shared.options.most_depth) {
            shared.take_parsed(&message, parsed.message, Origin::default(), None);
        } else {
            let shown = &message[..message.len().min(STRAY_SHOWN)];
            shared.inbound.stray_line(&String::from_utf8_lossy(shown));
        }
    }
}

/// The messages of a line: one, or those of a batch, which revision 2025-03-26 allowed.
fn batch(line: &Bytes, most_depth: usize) -> Vec<Bytes> {
    let items = std::str::from_utf8(line).ok().filter(|text| text.starts_with('['));
    match items.and_then(|text| scan::items(text, most_depth).ok()) {
        Some(items) => items.into_iter().map(|item| line.slice_ref(item.as_bytes())).collect(),
        None => vec![line.clone()],
    }
}

/// The number after `"id":` near an end of a message: both official SDKs write it there.
fn id_in(edge: &[u8]) -> Option<u64> {
    let place = memchr::memmem::rfind(edge, b"\"id\":")? + 5;
    let digits = edge[place..].trim_ascii_start();
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    matches!(digits.get(length), Some(b',' | b'}'))
        .then(|| std::str::from_utf8(&digits[..length]).ok()?.parse().ok())
        .flatten()
}

/// A line of output.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole(Bytes),
    /// What was kept of one that was not.
    TooLong {
        begin: Vec<u8>,
        end: Vec<u8>,
    },
}

/// Output, cut into lines.
struct Lines {
    buffer: BytesMut,
    /// So much of the buffer holds no line feed.
    searched: usize,
    most: usize,
    /// The edges of a line that is too long, while its end has not come.
    skipped: Option<(Vec<u8>, Vec<u8>)>,
}

impl Lines {
    fn new(most: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, most, skipped: None }
    }

    /// Where to read more into.
    fn room(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ_AT_ONCE);
        &mut self.buffer
    }

    /// The next line, without its end, when all of it is there.
    fn next(&mut self) -> Option<Line> {
        let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            if self.searched > self.most || self.skipped.is_some() {
                self.skip();
            }
            return None;
        };
        let length = self.searched + found;
        self.searched = 0;
        if self.skipped.is_none() && length <= self.most {
            let mut line = self.buffer.split_to(length + 1);
            line.truncate(length);
            return Some(Line::Whole(line.freeze()));
        }
        let rest = self.buffer.split_off(length + 1);
        self.buffer.truncate(length);
        self.skip();
        self.buffer = rest;
        self.skipped.take().map(|(begin, end)| Line::TooLong { begin, end })
    }

    /// Lets go of what is in the buffer, as a part of a line that is too long.
    fn skip(&mut self) {
        let (_, end) =
            self.skipped.get_or_insert_with(|| (self.buffer[..self.buffer.len().min(EDGE)].to_vec(), Vec::new()));
        end.extend_from_slice(&self.buffer[self.buffer.len().saturating_sub(EDGE)..]);
        end.drain(..end.len().saturating_sub(EDGE));
        self.buffer.clear();
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines_of(chunks: &[&[u8]], most: usize) -> Vec<Line> {
        let mut lines = Lines::new(most);
        let mut found = Vec::new();
        for chunk in chunks {
            lines.room().extend_from_slice(chunk);
            found.extend(std::iter::from_fn(|| lines.next()));
        }
        found
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_its_ends_are_kept() {
        let long = [b"{\"id\":7,".as_slice(), &[b'x'; 5_000], b",\"id\":8}\nnext\n"].concat();
        for size in [1, 7, 1_000, 10_000] {
            let chunks: Vec<&[u8]> = long.chunks(size).collect();
            let found = lines_of(&chunks, 1_000);
            let Line::TooLong { begin, end } = &found[0] else { panic!("{found:?}") };
            assert_eq!((id_in(begin), id_in(end)), (Some(7), Some(8)));
            assert!(begin.len() <= EDGE && end.len() <= EDGE);
            assert_eq!(found[1], Line::Whole(Bytes::from_static(b"next")));
        }
    }

    #[test]
    fn a_line_feed_between_tokens_does_not_end_a_message() {
        assert_eq!(one_line(b"{\r\n\"a\":\"\\n\"}"), b"{  \"a\":\"\\n\"}");
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_arrive(text in "[a-c\n]{0,200}", sizes in proptest::collection::vec(1_usize..9, 1..40)) {
            let mut rest = text.as_bytes();
            let mut chunks = Vec::new();
            for size in sizes.iter().cycle() {
                if rest.is_empty() { break }
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            let whole = text.as_bytes().split(|byte| *byte == b'\n').map(|line| Line::Whole(Bytes::copy_from_slice(line)));
            let mut expected: Vec<_> = whole.collect();
            expected.pop();
            prop_assert_eq!(lines_of(&chunks, 1_000), expected);
        }
    }
}
