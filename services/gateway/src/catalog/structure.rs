//! Pure: the structure of a tool's results in words, for its description. Engines do not get `outputSchema` itself.
//!
//! One line for each member: its name (`?` when it may be missing), its type, its description; members of members are indented.

use std::cell::Cell;

use serde_json::Value;

use crate::results::schema::within;

/// The first line.
const HEAD: &str = "Returns JSON:";
/// The last line when not all fits.
const CUT: &str = "…";
/// Larger schemas are not described, in bytes.
const MOST_SCHEMA_BYTES: usize = 256 << 10;
/// How deep members are described.
const MOST_DEPTH: usize = 6;
/// Longest name or value within a line, in characters.
const PART_CHARS: usize = 60;
/// Longest description within a line, in characters.
const DESCRIPTION_CHARS: usize = 200;
/// Most alternatives or values within a line.
const MOST_ALTERNATIVES: usize = 8;
/// Most parts of a schema that are looked at: with references that double, a small one has no end.
const MOST_STEPS: u32 = 5_000;
/// Most references that are followed for one type.
const MOST_REFERENCES: usize = 8;

/// What results look like by their schema, in at most `most` Unicode characters; `None` when the schema tells nothing of use.
pub fn summary(schema: &str, most: usize) -> Option<String> {
    if schema.len() > MOST_SCHEMA_BYTES {
        return None;
    }
    let root: Value = serde_json::from_str(schema).ok()?;
    let mut writer = Writer {
        root: &root,
        lines: vec![HEAD.to_owned()],
        left: most.checked_sub(length(HEAD))?,
        cut: false,
        steps: Cell::new(0),
    };
    let mut open = Vec::new();
    let whole = writer.whole(&root);
    let kind = writer.kind(whole, 0);
    if !matches!(kind.as_str(), "object" | "any") {
        writer.lines[0] = format!("{HEAD} {kind}");
        writer.left = most.checked_sub(length(&writer.lines[0]))?;
    }
    writer.inside(whole, 0, &mut open);
    if writer.cut {
        // Room for the mark is taken from the end.
        while writer.lines.len() > 1 && writer.left < length(CUT) + 1 {
            writer.left += writer.lines.pop().map_or(0, |line| length(&line) + 1);
        }
        writer.lines.push(CUT.to_owned());
    }
    let told = writer.lines.len() > 1 || writer.lines[0] != HEAD;
    let text = writer.lines.join("\n");
    (told && text != format!("{HEAD}\n{CUT}") && length(&text) <= most).then_some(text)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

struct Writer<'a> {
    root: &'a Value,
    lines: Vec<String>,
    /// Characters that are left.
    left: usize,
    cut: bool,
    steps: Cell<u32>,
}

impl<'a> Writer<'a> {
    /// Adds a line. Nothing follows one that did not fit.
    fn line(&mut self, depth: usize, text: &str) {
        let line = format!("{}- {text}", "  ".repeat(depth));
        let needed = length(&line) + 1;
        if self.cut || needed > self.left {
            self.cut = true;
            return;
        }
        self.left -= needed;
        self.lines.push(line);
    }

    fn tired(&self) -> bool {
        self.steps.get() > MOST_STEPS
    }

