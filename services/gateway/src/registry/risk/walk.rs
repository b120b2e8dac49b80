//! Pure. Every text of a definition with its place. Members that come twice are both read: which of them a reader takes is
//! not ours to say.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::results::surrogates::mended;

/// A text: a value, or the name of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// A JSON pointer to it, or to the member that it names.
    pub(super) place: String,
    /// The text.
    pub(super) text: String,
}

/// The texts of a definition, in its order. What is not JSON is one text.
pub(super) fn texts(definition: &str) -> Vec<Text> {
    let mended = mended(definition);
    let mut texts = Vec::new();
    let mut reader = serde_json::Deserializer::from_str(&mended);
    let walk = Walk { place: String::new(), texts: &mut texts };
    if walk.deserialize(&mut reader).and_then(|()| reader.end()).is_err() {
        // Whatever was found stands; the rest is read as it is written.
        texts.push(Text { place: String::new(), text: definition.to_owned() });
    }
    texts
}

struct Walk<'a> {
    place: String,
    texts: &'a mut Vec<Text>,
}

/// A JSON pointer one step further.
pub(super) fn step(place: &str, name: &str) -> String {
    format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.texts.push(Text { place: self.place, text: text.to_owned() });
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut number = 0_usize;
        while items.next_element_seed(Walk { place: format!("{}/{number}", self.place), texts: self.texts })?.is_some()
        {
            number += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            let place = step(&self.place, &name);
            self.texts.push(Text { place: place.clone(), text: name });
            members.next_value_seed(Walk { place, texts: self.texts })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_found_with_its_place_also_in_members_that_come_twice() {
        let definition = r#"{"a":"1","a":[true,null,2.5,{"b/c":"2"}],"d":{"":"3"}}"#;
        let found: Vec<_> = texts(definition).into_iter().map(|text| (text.place, text.text)).collect();
        let expected = [
            ("/a", "a"),
            ("/a", "1"),
            ("/a", "a"),
            ("/a/3/b~1c", "b/c"),
            ("/a/3/b~1c", "2"),
            ("/d", "d"),
            ("/d/", ""),
            ("/d/", "3"),
        ];
        assert_eq!(found, expected.map(|(place, text)| (place.to_owned(), text.to_owned())));
    }

    #[test]
    fn what_is_not_json_or_too_deep_is_read_as_one_text() {
        for broken in ["{\"a\":\"x\", you must", "", &"[".repeat(1_000)] {
            assert_eq!(texts(broken).last().unwrap().text, broken);
        }
    }
}
