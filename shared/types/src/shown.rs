//! Pure. Text that somebody else wrote, made fit to be shown to people.
//!
//! Servers choose their names, titles and arguments' values. Control characters could move a terminal's cursor or hide a line;
//! characters that change the direction of writing could make a name read as another one.

use std::fmt::Write as _;

/// Whether a character shows as something else than it is, or as nothing: control characters (C0, DEL, C1), line and paragraph
/// separators, direction marks, invisible characters and tags. The joiners of scripts and emoji (U+200C, U+200D) are not among
/// them.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// One line of at most `most` characters: hidden characters become U+FFFD, and a text that is cut ends in `…`.
pub fn line(text: &str, most: usize) -> String {
    bounded(text, most, |_| false)
}

/// Like [`line()`] for several lines: line feeds and tabs stay.
pub fn block(text: &str, most: usize) -> String {
    bounded(text, most, |character| matches!(character, '\n' | '\t'))
}

fn bounded(text: &str, most: usize, keep: impl Fn(char) -> bool) -> String {
    let shown = |character: char| if is_hidden(character) && !keep(character) { '\u{fffd}' } else { character };
    if text.chars().nth(most).is_none() {
        return text.chars().map(shown).collect();
    }
    let mut cut: String = text.chars().take(most.saturating_sub(1)).map(shown).collect();
    cut.push('…');
    cut
}

/// JSON text, also the beginning of one, whose strings hide nothing: still the same JSON value.
///
/// JSON escapes only U+0000 to U+001F by itself. What else hides can only stand inside strings, where `\uXXXX` means the same.
/// Line feeds and tabs between values stay.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\n' | '\t') || !is_hidden(character) {
            out.push(character);
        } else if character == '\r' {
            // Between values; a string holds it as an escape.
            out.push(' ');
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                // Writing to a String does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_are_seen_and_joiners_stay() {
        assert_eq!(line("a\u{202e}b\u{1b}[2J\nc", 40), "a\u{fffd}b\u{fffd}[2J\u{fffd}c");
        assert_eq!(block("a\nb\tc\rd", 40), "a\nb\tc\u{fffd}d");
        assert_eq!(line("👩\u{200d}💻 می\u{200c}خواهم", 40), "👩\u{200d}💻 می\u{200c}خواهم");
    }

    #[test]
    fn characters_are_counted_and_a_cut_shows() {
        assert_eq!(line("订单订单", 4), "订单订单");
        assert_eq!(line("订单订单订", 4), "订单订…");
        assert_eq!(line("ab", 1), "…");
    }

    #[test]
    fn json_stays_the_same_value_without_what_hides() {
        assert_eq!(json("{\"a\":\"\u{202e}x\u{9b}\u{e0041}\"}\r\n"), "{\"a\":\"\\u202ex\\u009b\\udb40\\udc41\"} \n");
    }

    proptest! {
        #[test]
        fn no_text_comes_out_hidden_or_longer_than_its_bound(text in any::<String>(), most in 1_usize..50) {
            for shown in [line(&text, most), block(&text, most)] {
                prop_assert!(shown.chars().count() <= most);
                prop_assert!(!shown.chars().any(|found| is_hidden(found) && found != '\n' && found != '\t'));
            }
            prop_assert!(!json(&text).chars().any(|found| is_hidden(found) && found != '\n' && found != '\t'));
        }
    }
}
