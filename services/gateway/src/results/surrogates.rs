//! Pure: escapes of half a character.
//!
//! A server that cuts text at a UTF-16 unit sends `\ud83d` without its other half. That is JSON by its grammar, but strict readers
//! refuse it, and an engine with such a reader would lose the whole result.

use std::borrow::Cow;

/// The JSON text with `\ufffd` in place of each escape that is half a character. Borrowed when there is none.
pub(crate) fn mended(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut out = String::new();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = json[at..].find('\\') {
        let escape = at + found;
        match unit(bytes, escape) {
            Some(0xd800..0xdc00) if matches!(unit(bytes, escape + 6), Some(0xdc00..0xe000)) => at = escape + 12,
            Some(0xd800..0xe000) => {
                out.push_str(&json[done..escape]);
                out.push_str("\\ufffd");
                at = escape + 6;
                done = at;
            }
            Some(_) => at = escape + 6,
            // The escaped character is ASCII in every text that is JSON; this takes others, too.
            None => at = escape + 1 + json[escape + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    if done == 0 { Cow::Borrowed(json) } else { Cow::Owned(out + &json[done..]) }
}

/// The UTF-16 unit that the escape at this place spells.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..)?.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_halves_of_characters_are_replaced() {
        for (text, expected) in [
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\uDE00b""#, r#""\ufffdb""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\ud83d\\ude00""#, r#""\ufffd\\ude00""#),
            (r#""\n\u0041é""#, r#""\n\u0041é""#),
        ] {
            assert_eq!(mended(text), expected);
        }
    }

    proptest! {
        #[test]
        fn a_strict_reader_takes_every_mended_string(inner in r"(\\\\u(d83d|DE00|dbff|dfff|0041)|\\\\n|\\\\\\\\|[a-fé0-9])*") {
            let text = format!("\"{inner}\"");
            prop_assert!(serde_json::from_str::<Value>(&mended(&text)).is_ok(), "{}", text);
        }
    }
}
