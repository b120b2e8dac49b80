//! Pure: text from servers, made harmless for a terminal.
//!
//! A server chooses its names, descriptions and results. Control characters in them could move the cursor, change the
//! title, or hide a line; characters that change the direction of writing could make a name read as another one. They
//! are shown as escapes and never sent to the terminal as they are.

use std::fmt::Write as _;

use gatehouse_types::shown::is_hidden;
pub(crate) use gatehouse_types::shown::json;

/// One line: line breaks and tabs are shown as escapes too.
pub(crate) fn line(text: &str) -> String {
    escape(text, |_| false)
}

/// Several lines: line feeds and tabs stay. A carriage return before a line feed is dropped.
pub(crate) fn block(text: &str) -> String {
    escape(&text.replace("\r\n", "\n"), |character| matches!(character, '\n' | '\t'))
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            _ if keep(character) || !is_hidden(character) => out.push(character),
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
            prop_assert!(!line(&text).chars().any(is_hidden));
            prop_assert!(!block(&text).chars().any(|found| is_hidden(found) && found != '\n' && found != '\t'));
        }

        #[test]
        fn json_keeps_its_value(text in any::<String>()) {
            let value = serde_json::json!({ (text.clone()): [text] });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let harmless = json(&pretty);
            prop_assert!(!harmless.chars().any(|found| is_hidden(found) && found != '\n'));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&harmless).unwrap(), value);
        }
    }
}
