//! Pure: a JSON object as its members in order, each value left as the text that was sent.
//!
//! What Gatehouse does not need to understand it does not re-write: number spellings, unknown members and their order stay.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of a JSON object in the order they were sent.
#[derive(Debug, Default, Clone)]
pub struct RawObject<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawObject<'a> {
    /// The object that `text` spells, or `None` for anything else.
    pub fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The value of a member. Of two members with one name the last counts, as in most parsers.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The value of a member that is a string.
    pub fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(string)
    }

    /// The value of a member that is `true` or `false`.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(boolean)
    }

    /// The value of a member that is an object.
    pub fn object(&self, name: &str) -> Option<RawObject<'a>> {
        self.get(name).and_then(|raw| Self::parse(raw.get()))
    }
}

/// The string that a raw value spells; borrowed when it has no escapes.
pub fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(text).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// The boolean that a raw value spells.
pub fn boolean(raw: &RawValue) -> Option<bool> {
    match raw.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// What kind of JSON value a raw value is: its first byte (`{`, `[`, `"`, `t`, `f`, `n`, or a digit or minus).
pub fn first_byte(raw: &RawValue) -> u8 {
    raw.get().as_bytes().first().copied().unwrap_or(b'n')
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = RawObject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(map.size_hint().unwrap_or(4));
        while let Some(key) = map.next_key::<Key<'de>>()? {
            members.push((key.0, map.next_value()?));
        }
        Ok(RawObject(members))
    }
}

/// A member's name, borrowed when it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Appends `text` as a JSON string.
pub fn push_string(out: &mut String, text: &str) {
    // A string always serialises.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// The members joined into an object again.
pub fn join<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::from("{");
    for (name, value) in members {
        if out.len() > 1 {
            out.push(',');
        }
        push_string(&mut out, name);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_spelling() {
        let text = r#"{"b":1.0,"a":{"x": 1e3},"é\n":12345678901234567890123,"b":2}"#;
        let object = RawObject::parse(text).unwrap();
        let spelled: Vec<_> = object.0.iter().map(|(key, value)| (key.as_ref(), value.get())).collect();
        assert_eq!(spelled, [("b", "1.0"), ("a", r#"{"x": 1e3}"#), ("é\n", "12345678901234567890123"), ("b", "2")]);
        assert_eq!(object.get("b").unwrap().get(), "2");
        assert_eq!(join(object.0.iter().map(|(key, value)| (key.as_ref(), value.get()))), text);
    }

    #[test]
    fn only_objects_are_objects() {
        for text in ["[]", "null", "1", "\"x\"", "{", "{\"a\":}", ""] {
            assert!(RawObject::parse(text).is_none(), "{text}");
        }
    }
}
