//! Pure: text from servers, made harmless for a terminal.
//!
//! A server chooses its names, descriptions and results. Control characters in them could move the cursor, change the
//! title, or hide a line; characters that change the direction of writing could make a name read as another one. They
//! are shown as escapes and never sent to the terminal as they are.

use std::fmt::Write as _;

/// One line: line breaks and tabs are shown as escapes too.
pub(crate) fn line(text: &str) -> String {
    escape(text, |_| false)
}

/// Several lines: line feeds and tabs stay. A carriage return before a line feed is dropped.
pub(crate) fn block(text: &str) -> String {
    escape(&text.replace("\r\n", "\n"), |character| matches!(character, '\n' | '\t'))
}

/// JSON text whose strings hold nothing that a terminal would obey: still the same JSON value.
///
/// JSON escapes only U+0000 to U+001F by itself. What else is dangerous can only stand inside strings, where `\uXXXX`
/// means the same.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\n' | '\t') || !is_dangerous(character) {
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

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            _ if keep(character) || !is_dangerous(character) => out.push(character),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if (character as u32) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", character as u32);
            }
            _ => {
                let _ = write!(out, "\\u{{{:x}}}", character as u32);
            }
        }
    }
    out
}

/// Control characters (C0, DEL, C1), line and paragraph separators, direction marks, invisible characters and tags.
fn is_dangerous(character: char) -> bool {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_and_direction_characters_are_shown_as_escapes() {
        insta::assert_snapshot!(
            line("\u{1b}[2Jred\u{7}\r\n\u{9b}31m \u{202e}gpj.exe 订单 naïve"),
            @r"\x1b[2Jred\x07\r\n\x9b31m \u{202e}gpj.exe 订单 naïve"
        );
        assert_eq!(block("a\r\nb\tc\rd\u{1b}]0;x"), "a\nb\tc\\rd\\x1b]0;x");
    }

    proptest! {
        #[test]
        fn no_text_gets_a_control_character_through(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(is_dangerous));
            prop_assert!(!block(&text).chars().any(|found| is_dangerous(found) && found != '\n' && found != '\t'));
        }

        #[test]
        fn json_keeps_its_value(text in any::<String>()) {
            let value = serde_json::json!({ (text.clone()): [text] });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let harmless = json(&pretty);
            prop_assert!(!harmless.chars().any(|found| is_dangerous(found) && found != '\n'));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&harmless).unwrap(), value);
        }
    }
}
