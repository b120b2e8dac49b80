//! Pure
//!
//! Event streams (WHATWG HTML, "Server-sent events"), read from any chunking and written.
//!
//! One event that lies within one chunk is handed out as a slice of it, without a copy. The size of an event is bounded.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The event's type; absent means `message`.
    pub name: Option<String>,
    /// The `data` lines joined by line feeds. Empty for an event that only carries an id (a priming event) or `retry`.
    pub data: Bytes,
    /// The id to resume after.
    pub id: Option<String>,
    /// How long to wait before reconnecting, from now on.
    pub retry: Option<Duration>,
}

impl Event {
    /// Whether it carries a message: its type is `message` and there is data.
    pub fn is_message(&self) -> bool {
        !self.data.is_empty() && self.name.as_deref().is_none_or(|name| name == "message" || name.is_empty())
    }
}

/// An event is larger than the decoder allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {most} bytes")]
pub struct EventTooLarge {
    /// The bound, in bytes.
    pub most: usize,
}

/// Reads events from chunks. Feed it with [`Decoder::push`], then take events until there is none. What follows the last blank
/// line when the stream ends is not an event.
#[derive(Debug)]
pub struct Decoder {
    most: usize,
    input: Bytes,
    /// The beginning of a line whose end has not come.
    line: BytesMut,
    event: Building,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    first_line: bool,
}

#[derive(Debug, Default)]
struct Building {
    event: Event,
    data: Data,
    touched: bool,
    size: usize,
}

#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    /// A single line: a slice of the chunk it came in.
    One(Bytes),
    Many(BytesMut),
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Decoder {
    /// A decoder that refuses events of more than `most` bytes (all lines of the event together).
    pub fn new(most: usize) -> Self {
        Self {
            most,
            input: Bytes::new(),
            line: BytesMut::new(),
            event: Building::default(),
            after_cr: false,
            first_line: true,
        }
    }

    /// Adds a chunk. The events of the chunks before it should have been taken; what is left of them is kept.
    pub fn push(&mut self, chunk: Bytes) {
        if self.input.is_empty() {
            self.input = chunk;
        } else {
            let mut joined = BytesMut::with_capacity(self.input.len() + chunk.len());
            joined.extend_from_slice(&self.input);
            joined.extend_from_slice(&chunk);
            self.input = joined.freeze();
        }
    }

    /// The next event that is complete. `None` asks for another chunk. After an error the stream cannot be read on.
    pub fn next_event(&mut self) -> Result<Option<Event>, EventTooLarge> {
        while let Some(line) = self.next_line()? {
            if line.starts_with(b":") {
                // Comments keep a stream alive for hours; they are no part of an event.
            } else if !line.is_empty() {
                self.event.size += line.len();
                if self.event.size > self.most {
                    return Err(EventTooLarge { most: self.most });
                }
                self.event.read(&line);
            } else if let Some(event) = std::mem::take(&mut self.event).finish() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Bytes>, EventTooLarge> {
        if self.after_cr && !self.input.is_empty() {
            self.after_cr = false;
            if self.input[0] == b'\n' {
                let _ = self.input.split_to(1);
            }
        }
        let Some(end) = memchr::memchr2(b'\r', b'\n', &self.input) else {
            let rest = std::mem::take(&mut self.input);
            if self.event.size + self.line.len() + rest.len() > self.most {
                return Err(EventTooLarge { most: self.most });
            }
            self.line.extend_from_slice(&rest);
            return Ok(None);
        };
        let ended = self.input.split_to(end);
        self.after_cr = self.input.split_to(1)[0] == b'\r';
        let mut line = if self.line.is_empty() {
            ended
        } else {
            self.line.extend_from_slice(&ended);
            self.line.split().freeze()
        };
        if std::mem::take(&mut self.first_line) && line.starts_with(BOM) {
            let _ = line.split_to(BOM.len());
        }
        Ok(Some(line))
    }
}

impl Building {
    fn read(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line);
        let name = &line[..colon.unwrap_or(line.len())];
        let start = colon.map_or(line.len(), |colon| colon + 1);
        let start = start + usize::from(line.get(start) == Some(&b' '));
        let value = line.slice(start..);
        match name {
            b"data" => {
                self.touched = true;
                self.add(value);
            }
            b"event" => {
                self.touched = true;
                self.event.name = Some(String::from_utf8_lossy(&value).into_owned());
            }
            b"id" if !value.contains(&0) => {
                self.touched = true;
                self.event.id = Some(String::from_utf8_lossy(&value).into_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.touched = true;
                let digits = std::str::from_utf8(&value).unwrap_or_default();
                self.event.retry = digits.parse().ok().map(Duration::from_millis);
            }
            // A field that the standard says to ignore.
            _ => {}
        }
    }

    fn add(&mut self, value: Bytes) {
        self.data = match std::mem::take(&mut self.data) {
            Data::None => Data::One(value),
            Data::One(first) => {
                let mut lines = BytesMut::with_capacity(first.len() + 1 + value.len());
                lines.extend_from_slice(&first);
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&value);
                Data::Many(lines)
            }
            Data::Many(mut lines) => {
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&value);
                Data::Many(lines)
            }
        };
    }

    fn finish(self) -> Option<Event> {
        let data = match self.data {
            Data::None => Bytes::new(),
            Data::One(line) => line,
            Data::Many(lines) => lines.freeze(),
        };
        self.touched.then_some(Event { data, ..self.event })
    }
}

/// Writes a `message` event. Line breaks in the data become several `data` lines; `id` must hold no line break.
pub fn encode(buffer: &mut Vec<u8>, id: Option<&str>, data: &[u8]) {
    buffer.reserve(data.len() + id.map_or(0, str::len) + 24);
    if let Some(id) = id {
        buffer.extend_from_slice(b"id: ");
        buffer.extend(id.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
        buffer.push(b'\n');
    }
    let mut rest = data;
    while let Some(end) = memchr::memchr2(b'\r', b'\n', rest) {
        buffer.extend_from_slice(b"data: ");
        buffer.extend_from_slice(&rest[..end]);
        buffer.push(b'\n');
        let width = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[end + width..];
    }
    buffer.extend_from_slice(b"data: ");
    buffer.extend_from_slice(rest);
    buffer.extend_from_slice(b"\n\n");
}

/// Writes the pause after which the reader may reconnect, as a part of the next event.
pub fn encode_retry(buffer: &mut Vec<u8>, pause: Duration) {
    buffer.extend_from_slice(b"retry: ");
    buffer.extend_from_slice(itoa::Buffer::new().format(pause.as_millis()).as_bytes());
    buffer.push(b'\n');
}

/// A comment that keeps a silent stream from being cut.
pub const KEEP_ALIVE: &[u8] = b":\n\n";

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
