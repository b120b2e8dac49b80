//! Pure: a JSON object as its members in order, each value left as the text that was sent.
//!
//! What Gatehouse does not need to understand it does not re-write: number spellings, unknown members and their order stay.

use std::borrow::Cow;

use gatehouse_mcp::{message::MOST_DEPTH, scan};

/// The members of a JSON object in the order they were sent, each value as its text.
#[derive(Debug, Default, Clone)]
pub struct RawObject<'a>(pub Vec<(Cow<'a, str>, &'a str)>);

impl<'a> RawObject<'a> {
    /// The object that `text` spells, or `None` for anything else and for what nests too deeply.
    pub fn parse(text: &'a str) -> Option<Self> {
        scan::members(text, MOST_DEPTH).ok().map(Self)
    }

    /// The value of a member. Of two members with one name the last counts, as in most parsers.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The value of a member that is a string.
    pub fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(|value| scan::unquoted(value).ok())
    }

    /// The value of a member that is `true` or `false`.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The value of a member that is an object.
    pub fn object(&self, name: &str) -> Option<RawObject<'a>> {
        self.get(name).and_then(Self::parse)
    }

    /// Whether there is a member of this name that is a string.
    pub fn has_string(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| first_byte(value) == b'"')
    }

    /// The members joined into an object again.
    pub fn joined(&self) -> String {
        join(self.0.iter().map(|(key, value)| (key.as_ref(), *value)))
    }
}

/// What kind of JSON value a text is: its first byte (`{`, `[`, `"`, `t`, `f`, `n`, or a digit or minus).
pub fn first_byte(json: &str) -> u8 {
    json.as_bytes().first().copied().unwrap_or(b'n')
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
        let spelled: Vec<_> = object.0.iter().map(|(key, value)| (key.as_ref(), *value)).collect();
        assert_eq!(spelled, [("b", "1.0"), ("a", r#"{"x": 1e3}"#), ("é\n", "12345678901234567890123"), ("b", "2")]);
        assert_eq!(object.get("b"), Some("2"));
        assert_eq!(join(object.0.iter().map(|(key, value)| (key.as_ref(), *value))), text);
    }

    #[test]
    fn only_objects_are_objects() {
        for text in ["[]", "null", "1", "\"x\"", "{", "{\"a\":}", ""] {
            assert!(RawObject::parse(text).is_none(), "{text}");
        }
    }
}
