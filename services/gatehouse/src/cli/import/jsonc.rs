//! Pure: JSON as editors write it, with comments and trailing commas, made plain JSON.

/// Takes out comments and commas before a closing bracket. Strings stay as they are; plain JSON comes out unchanged.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => {
                let length = string_length(rest);
                out.push_str(&rest[..length]);
                length
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            ']' | '}' => {
                let kept = out.trim_end();
                if kept.ends_with(',') {
                    out.truncate(kept.len() - 1);
                }
                out.push(first);
                1
            }
            _ => {
                out.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    out
}

/// Bytes of the string that `text` begins with, both quotes included; all of `text` when it does not end.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_go_and_strings_stay() {
        let text = "{ // one\n \"a\": \"// no /* \\\" ,}\", /* two\n */ \"b\": [1, 2, ], }";
        let value: serde_json::Value = serde_json::from_str(&plain(text)).unwrap();
        assert_eq!(value, serde_json::json!({ "a": "// no /* \" ,}", "b": [1, 2] }));
    }

    proptest! {
        #[test]
        fn plain_json_is_unchanged_and_nothing_panics(text in any::<String>(), number in any::<i64>()) {
            let _ = plain(&text);
            let json = serde_json::json!({ text.clone(): [text, number, { "x": null }] }).to_string();
            prop_assert_eq!(plain(&json), json);
        }
    }
}
