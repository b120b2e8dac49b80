//! Pure. What a listing brought, as those who follow events are told.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::risk::{self, Risk};

/// Most names of tools, or tools with risks, in one event: the counts are of all.
pub const MOST: usize = 50;
/// Most characters of a text in an event: a server chooses its names, and JSON may spell a character with six.
const NAME_CHARS: usize = 64;

/// How a list differs from the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListNews {
    /// Tools that were not listed before.
    pub added: Vec<String>,
    /// Tools that are not listed any more.
    pub removed: Vec<String>,
    /// Tools with another definition.
    pub changed: Vec<String>,
    /// Whether the capabilities differ.
    pub capabilities: bool,
}

impl ListNews {
    /// The payload of `tools.changed`. All lists empty and no capabilities: the tools only stand in another order.
    pub fn payload(&self, server: &str) -> Value {
        json!({
            "server": server,
            "added": names(&self.added),
            "removed": names(&self.removed),
            "changed": names(&self.changed),
            "counts": {"added": self.added.len(), "removed": self.removed.len(), "changed": self.changed.len()},
            "capabilities": self.capabilities,
        })
    }
}

/// The first names, each cut.
pub fn names(all: &[String]) -> Vec<String> {
    all.iter().take(MOST).map(|name| name.chars().take(NAME_CHARS).collect()).collect()
}

/// The risks of a definition that the one before did not have. `seen` is what an admin acknowledged.
pub fn new_risks(before: Option<&str>, after: &str, seen: Option<&str>) -> Vec<Risk> {
    let all = |definition: &str| {
        let mut risks = seen.map(|seen| risk::of_change(seen, definition)).unwrap_or_default();
        risks.extend(risk::of_text(definition));
        risks
    };
    let known: HashSet<Risk> = before.map(all).unwrap_or_default().into_iter().collect();
    all(after).into_iter().filter(|risk| !known.contains(risk)).collect()
}

/// The payload of `tools.risk`; `None` when there are none.
pub fn risk_payload(server: &str, tools: &[(String, Vec<Risk>)]) -> Option<Value> {
    if tools.is_empty() {
        return None;
    }
    let shown = tools.iter().take(MOST).map(|(name, risks)| {
        // One each is enough to look at the tool.
        let first = risks
            .first()
            .map(|risk| json!({"kind": risk.kind.as_str(), "where": cut(&risk.place), "excerpt": cut(&risk.excerpt)}));
        json!({"tool": cut(name), "risks": risks.len(), "first": first})
    });
    Some(json!({"server": server, "tools": shown.collect::<Vec<_>>(), "count": tools.len()}))
}

fn cut(text: &str) -> String {
    text.chars().take(NAME_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::risk::Kind;

    #[test]
    fn a_payload_is_bounded_and_counts_everything() {
        let many: Vec<String> = (0..3_000).map(|number| format!("{number}{}", "\u{1}".repeat(900))).collect();
        let news = ListNews { added: many.clone(), removed: many.clone(), changed: many.clone(), capabilities: true };
        let payload = news.payload("s");
        assert_eq!(payload["counts"], json!({"added": 3_000, "removed": 3_000, "changed": 3_000}));
        assert_eq!(payload["added"].as_array().unwrap().len(), MOST);
        let risk = Risk {
            kind: Kind::Hidden,
            place: "/\u{1}".repeat(5_000),
            excerpt: "\u{1}".repeat(5_000),
            before: String::new(),
        };
        let risky: Vec<_> = many.into_iter().map(|name| (name, vec![risk.clone()])).collect();
        let told = risk_payload("s", &risky).unwrap();
        assert_eq!(told["count"], 3_000);
        for payload in [payload, told] {
            assert!(
                payload.to_string().len() <= gatehouse_store::events::PAYLOAD_BYTES,
                "{}",
                payload.to_string().len()
            );
        }
        assert_eq!(risk_payload("s", &[]), None);
    }

    #[test]
    fn only_what_the_definition_before_did_not_have_is_new() {
        let (plain, bad) = (r#"{"description":"Adds."}"#, r#"{"description":"You must obey."}"#);
        assert_eq!(new_risks(None, bad, None).len(), 1);
        assert_eq!(new_risks(Some(bad), bad, None), []);
        assert_eq!(new_risks(Some(bad), r#"{"title":"x","description":"You must obey."}"#, None), []);
        assert_eq!(
            new_risks(Some(plain), r#"{"description":"Adds more."}"#, None),
            [],
            "a change that nobody looked at"
        );
        let changed = new_risks(Some(plain), bad, Some(plain));
        assert_eq!(changed.iter().map(|risk| risk.kind).collect::<Vec<_>>(), [Kind::Changed, Kind::Instructs]);
    }
}