    /// A schema with its references followed.
    fn whole(&self, schema: &'a Value) -> &'a Value {
        self.steps.set(self.steps.get() + 1);
        let mut schema = schema;
        for _ in 0..MOST_REFERENCES {
            let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
            match target.and_then(|fragment| within(self.root, fragment)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    /// The members of an object, of the items of an array, or of the alternatives that have any.
    fn inside(&mut self, schema: &'a Value, depth: usize, open: &mut Vec<*const Value>) {
        let schema = self.whole(schema);
        let place = std::ptr::from_ref(schema);
        self.cut |= self.tired();
        if self.cut || open.contains(&place) || depth >= MOST_DEPTH || open.len() > 2 * MOST_DEPTH {
            return;
        }
        open.push(place);
        let required: Vec<&str> = list(schema, "required").iter().filter_map(Value::as_str).collect();
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            self.member(&format!("{}{mark}", one_line(name, PART_CHARS)), member, depth, open);
        }
        if let Some(rest) = schema.get("additionalProperties").filter(|rest| rest.is_object()) {
            self.member("(any name)", rest, depth, open);
        }
        for part in list(schema, "allOf") {
            self.inside(part, depth, open);
        }
        for items in ["items", "prefixItems"].iter().filter_map(|name| schema.get(name)) {
            match items {
                Value::Array(items) => {
                    for (place, item) in items.iter().enumerate() {
                        self.member(&format!("[{place}]"), item, depth, open);
                    }
                }
                items => self.inside(items, depth, open),
            }
        }
        self.alternatives(schema, depth, open);
        open.pop();
    }

    fn member(&mut self, name: &str, schema: &'a Value, depth: usize, open: &mut Vec<*const Value>) {
        let whole = self.whole(schema);
        let text = ["description", "title"]
            .iter()
            .find_map(|key| [schema, whole].into_iter().find_map(|schema| schema.get(key)).and_then(Value::as_str));
        let text = text.map(|text| one_line(text, DESCRIPTION_CHARS)).filter(|text| !text.is_empty());
        let text = text.map_or_else(String::new, |text| format!(" – {text}"));
        let items = whole.get("items").map_or(whole, |items| self.whole(items));
        let known = [whole, items].iter().any(|schema| open.contains(&std::ptr::from_ref(*schema)));
        let again = if known { " (as above)" } else { "" };
        self.line(depth, &format!("{name}: {}{again}{text}", self.kind(whole, 0)));
        self.inside(whole, depth + 1, open);
    }

    /// Alternatives with members of their own: one alone as if it were the schema, several one after the other.
    fn alternatives(&mut self, schema: &'a Value, depth: usize, open: &mut Vec<*const Value>) {
        let all = ["anyOf", "oneOf"].iter().flat_map(|name| list(schema, name));
        let inner: Vec<&Value> = all.map(|part| self.whole(part)).filter(|part| has_members(part)).collect();
        if let [part] = inner[..] {
            return self.inside(part, depth, open);
        }
        for (place, part) in inner.into_iter().enumerate() {
            self.line(depth, if place == 0 { "either:" } else { "or:" });
            self.inside(part, depth + 1, open);
        }
    }

    /// The type of a schema in a few words.
    fn kind(&self, schema: &'a Value, depth: usize) -> String {
        let schema = self.whole(schema);
        if depth > MOST_REFERENCES || self.tired() {
            return "any".to_owned();
        }
        if let Some(value) = schema.get("const") {
            return one_line(&value.to_string(), PART_CHARS);
        }
        let values = list(schema, "enum");
        if !values.is_empty() {
            return joined(values.iter().map(|value| one_line(&value.to_string(), PART_CHARS)));
        }
        let alternatives: Vec<&Value> = ["anyOf", "oneOf"].iter().flat_map(|name| list(schema, name)).collect();
        if !alternatives.is_empty() && schema.get("type").is_none() {
            return joined(alternatives.into_iter().map(|part| self.kind(part, depth + 1)));
        }
        let named = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind.as_str()],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ if ["properties", "additionalProperties"].iter().any(|name| schema.get(name).is_some()) => vec!["object"],
            _ if ["items", "prefixItems"].iter().any(|name| schema.get(name).is_some()) => vec!["array"],
            _ => Vec::new(),
        };
        if named.is_empty() {
            let parts = list(schema, "allOf").iter().map(|part| self.kind(part, depth + 1));
            let told = parts.into_iter().find(|kind| kind != "any");
            return told.unwrap_or_else(|| "any".to_owned());
        }
        joined(named.into_iter().map(|kind| match (kind, schema.get("items")) {
            ("array", Some(items)) if items.is_object() => format!("array of {}", self.kind(items, depth + 1)),
            ("string", _) => match schema.get("format").and_then(Value::as_str) {
                Some(format) => format!("string ({})", one_line(format, PART_CHARS)),
                None => kind.to_owned(),
            },
            _ => one_line(kind, PART_CHARS),
        }))
    }
}

fn list<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    schema.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn has_members(schema: &Value) -> bool {
    ["properties", "items", "prefixItems", "allOf", "anyOf", "oneOf", "additionalProperties"]
        .iter()
        .any(|name| schema.get(name).is_some_and(|value| value.is_object() || value.is_array()))
}

/// Different words, joined.
fn joined(words: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for word in words {
        if different.len() == MOST_ALTERNATIVES {
            different.push("…".to_owned());
            break;
        }
        if !different.contains(&word) {
            different.push(word);
        }
    }
    different.join(" | ")
}

/// A text on one line, cut after so many characters.
fn one_line(text: &str, most: usize) -> String {
    // Only a beginning is looked at: a description may be as long as the schema.
    let begin: String = text.chars().take(4 * most).collect();
    let words: Vec<&str> = begin.split_whitespace().collect();
    gatehouse_types::shown::line(&words.join(" "), most)
}

#[cfg(test)]
mod tests;
