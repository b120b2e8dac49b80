//! Pure: what a model gets back from a call (MCP 2025-11-25, server/tools).
//!
//! Engines get `content` only: both Claude Code and Codex show `structuredContent` in place of the text. So the structured
//! result is put into the text unless a block already holds the same JSON. Blocks pass as they were sent, byte for byte;
//! only a block that would cost an engine the whole result is turned into text.
//!
//! [`plan`] decides; some content it takes out, to be saved as files. The caller saves it, and [`Plan::finish`] puts in its place
//! what the model must know about each file. An ordinary result has no files, and is complete after the first step.

mod base64;
mod blocks;
mod build;
mod limits;
mod same;
pub mod schema;
pub(crate) mod surrogates;
mod text;
mod words;

use std::borrow::Cow;

use bytes::Bytes;
use gatehouse_mcp::{
    message::MOST_DEPTH,
    scan::{self, Item},
};
use gatehouse_types::Locale;

pub use self::limits::{Known, Limits, shown_chars};
use self::{
    blocks::{Shape, with_text},
    build::Builder,
    same::Structured,
    schema::OutputSchema,
    surrogates::mended,
    text::Cut,
    words::Held,
};
use crate::{
    files::{FileToSave, Kind, Saved},
    raw::{self, RawObject},
};

/// Most files of one result. What comes after them goes into one more, together.
const MOST_FILES: usize = 50;
/// Most blocks of one result. What comes after them goes into one file, together.
const MOST_BLOCKS: usize = 10_000;
/// Most notes of one result.
const MOST_NOTES: usize = 20;

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

/// What a result is processed with.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Content types that the engine knows.
    pub known: Known,
    /// The session's language.
    pub locale: Locale,
    /// How much the model gets at once.
    pub limits: Limits,
    /// The tool's output schema.
    pub schema: Option<&'a OutputSchema>,
}

/// A result that lacks nothing but what came of its files.
#[derive(Debug)]
pub struct Plan {
    /// Content to be saved. [`Plan::finish`] takes what came of each, in this order.
    pub saves: Vec<FileToSave>,
    /// What was wrong with the result, for the audit; bounded, and without values of the result.
    pub notes: Vec<String>,
    /// `isError`.
    pub is_error: bool,
    /// The structured result as it was sent, for the audit.
    pub structured: Option<String>,
    pieces: Vec<Bytes>,
    gaps: Vec<Gap>,
    locale: Locale,
}

/// A piece that waits for what came of a file; there is one for each file.
#[derive(Debug)]
struct Gap {
    piece: usize,
    held: Held,
    bytes: u64,
    media_type: String,
    /// Whether its text is to be marked as an error.
    mark: bool,
}

/// Decides what an engine gets of a result. `body` is the result as the server sent it.
pub fn plan(body: &Bytes, cx: &Context<'_>) -> Result<Plan, NotAResult> {
    let text = std::str::from_utf8(body).map_err(|_| NotAResult::NotAnObject)?;
    let Ok(listing) = scan::listing(text, "content", MOST_DEPTH) else {
        // A name with half a character is one that only strict readers refuse.
        return match mended(text) {
            Cow::Owned(mended) => plan(&Bytes::from(mended), cx),
            Cow::Borrowed(_) => Err(NotAResult::NotAnObject),
        };
    };
    let members = RawObject(listing.members);
    let content = match listing.items {
        Some(items) => items,
        None if members.get("content").is_none() => Vec::new(),
        None => return Err(NotAResult::Content),
    };
    let is_error = members.boolean("isError").unwrap_or(false);
    let structured = members.get("structuredContent").filter(|structured| *structured != "null");
    let mut notes = Vec::new();
    if let Some(schema) = cx.schema.filter(|_| !is_error) {
        notes = schema.check(structured);
    }
    let (mut shapes, rest) = shapes(&content, body, cx, &mut notes);
    notes.truncate(MOST_NOTES);
    if let Some(structured) = structured {
        let same = Structured::new(structured);
        let holds =
            |shape: &Shape<'_>| matches!(shape, Shape::Text { quoted, .. } if same.is_in(&blocks::unquoted(quoted)));
        if !shapes.iter().any(holds) {
            shapes.push(Shape::Words(mended(structured)));
        }
    }
    let cut = text::cut(&shapes, body, cx);
    let mut draft = Draft::new(body, is_error, cx.locale);
    for (place, shape) in shapes.into_iter().enumerate() {
        draft.shape(place, shape, cut.as_ref());
    }
    if let Some((count, save)) = rest {
        draft.file(Held::Rest(count), save);
    }
    Ok(draft.finish(&members, structured.map(str::to_owned), notes))
}

impl Plan {
    /// The result, now that it is known what came of each file. One that nothing is told about counts as not saved.
    pub fn finish(mut self, saved: &[Saved]) -> Output {
        for (place, gap) in self.gaps.iter().enumerate() {
            let words = words::saved(self.locale, &gap.held, gap.bytes, &gap.media_type, saved.get(place));
            let words = if gap.mark { mark_error(&words, self.locale) } else { words };
            self.pieces[gap.piece] = text_block(&words).into();
        }
        Output { pieces: self.pieces, is_error: self.is_error, structured: self.structured }
    }
}

/// A result of Gatehouse's own that tells the model what went wrong. `text` says what to do next, in the language of `locale`.
pub fn refusal(text: &str, locale: Locale) -> Output {
    let object = format!("{{\"content\":[{}],\"isError\":true}}", text_block(&mark_error(text, locale)));
    Output { pieces: vec![Bytes::from(object)], is_error: true, structured: None }
}

