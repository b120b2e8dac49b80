//! Pure: whether a text block already holds a structured result.

use serde_json::{Number, Value};

use super::blocks;

/// Whether the block is a text block whose text is exactly this JSON, compared as values; also inside a code fence.
pub(super) fn holds(block: &str, structured: &str) -> bool {
    let Some(text) = blocks::text_of(block) else { return false };
    let text = unfenced(text.trim());
    if text == structured {
        return true;
    }
    // A text that cannot be this JSON is not parsed.
    if text.as_bytes().first() != structured.as_bytes().first() {
        return false;
    }
    let parsed = (serde_json::from_str::<Value>(text), serde_json::from_str::<Value>(structured));
    matches!(parsed, (Ok(one), Ok(other)) if equal(&one, &other))
}

/// The inside of a text that is one code fence.
fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some((language, code)) = inside.and_then(|inside| inside.split_once('\n')) else { return text };
    if matches!(language.trim(), "" | "json" | "JSON") { code.trim() } else { text }
}

/// Equality of JSON values: order of members does not matter, and numbers are equal when their values are.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || number(one) == number(other),
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
    let exact = number.is_f64() || number.as_i64().is_some_and(|integer| integer.abs() < 1 << 53);
    number.as_f64().filter(|_| exact)
}
