//! Pure: what an engine takes, and how much of it.

use gatehouse_types::Settings;

use crate::registry::session::EngineKind;

/// What Codex shows of a result, in bytes: it cuts the middle out of more than 10,000 tokens, which it counts as four bytes each.
const CODEX_SHOWS: usize = 40_000;
/// Most that Claude Code can be told to show of a result, in characters.
const CLAUDE_CODE_SHOWS: usize = 500_000;
/// What is kept free for Gatehouse's own words about a text that is cut, in characters.
const OWN_WORDS: usize = 1_000;

/// Which content types an engine's MCP revision knows. Resource links and embedded resources become text for every engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// `audio`: since 2025-03-26.
    pub audio: bool,
}

impl Known {
    /// Everything.
    pub const ALL: Self = Self { audio: true };

    /// What an engine of this revision knows. Revisions are dates and sort as text.
    pub fn at(protocol_version: &str) -> Self {
        Self { audio: protocol_version >= "2025-03-26" }
    }
}

/// How much of a result a model gets at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest text, all blocks together, in Unicode characters. What Gatehouse says itself about files comes on top: at most a
    /// thousand characters for a text that is cut, and for each other file what its path and URI need.
    pub text_chars: usize,
    /// The same in bytes of UTF-8, for engines that count so.
    pub text_bytes: usize,
    /// Largest image or audio, decoded, in bytes.
    pub media_bytes: usize,
}

impl Limits {
    /// The lower of what the settings allow and what an engine is known to show.
    pub fn of(settings: &Settings, engine: EngineKind) -> Self {
        let (chars, bytes) = match engine {
            EngineKind::ClaudeCode => (CLAUDE_CODE_SHOWS - OWN_WORDS, usize::MAX),
            EngineKind::Codex => (usize::MAX, CODEX_SHOWS - OWN_WORDS),
            EngineKind::Other => (usize::MAX, usize::MAX),
        };
        Self {
            text_chars: chars.min(settings.result_text_chars as usize),
            text_bytes: bytes,
            media_bytes: settings.result_media_bytes as usize,
        }
    }
}

/// What Claude Code is told to show of each tool's results (`_meta["anthropic/maxResultSizeChars"]`), in characters: what
/// [`Limits`] allow, and room for Gatehouse's own words.
pub fn shown_chars(settings: &Settings) -> usize {
    (settings.result_text_chars as usize + OWN_WORDS).min(CLAUDE_CODE_SHOWS)
}