/// The blocks that stay, in order, and those beyond the most files: how many, and all of them as one file.
fn shapes<'a>(
    content: &[Item<'a>],
    body: &Bytes,
    cx: &Context<'_>,
    notes: &mut Vec<String>,
) -> (Vec<Shape<'a>>, Option<(usize, FileToSave)>) {
    let mut shapes = Vec::with_capacity(content.len() + 1);
    let mut files = 0;
    for (place, block) in content.iter().enumerate() {
        let shape = blocks::shape(block, body, cx, notes);
        if matches!(shape, Shape::File { .. }) {
            files += 1;
        }
        if files > MOST_FILES || place == MOST_BLOCKS {
            let rest: Vec<&str> = content[place..].iter().map(|block| block.text).collect();
            let content = format!("[{}]", rest.join(",")).into();
            let save = FileToSave {
                place: number(place),
                kind: Kind::Text,
                uri: String::new(),
                media_type: "application/json".to_owned(),
                content,
            };
            return (shapes, Some((rest.len(), save)));
        }
        shapes.push(shape);
    }
    (shapes, None)
}

/// A result under construction.
struct Draft<'a> {
    out: Builder<'a>,
    saves: Vec<FileToSave>,
    gaps: Vec<Gap>,
    is_error: bool,
    /// Whether the model is told in words that this is an error, if it is one.
    marked: bool,
    locale: Locale,
}

impl<'a> Draft<'a> {
    fn new(body: &'a Bytes, is_error: bool, locale: Locale) -> Self {
        let mut out = Builder::new(body);
        out.text("{\"content\":[");
        Self { out, saves: Vec::new(), gaps: Vec::new(), is_error, marked: !is_error, locale }
    }

    fn shape(&mut self, place: usize, shape: Shape<'_>, cut: Option<&Cut>) {
        let is_text = matches!(shape, Shape::Text { .. } | Shape::Words(_));
        let cut = cut.filter(|cut| is_text && place >= cut.at);
        let Some(cut) = cut else { return self.whole(place, shape) };
        if place > cut.at {
            return;
        }
        match shape {
            Shape::Text { block, quoted } if cut.keep > 0 => {
                let text = self.said(&blocks::unquoted(quoted)[..cut.keep]);
                self.block(&with_text(&block, "text", &text));
            }
            Shape::Words(text) if cut.keep > 0 => {
                let text = self.said(&text[..cut.keep]);
                self.block(&text_block(&text));
            }
            _ => {}
        }
        let save = FileToSave {
            place: number(cut.first),
            kind: Kind::Text,
            uri: String::new(),
            media_type: cut.media_type.to_owned(),
            content: cut.content.clone(),
        };
        self.file(Held::Text { shown: cut.shown, whole: cut.whole }, save);
    }

    fn whole(&mut self, place: usize, shape: Shape<'_>) {
        match shape {
            // Only an error's first text is read; all others pass unread.
            Shape::Text { block, quoted } if !self.marked => {
                let text = self.said(&blocks::unquoted(quoted));
                self.block(&with_text(&block, "text", &text));
            }
            Shape::Text { block, .. } | Shape::Whole(block) => self.block(&block),
            Shape::Words(text) => {
                let text = self.said(&text);
                self.block(&text_block(&text));
            }
            Shape::File { held, uri, media_type, content } => {
                let kind = held.kind();
                let uri = uri.unwrap_or_default();
                self.file(held, FileToSave { place: number(place), kind, uri, media_type, content });
            }
        }
    }

    /// A text as the model reads it: an error says so once.
    fn said(&mut self, text: &str) -> String {
        if std::mem::replace(&mut self.marked, true) { text.to_owned() } else { mark_error(text, self.locale) }
    }

    fn block(&mut self, block: &str) {
        self.out.separate();
        self.out.raw(block);
    }

    fn file(&mut self, held: Held, save: FileToSave) {
        let mark = !std::mem::replace(&mut self.marked, true);
        let (bytes, media_type) = (save.content.len() as u64, save.media_type.clone());
        self.gaps.push(Gap { piece: self.out.gap(), held, bytes, media_type, mark });
        self.saves.push(save);
    }

    fn finish(mut self, members: &RawObject<'_>, structured: Option<String>, notes: Vec<String>) -> Plan {
        if !self.marked {
            self.block(&text_block(&mark_error(words::silent_error(self.locale), self.locale)));
        }
        self.out.text("]");
        if self.is_error {
            self.out.text(",\"isError\":true");
        }
        let ours = ["content", "structuredContent", "isError", "resultType"];
        for (key, value) in
            members.0.iter().filter(|(key, value)| !ours.contains(&key.as_ref()) && !bad_meta(key, value))
        {
            let mut name = String::from(",");
            raw::push_string(&mut name, key);
            name.push(':');
            self.out.text(&name);
            self.out.raw(&mended(value));
        }
        self.out.text("}");
        let Self { out, saves, gaps, is_error, locale, .. } = self;
        Plan { saves, notes, is_error, structured, pieces: out.finish(), gaps, locale }
    }
}

/// A place within a result. What no result can have so many of cannot clash.
fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// `_meta` must be an object for engines.
fn bad_meta(key: &str, value: &str) -> bool {
    key == "_meta" && raw::first_byte(value) != b'{'
}

/// Codex does not mark errors for the model: the text itself has to say so, in the session's language.
fn mark_error(text: &str, locale: Locale) -> String {
    let start = text.trim_start();
    let said = start.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error")) || start.starts_with("错误");
    if said { text.to_owned() } else { format!("{}{text}", locale.pick("Error: ", "错误：")) }
}

fn text_block(text: &str) -> String {
    let mut block = String::with_capacity(text.len() + 32);
    block.push_str("{\"type\":\"text\",\"text\":");
    raw::push_string(&mut block, text);
    block.push('}');
    block
}

#[cfg(test)]
mod tests;
