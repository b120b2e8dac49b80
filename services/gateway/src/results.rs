//! Pure: what a model gets back from a call (MCP 2025-11-25, server/tools).
//!
//! Engines get `content` only: both Claude Code and Codex show `structuredContent` in place of the text. So the structured
//! result is put into the text unless a block already holds the same JSON. Blocks pass as they were sent, byte for byte;
//! only a block that would cost an engine the whole result is turned into text.

mod blocks;
mod same;
pub(crate) mod surrogates;

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use gatehouse_mcp::{message::MOST_DEPTH, scan};

use crate::raw::{self, RawObject};

/// A result as engines get it: the pieces of a JSON object, in order. Large blocks are slices of what the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Pieces that make up one JSON object (`CallToolResult`).
    pub pieces: Vec<Bytes>,
    /// `isError`.
    pub is_error: bool,
    /// The structured result as it was sent, for the audit.
    pub structured: Option<String>,
}

/// A server's answer that is not a `CallToolResult`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAResult {
    /// The result is not a JSON object.
    #[error("its result is not a JSON object")]
    NotAnObject,
    /// `content` is not a list.
    #[error("its `content` is not a list")]
    Content,
}

/// Which content types an engine's MCP revision knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// `audio`: since 2025-03-26.
    pub audio: bool,
    /// `resource_link`: since 2025-06-18.
    pub resource_link: bool,
}

impl Known {
    /// Everything.
    pub const ALL: Self = Self { audio: true, resource_link: true };

    /// What an engine of this revision knows. Revisions are dates and sort as text.
    pub fn at(protocol_version: &str) -> Self {
        Self { audio: protocol_version >= "2025-03-26", resource_link: protocol_version >= "2025-06-18" }
    }
}

/// A block smaller than this is copied, a larger one is shared.
const SHARED_FROM: usize = 4_096;

/// The result for an engine. `body` is the result as the server sent it.
pub fn for_engine(body: &Bytes, known: Known) -> Result<Output, NotAResult> {
    let text = std::str::from_utf8(body).map_err(|_| NotAResult::NotAnObject)?;
    let listing = scan::listing(text, "content", MOST_DEPTH).map_err(|_| NotAResult::NotAnObject)?;
    let members = RawObject(listing.members);
    let content = match listing.items {
        Some(items) => items,
        None if members.get("content").is_none() => Vec::new(),
        None => return Err(NotAResult::Content),
    };
    let is_error = members.boolean("isError").unwrap_or(false);
    let structured = members.get("structuredContent").filter(|structured| *structured != "null");
    let mut out = Builder::new(body);
    out.text("{\"content\":[");
    let mut marked = !is_error;
    for block in &content {
        out.separate();
        let kept = blocks::for_engine(block, known);
        // Only an error's first text is read; all others pass unread.
        match if marked { None } else { blocks::text_of(&kept) } {
            Some(text) => {
                marked = true;
                out.text(&error_block(&kept, &text));
            }
            None if kept.contains("\\u") => match surrogates::mended(&kept) {
                Cow::Borrowed(whole) => out.raw(whole),
                Cow::Owned(mended) => out.text(&mended),
            },
            None => out.raw(&kept),
        }
    }
    if let Some(structured) = structured
        && !content.iter().any(|block| same::holds(block.text, structured))
    {
        out.separate();
        let text = structured;
        let text = if marked { Cow::Borrowed(text) } else { Cow::Owned(mark_error(text)) };
        marked = true;
        out.text(&text_block(&text));
    }
    if !marked {
        out.separate();
        out.text(&text_block("Error: the tool failed and said nothing about it."));
    }
    out.text("]");
    if is_error {
        out.text(",\"isError\":true");
    }
    for (key, value) in &members.0 {
        if !matches!(key.as_ref(), "content" | "structuredContent" | "isError" | "resultType") && !bad_meta(key, value)
        {
            let mut name = String::from(",");
            raw::push_string(&mut name, key);
            out.text(&name);
            out.text(":");
            out.raw(value);
        }
    }
    out.text("}");
    Ok(Output { pieces: out.finish(), is_error, structured: structured.map(str::to_owned) })
}

/// A result of Gatehouse's own that tells the model what went wrong. `text` says what to do next.
pub fn refusal(text: &str) -> Output {
    let object = format!("{{\"content\":[{}],\"isError\":true}}", text_block(&mark_error(text)));
    Output { pieces: vec![Bytes::from(object)], is_error: true, structured: None }
}

/// `_meta` must be an object for engines.
fn bad_meta(key: &str, value: &str) -> bool {
    key == "_meta" && raw::first_byte(value) != b'{'
}

/// Codex does not mark errors for the model: the text itself has to say so.
fn mark_error(text: &str) -> String {
    let said = text.trim_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if said { text.to_owned() } else { format!("Error: {text}") }
}

fn text_block(text: &str) -> String {
    let mut block = String::with_capacity(text.len() + 32);
    block.push_str("{\"type\":\"text\",\"text\":");
    raw::push_string(&mut block, text);
    block.push('}');
    block
}

/// The same text block with its text marked as an error.
fn error_block(block: &str, text: &str) -> String {
    let mut quoted = String::new();
    raw::push_string(&mut quoted, &mark_error(text));
    let members = RawObject::parse(block).unwrap_or_default();
    raw::join(members.0.iter().map(|(key, value)| (key.as_ref(), if key == "text" { quoted.as_str() } else { *value })))
}

/// Puts pieces together, sharing large ones.
struct Builder<'a> {
    body: &'a Bytes,
    pieces: Vec<Bytes>,
    open: BytesMut,
    first: bool,
}

impl<'a> Builder<'a> {
    fn new(body: &'a Bytes) -> Self {
        Self { body, pieces: Vec::new(), open: BytesMut::with_capacity(512), first: true }
    }

    fn text(&mut self, text: &str) {
        self.open.extend_from_slice(text.as_bytes());
    }

    /// A comma before every block but the first.
    fn separate(&mut self) {
        if !self.first {
            self.text(",");
        }
        self.first = false;
    }

    /// A piece that may be a slice of the server's own bytes.
    fn raw(&mut self, text: &str) {
        let own = self.body.as_ptr_range();
        let piece = text.as_bytes().as_ptr_range();
        if text.len() < SHARED_FROM || piece.start < own.start || piece.end > own.end {
            return self.text(text);
        }
        if !self.open.is_empty() {
            self.pieces.push(self.open.split().freeze());
        }
        self.pieces.push(self.body.slice_ref(text.as_bytes()));
    }

    fn finish(mut self) -> Vec<Bytes> {
        if !self.open.is_empty() {
            self.pieces.push(self.open.freeze());
        }
        self.pieces
    }
}

#[cfg(test)]
mod tests;
