//! Pure: whether a structured result keeps to the tool's `outputSchema` (MCP 2025-11-25, server/tools, "Output Schema").
//!
//! Both the schema and the result come from a server that may mean harm. So a schema is compiled only within bounds, nothing that it
//! refers to is fetched, patterns are matched in linear time, and what checking one result would cost is counted before it is checked
//! (`cost`). Nothing here fails a call: the audit is told.

mod cost;

use std::sync::{Arc, OnceLock};

use jsonschema::{
    PatternOptions, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use self::cost::Costs;
use crate::raw::{self, RawObject};

/// Largest schema that is used, in bytes.
const MOST_SCHEMA_BYTES: usize = 256 << 10;
/// Largest structured result that is checked, in bytes.
const MOST_RESULT_BYTES: usize = 8 << 20;
/// Most mismatches that are told.
const MOST_ERRORS: usize = 10;
/// Longest that one mismatch is told, in characters.
const MOST_ERROR_CHARS: usize = 300;
/// Mismatches are looked for up to this cost: on the way back, a validator walks again what it has walked.
const CHEAP: u64 = 100_000;
/// Size of one compiled pattern, in bytes.
const MOST_PATTERN_BYTES: usize = 256 << 10;

/// The `outputSchema` of a tool, compiled when it is first needed.
#[derive(Debug)]
pub struct OutputSchema {
    definition: Arc<str>,
    compiled: OnceLock<Result<Compiled, String>>,
}

#[derive(Debug)]
struct Compiled {
    validator: Validator,
    costs: Costs,
}

impl OutputSchema {
    /// The schema in a tool's definition; `None` when it has none.
    pub fn of(definition: &Arc<str>) -> Option<Self> {
        RawObject::parse(definition)?.get("outputSchema").filter(|schema| *schema != "null")?;
        Some(Self { definition: Arc::clone(definition), compiled: OnceLock::new() })
    }

    /// What is wrong with a structured result, or with the schema, in a few bounded sentences; nothing when all is well. They name
    /// places and rules, never values: those may be secret.
    pub fn check(&self, structured: Option<&str>) -> Vec<String> {
        let Some(structured) = structured else {
            return vec!["the tool has an `outputSchema`, but its result has no `structuredContent`".to_owned()];
        };
        match self.compiled.get_or_init(|| compile(&self.definition)) {
            Ok(compiled) => compiled.check(structured),
            Err(why) => vec![format!("the `outputSchema` cannot be used, so nothing was checked: {why}")],
        }
    }
}

impl Compiled {
    fn check(&self, structured: &str) -> Vec<String> {
        let not_checked = |why: &str| vec![format!("`structuredContent` was not checked: {why}")];
        if structured.len() > MOST_RESULT_BYTES {
            return not_checked("it is too large");
        }
        let Ok(value) = serde_json::from_str::<Value>(structured) else {
            return not_checked("it nests too deeply, or holds numbers or escapes that have no value");
        };
        let Some(cost) = self.costs.of(&value) else {
            return not_checked("checking it against this `outputSchema` would take too long");
        };
        if self.validator.is_valid(&value) {
            return Vec::new();
        }
        if cost > CHEAP {
            return vec!["it does not keep to the `outputSchema`; finding out where would take too long".to_owned()];
        }
        let mut errors = self.validator.iter_errors(&value);
        let mut all: Vec<String> = errors.by_ref().take(MOST_ERRORS).map(|error| told(&error)).collect();
        let more = errors.count();
        if more > 0 {
            all.push(format!("{more} more"));
        }
        all
    }
}

/// Where a result is wrong, and which rule it breaks: with names, never with values.
fn told(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().as_str();
    let place = if place.is_empty() { "the result" } else { place };
    let wrong = match error.kind() {
        Kind::Required { property: Value::String(name) } => format!("has no `{name}`"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().take(5).map(|name| format!("`{name}`")).collect();
            format!("has {} more than it may: {}", unexpected.len(), names.join(", "))
        }
        Kind::Type { kind: TypeKind::Single(kind) } => format!("is not of type {kind}"),
        _ => format!("breaks {}", error.schema_path().as_str()),
    };
    gatehouse_types::shown::line(&format!("{place} {wrong}"), MOST_ERROR_CHARS)
}

fn compile(definition: &str) -> Result<Compiled, String> {
    let definition = RawObject::parse(definition).unwrap_or_default();
    let text = definition.get("outputSchema").unwrap_or("null");
    if text.len() > MOST_SCHEMA_BYTES {
        return Err(format!("it is larger than {MOST_SCHEMA_BYTES} bytes"));
    }
    if !matches!(raw::first_byte(text), b'{' | b't' | b'f') {
        return Err("it is no schema".to_owned());
    }
    let mut schema: Value =
        serde_json::from_str(text).map_err(|_| "it nests too deeply, or is no JSON that has a value".to_owned())?;
    drop_unsupported_patterns(&mut schema);
    let costs = Costs::new(&schema).map_err(|wrong| wrong.to_string())?;
    // `format` describes more than it rules out, and its checkers are not bounded.
    let options = jsonschema::options()
        .with_pattern_options(PatternOptions::regex().size_limit(MOST_PATTERN_BYTES).dfa_size_limit(MOST_PATTERN_BYTES))
        .should_validate_formats(false)
        .without_content_media_type_support("application/json")
        .without_content_encoding_support("base64")
        .offline();
    match options.build(&schema) {
        Ok(validator) => Ok(Compiled { validator, costs }),
        Err(error) => Err(gatehouse_types::shown::line(&error.masked().to_string(), MOST_ERROR_CHARS)),
    }
}

/// Takes out each `pattern` that cannot be matched in linear time: what it would rule out is let through.
fn drop_unsupported_patterns(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(drop_unsupported_patterns),
        Value::Object(members) => {
            if members.get("pattern").and_then(Value::as_str).is_some_and(looks_around_or_back) {
                members.shift_remove("pattern");
            }
            members.values_mut().for_each(drop_unsupported_patterns);
        }
        _ => {}
    }
}

/// Whether a pattern uses what only a backtracking matcher can do: look-around or references to what matched before.
fn looks_around_or_back(pattern: &str) -> bool {
    let back = pattern.as_bytes().windows(2).any(|two| two[0] == b'\\' && matches!(two[1], b'1'..=b'9' | b'k'));
    back || ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| pattern.contains(group))
}

/// What the fragment of a reference points to within a document (RFC 6901, 6): all of it when empty, nothing for a name.
pub(crate) fn within<'a>(document: &'a Value, fragment: &str) -> Option<&'a Value> {
    document.pointer(&decoded(fragment)?)
}

/// A text with its `%xx` decoded.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
