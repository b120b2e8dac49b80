//! Pure: how much of a result's text a model gets at once.

use std::borrow::Cow;

use bytes::Bytes;
use gatehouse_mcp::{message::MOST_DEPTH, scan};

use super::{Context, blocks, blocks::Shape};
use crate::raw;

/// How much of the limit is kept free for what Gatehouse says of each file, in characters.
const WORDS_OF_A_FILE: usize = 300;
/// How far before the limit an end of a line is looked for, as a part of what is shown.
const LINE_WITHIN: usize = 8;

/// Text that is too long: where it is cut, and the whole of it.
pub(super) struct Cut {
    /// The shape whose text is cut. Text after it is not shown.
    pub(super) at: usize,
    /// How many bytes of that text are shown.
    pub(super) keep: usize,
    /// How many characters are shown, in all.
    pub(super) shown: usize,
    /// How many characters there are, in all.
    pub(super) whole: usize,
    /// The first shape with text.
    pub(super) first: usize,
    /// The type of the whole.
    pub(super) media_type: &'static str,
    /// The whole.
    pub(super) content: Bytes,
}

/// Where the text of all shapes is to be cut; `None` when it is not too long.
pub(super) fn cut(shapes: &[Shape<'_>], body: &Bytes, cx: &Context<'_>) -> Option<Cut> {
    let files = shapes.iter().filter(|shape| matches!(shape, Shape::File { .. })).count();
    let free = |most: usize| most.saturating_sub(files * WORDS_OF_A_FILE).max(most / 2);
    let (most_chars, most_bytes) = (free(cx.limits.text_chars), free(cx.limits.text_bytes));
    // Quoted text is never shorter than what it spells: most results need no counting.
    let sent: usize = shapes.iter().map(sent_len).sum();
    if sent <= most_chars.min(most_bytes) {
        return None;
    }
    // Neither do many whose escapes alone make them longer. They are counted first, which is quick, and looked at only if need be.
    let escapes: usize = shapes.iter().map(fewest_escapes).sum();
    if sent - escapes <= most_chars.min(most_bytes) {
        return None;
    }
    let (chars, bytes) = shapes.iter().map(most_of).fold((0, 0), |sum, text| (sum.0 + text.0, sum.1 + text.1));
    if chars <= most_chars && bytes <= most_bytes {
        return None;
    }
    let texts: Vec<(usize, Cow<'_, str>)> =
        shapes.iter().enumerate().filter_map(|(place, shape)| Some((place, text_of(shape)?))).collect();
    let whole: usize = texts.iter().map(|(_, text)| text.chars().count()).sum();
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    if whole <= most_chars && bytes <= most_bytes {
        return None;
    }
    let first = texts.first()?.0;
    let (mut at, mut keep, mut shown, mut shown_bytes) = (first, 0, 0, 0);
    for (place, text) in &texts {
        at = *place;
        keep = beginning(text, most_chars - shown, most_bytes - shown_bytes);
        shown += text[..keep].chars().count();
        shown_bytes += keep;
        if keep < text.len() {
            break;
        }
    }
    let single = texts.len() == 1;
    let media_type = if single && is_json(&texts[0].1) { "application/json" } else { "text/plain" };
    let content = if single {
        texts.into_iter().map(|(_, text)| blocks::shared(body, text)).next().unwrap_or_default()
    } else {
        texts.iter().map(|(_, text)| text.as_ref()).collect::<Vec<_>>().join("\n").into()
    };
    Some(Cut { at, keep, shown, whole, first, media_type, content })
}

/// How many bytes of a shape are text at most.
fn sent_len(shape: &Shape<'_>) -> usize {
    match shape {
        Shape::Text { quoted, .. } => quoted.len() - 2,
        Shape::Words(text) => text.len(),
        Shape::Whole(_) | Shape::File { .. } => 0,
    }
}

/// How many escapes a shape's text has at least. Each makes what was sent longer than what it spells, by one byte or more.
fn fewest_escapes(shape: &Shape<'_>) -> usize {
    let Shape::Text { quoted, .. } = shape else { return 0 };
    let backslashes = memchr::memchr_iter(b'\\', quoted.as_bytes()).count();
    // Without two in a row each of them begins an escape.
    let in_a_row = memchr::memmem::find(quoted.as_bytes(), br"\\").is_some();
    if in_a_row { backslashes / 2 } else { backslashes }
}

/// How many characters and bytes a shape's text has at most; what it has exactly unless it spells characters by their numbers.
fn most_of(shape: &Shape<'_>) -> (usize, usize) {
    let (text, quoted) = match shape {
        Shape::Text { quoted, .. } => (&quoted[1..quoted.len() - 1], true),
        Shape::Words(text) => (text.as_ref(), false),
        Shape::Whole(_) | Shape::File { .. } => return (0, 0),
    };
    let (mut chars, mut bytes) = (text.chars().count(), text.len());
    let mut rest = if quoted { text.as_bytes() } else { &[] };
    while let Some(place) = memchr::memchr(b'\\', rest) {
        // `\u` and four digits stand for at most one character of three bytes.
        let by_number = rest.get(place + 1) == Some(&b'u');
        chars -= if by_number { 5 } else { 1 };
        bytes -= if by_number { 3 } else { 1 };
        rest = rest.get(place + 2..).unwrap_or_default();
    }
    (chars, bytes)
}

fn text_of<'a>(shape: &'a Shape<'_>) -> Option<Cow<'a, str>> {
    match shape {
        Shape::Text { quoted, .. } => Some(blocks::unquoted(quoted)),
        Shape::Words(text) => Some(Cow::Borrowed(text)),
        Shape::Whole(_) | Shape::File { .. } => None,
    }
}

/// The end of the beginning that has at most so many characters and bytes; at an end of a line when there is one near.
fn beginning(text: &str, chars: usize, bytes: usize) -> usize {
    let by_chars = text.char_indices().nth(chars).map_or(text.len(), |(place, _)| place);
    let end = text.floor_char_boundary(by_chars.min(bytes));
    if end == text.len() {
        return end;
    }
    match text[..end].rfind('\n') {
        Some(line) if line + 1 >= end - end / LINE_WITHIN => line + 1,
        _ => end,
    }
}

/// Whether a text is a JSON object or array.
fn is_json(text: &str) -> bool {
    let text = text.trim();
    matches!(raw::first_byte(text), b'{' | b'[') && scan::check(text, MOST_DEPTH).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn most(quoted: &str) -> (usize, usize) {
        most_of(&Shape::Text { block: Cow::Borrowed(""), quoted })
    }

    #[test]
    fn what_a_text_has_at_most_is_exact_without_characters_by_number() {
        assert_eq!(most(r#""a\n\"\\n门""#), (6, 8));
        assert_eq!(most(r#""\u00e9\\u00e9""#), (7, 9));
    }

    proptest! {
        #[test]
        fn no_text_is_longer_than_what_it_has_at_most(
            inner in r#"(\\u(d83d|DE00|dbff|0041|95e8)|\\n|\\\\|\\"|[a-fé0-9门😀u]){0,30}"#,
        ) {
            let quoted = format!("\"{inner}\"");
            let text = blocks::unquoted(&quoted);
            let (chars, bytes) = most(&quoted);
            prop_assert!(text.chars().count() <= chars && text.len() <= bytes, "{} {:?}", quoted, text);
            let escapes = fewest_escapes(&Shape::Text { block: Cow::Borrowed(""), quoted: &quoted });
            prop_assert!(text.len() <= inner.len() - escapes, "{} {:?}", quoted, text);
        }
    }
}
