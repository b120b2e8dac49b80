//! Pure. What differs between two definitions, as a list to read: member, before, after.

use serde_json::Value;

use super::{
    EXCERPT_CHARS, Kind, Risk, excerpt,
    walk::{step, texts},
};
use crate::results::surrogates::mended;

/// A hint's place, and whether going from one word of the server to another promises more. What is not said counts as the
/// default: not read-only, not idempotent, open; of destructive only a declared `true` counts.
type Looser = fn(Option<bool>, Option<bool>) -> bool;
const HINTS: [(&str, Looser); 4] = [
    ("/annotations/readOnlyHint", |old, new| old != Some(true) && new == Some(true)),
    ("/annotations/destructiveHint", |old, new| old == Some(true) && new != Some(true)),
    ("/annotations/idempotentHint", |old, new| old != Some(true) && new == Some(true)),
    ("/annotations/openWorldHint", |old, new| old != Some(false) && new == Some(false)),
];

/// At most `most` differences, looser hints first.
pub(super) fn between(before: &str, after: &str, most: usize) -> Vec<Risk> {
    let read = |text: &str| serde_json::from_str::<Value>(&mended(text));
    let (Ok(before_value), Ok(after_value)) = (read(before), read(after)) else {
        let same = before == after;
        return if same { Vec::new() } else { vec![differs(String::new(), Some(&before.into()), Some(&after.into()))] };
    };
    let mut risks: Vec<Risk> = HINTS
        .into_iter()
        .filter_map(|(place, is_looser)| {
            let (old, new) = (before_value.pointer(place), after_value.pointer(place));
            let looser = is_looser(old.and_then(Value::as_bool), new.and_then(Value::as_bool));
            looser.then(|| Risk { kind: Kind::Looser, ..differs(place.to_owned(), old, new) })
        })
        .collect();
    let mut found = Vec::new();
    compare("", Some(&before_value), Some(&after_value), most, &mut found);
    let told = |risk: &Risk| risks.iter().any(|looser| looser.place == risk.place);
    found.retain(|risk| !told(risk));
    risks.extend(found);
    // Of members that come twice only one is in the values above.
    if risks.is_empty() && sorted(before) != sorted(after) {
        risks.push(differs(String::new(), Some(&before.into()), Some(&after.into())));
    }
    risks.truncate(most);
    risks
}

fn sorted(definition: &str) -> Vec<(String, String)> {
    let mut texts: Vec<_> = texts(definition).into_iter().map(|text| (text.place, text.text)).collect();
    texts.sort_unstable();
    texts
}

fn compare(place: &str, before: Option<&Value>, after: Option<&Value>, most: usize, found: &mut Vec<Risk>) {
    if before == after || found.len() >= most {
        return;
    }
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for (name, value) in old {
                compare(&step(place, name), Some(value), new.get(name), most, found);
            }
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                compare(&step(place, name), None, Some(value), most, found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for number in 0..old.len().max(new.len()) {
                compare(&format!("{place}/{number}"), old.get(number), new.get(number), most, found);
            }
        }
        _ => found.push(differs(place.to_owned(), before, after)),
    }
}

fn differs(place: String, before: Option<&Value>, after: Option<&Value>) -> Risk {
    let (before, after) = (spelt(before), spelt(after));
    let common = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let around = |chars: &[char]| {
        let from = common.min(chars.len());
        excerpt(chars, from, (from + EXCERPT_CHARS / 2).min(chars.len()))
    };
    Risk { kind: Kind::Changed, place, before: around(&before), excerpt: around(&after) }
}

/// A text as it is, any other value as JSON.
fn spelt(value: Option<&Value>) -> Vec<char> {
    match value {
        None => Vec::new(),
        Some(Value::String(text)) => text.chars().collect(),
        Some(other) => other.to_string().chars().collect(),
    }
}
