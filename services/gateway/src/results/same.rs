//! Pure: whether a text already holds a structured result.

use std::cell::OnceCell;

use serde_json::{Number, Value};

/// A structured result that texts are compared with. It is parsed once, and only when a text may hold it.
pub(super) struct Structured<'a> {
    json: &'a str,
    parsed: OnceCell<Option<Value>>,
}

impl<'a> Structured<'a> {
    pub(super) const fn new(json: &'a str) -> Self {
        Self { json, parsed: OnceCell::new() }
    }

    /// Whether a text is exactly this JSON, compared as values; also as the inside of a code fence.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let text = unfenced(text.trim());
        if text == self.json {
            return true;
        }
        // A text that cannot be this JSON is not parsed.
        let ends = |text: &str| (text.as_bytes().first().copied(), text.as_bytes().last().copied());
        let (first, last) = ends(text);
        if first != ends(self.json).0 || (matches!(first, Some(b'{' | b'[' | b'"')) && last != ends(self.json).1) {
            return false;
        }
        let Some(own) = self.parsed.get_or_init(|| serde_json::from_str(self.json).ok()) else { return false };
        serde_json::from_str::<Value>(text).is_ok_and(|other| equal(own, &other))
    }
}

/// The inside of a text that is one code fence (`CommonMark` 0.31, 4.5).
fn unfenced(text: &str) -> &str {
    let Some(mark @ (b'`' | b'~')) = text.as_bytes().first().copied() else { return text };
    let length = text.bytes().take_while(|byte| *byte == mark).count();
    let (fence, rest) = text.split_at(length);
    let inside = rest.strip_suffix(fence).filter(|_| length >= 3);
    let Some((language, code)) = inside.and_then(|inside| inside.split_once('\n')) else { return text };
    if language.trim().is_empty() || language.trim().eq_ignore_ascii_case("json") { code.trim() } else { text }
}

/// Equality of JSON values: order of members does not matter, and numbers are equal when their values are.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (number(one) == number(other) && number(one).is_some())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| equal(value, other)))
        }
        (one, other) => one == other,
    }
}

/// The value of a number that is not an integer of 64 bits.
fn number(number: &Number) -> Option<f64> {
    // Two different large integers may share one f64: only integers that it holds exactly count.
    let exact = number.is_f64() || number.as_i64().is_some_and(|integer| integer.unsigned_abs() < 1 << 53);
    number.as_f64().filter(|_| exact)
}
