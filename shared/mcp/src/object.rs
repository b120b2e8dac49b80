//! Pure
//!
//! Objects read without a model: each member as the text it was written as.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of an object in the order they were written. No name occurs twice.
#[derive(Debug, Default)]
pub struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads an object. Fails when it is no object or names a member twice.
    pub fn read(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(raw.get())
    }

    /// A member by its name.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                while let Some(Text(name)) = map.next_key()? {
                    if members.get(&name).is_some() {
                        return Err(serde::de::Error::custom(format_args!("the member {name:?} occurs twice")));
                    }
                    members.0.push((name, map.next_value()?));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A string, borrowed where it holds no escapes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// Reads a JSON string, borrowed where it holds no escapes.
pub fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = raw.get();
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(quoted).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_spelling_and_order() {
        let raw: &RawValue = serde_json::from_str(r#"{"b": 1.0, "a":1e3,"\u0063":[ 9007199254740993 ]}"#).unwrap();
        let members = Members::read(raw).unwrap();
        let texts: Vec<_> = members.0.iter().map(|(name, value)| (name.as_ref(), value.get())).collect();
        assert_eq!(texts, [("b", "1.0"), ("a", "1e3"), ("c", "[ 9007199254740993 ]")]);
    }

    #[test]
    fn a_member_that_occurs_twice_is_refused_in_any_spelling() {
        let raw: &RawValue = serde_json::from_str(r#"{"a":1,"\u0061":2}"#).unwrap();
        assert!(Members::read(raw).is_err());
    }
}
