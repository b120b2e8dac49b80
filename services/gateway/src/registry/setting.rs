//! Pure. Settings: a change is checked as a whole before anything is stored.

use std::collections::BTreeMap;

use gatehouse_store::settings::Stored;
use gatehouse_types::{
    Settings,
    settings::{FIELDS, Field},
};
use serde_json::Value;
use time::OffsetDateTime;

use super::check::Fields;

/// Most settings in one change.
const MOST: usize = 200;

/// A setting with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its key.
    pub key: &'static str,
    /// Its value.
    pub value: Value,
    /// Its default.
    pub default: Value,
    /// What it does, its unit and its bounds.
    pub description: String,
    /// When and by whom it was changed; `None` while it has its default.
    pub changed: Option<(OffsetDateTime, String)>,
}

/// A change to settings. Every key and value is checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsChange {
    /// Values to set.
    pub set: BTreeMap<&'static str, Value>,
    /// Keys that go back to their defaults.
    pub reset: Vec<&'static str>,
}

impl SettingsChange {
    /// Checks a change: values are texts of JSON.
    pub fn checked(fields: &mut Fields, set: BTreeMap<String, String>, reset: &[String]) -> Self {
        let mut change = Self::default();
        if set.len() > MOST || reset.len() > MOST {
            fields.wrong("set", format!("takes at most {MOST} settings at once, and so does `reset`"));
            return change;
        }
        for (key, text) in set {
            let path = format!("set[\"{}\"]", printable(&key));
            if reset.contains(&key) {
                fields.wrong(path, "is reset by the same request");
                continue;
            }
            let value = serde_json::from_str::<Value>(&text).unwrap_or(Value::Null);
            match (Settings::default().set(&key, &value), Field::named(&key)) {
                (Ok(()), Some(field)) => {
                    change.set.insert(field.key, value);
                }
                (Err(error), _) => fields.wrong(path, format!("is wrong: {error}")),
                (Ok(()), None) => fields.wrong(path, "is not a setting"),
            }
        }
        for (place, key) in reset.iter().enumerate() {
            match Field::named(key) {
                Some(field) => change.reset.push(field.key),
                None => {
                    fields.wrong(format!("reset[{place}]"), "is not a setting; `gatehouse settings list` shows them");
                }
            }
        }
        change
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.reset.is_empty()
    }
}

fn printable(key: &str) -> String {
    key.chars().filter(|letter| !letter.is_control()).take(64).collect()
}

/// Every setting with its value, in the order of the keys.
pub fn all(stored: &Stored) -> Vec<Setting> {
    let defaults = Settings::default();
    let changed = |key: &str| {
        let row = stored.rows.iter().find(|row| row.key == key)?;
        Some((row.updated_at, row.updated_by.clone()))
    };
    let one = |field: &Field| Setting {
        key: field.key,
        value: field.get(&stored.settings),
        default: field.get(&defaults),
        description: format!("{}; {} to {}", field.description, field.min, field.max),
        changed: changed(field.key),
    };
    FIELDS.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn every_wrong_setting_is_named_at_once() {
        let mut fields = Fields::new();
        let set =
            [("tools.maxNameChars", "1"), ("nope", "1"), ("audit.payloadBytes", "{"), ("calls.foregroundMaxSec", "5")];
        let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let change =
            SettingsChange::checked(&mut fields, set, &["neither".to_owned(), "calls.foregroundMaxSec".to_owned()]);
        let Err(Error::Invalid(wrong)) = fields.finish(change) else { panic!("passed") };
        let named: Vec<&str> = wrong.iter().map(|wrong| wrong.field.as_str()).collect();
        let expected = [
            "set[\"audit.payloadBytes\"]",
            "set[\"calls.foregroundMaxSec\"]",
            "set[\"nope\"]",
            "set[\"tools.maxNameChars\"]",
            "reset[0]",
        ];
        assert_eq!(named, expected);
    }
}
