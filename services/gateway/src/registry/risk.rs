//! Pure. What an admin should look at in a tool's definition: words that instruct the model, characters that nobody sees,
//! and what has changed since an admin last looked.
//!
//! A mark is a reason to read, not a verdict, and the absence of one is no proof: the texts of a definition reach the model
//! as they are. Marks cost nothing on the path of a call.

mod diff;
mod hidden;
mod instructs;
mod walk;

use self::walk::Text;

/// Most marks of one tool: of a definition full of them, the first are enough to read it.
pub const MOST: usize = 30;
/// Longest excerpt of a definition in a mark, in characters.
pub const EXCERPT_CHARS: usize = 200;

/// How much of a definition is looked through, in bytes of its texts: the patterns are slow on texts made for that.
pub const READ_BYTES: usize = 128 << 10;

/// What a mark is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A text tells the model what to do beyond what the tool is.
    Instructs,
    /// A text holds characters that are not seen, or that change the direction of writing.
    Hidden,
    /// A hint promises more than the one that an admin last looked at.
    Looser,
    /// Something else differs from what an admin last looked at.
    Changed,
    /// The texts are longer than [`READ_BYTES`]: from here on they were not looked through.
    TooLong,
}

impl Kind {
    /// As in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instructs => "instructs_model",
            Self::Hidden => "hidden_characters",
            Self::Looser => "looser_hint",
            Self::Changed => "changed",
            Self::TooLong => "too_long",
        }
    }
}

/// A mark on a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Risk {
    /// What it is about.
    pub kind: Kind,
    /// Where in the definition: a JSON pointer (RFC 6901).
    pub place: String,
    /// What was found there, or, of a difference, what is there now; empty when the member is gone. At most
    /// [`EXCERPT_CHARS`] characters of the definition, unseen ones written as `\u{…}`.
    pub excerpt: String,
    /// Of a difference, what an admin looked at; empty when there was none.
    pub before: String,
}

/// Marks of a definition by itself.
pub fn of_text(definition: &str) -> Vec<Risk> {
    let mut risks = Vec::new();
    let mut left = READ_BYTES;
    for Text { place, text } in walk::texts(definition) {
        let Some(rest) = left.checked_sub(text.len()) else {
            let excerpt = excerpt(&text.chars().take(EXCERPT_CHARS).collect::<Vec<_>>(), 0, 0);
            risks.truncate(MOST - 1);
            risks.push(Risk { kind: Kind::TooLong, place, excerpt, before: String::new() });
            break;
        };
        left = rest;
        let found = [(Kind::Instructs, instructs::find(&text)), (Kind::Hidden, hidden::find(&text))];
        for (kind, excerpt) in found {
            if let Some(excerpt) = excerpt
                && risks.len() < MOST
            {
                risks.push(Risk { kind, place: place.clone(), excerpt, before: String::new() });
            }
        }
    }
    risks
}

/// Marks of a definition against the one that an admin last looked at: the same JSON has none, however it is written.
pub fn of_change(seen: &str, definition: &str) -> Vec<Risk> {
    diff::between(seen, definition, MOST)
}

/// Characters `from..to` of a text with some on both sides, so that they can be read in place.
fn excerpt(chars: &[char], from: usize, to: usize) -> String {
    let room = EXCERPT_CHARS.saturating_sub(to - from) / 2;
    let begin = from.saturating_sub(room);
    let end = (to + room).min(chars.len()).min(begin + EXCERPT_CHARS);
    let mut out = String::new();
    if begin > 0 {
        out.push('…');
    }
    for (place, character) in chars.iter().enumerate().take(end).skip(begin) {
        if hidden::is_hidden(chars, place) || (character.is_control() && *character != '\n') {
            out.extend(character.escape_unicode());
        } else {
            out.push(*character);
        }
    }
    if end < chars.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests;
