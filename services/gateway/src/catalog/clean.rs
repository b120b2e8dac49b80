//! Pure: a server's tool definition as engines can take it.
//!
//! One bad definition costs Claude Code the whole list, and Codex too for some of them. So each definition is cleaned here:
//! a member with a wrong type is dropped where the tool works without it, and a definition that cannot be mended is left
//! out alone, with the reason. Schemas pass as they were sent, letter for letter, except for the three members at the root
//! of `inputSchema` that engines refuse (`type`, `properties`, `required`).

use std::borrow::Cow;

use super::structure;
use crate::{
    raw::{self, RawObject},
    results,
};
use gatehouse_mcp::{message::MOST_DEPTH, scan};
use gatehouse_types::{
    Settings,
    hints::{DeclaredHints, Hints},
};

/// What a definition says that Gatehouse itself needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Display name: `title`, else `annotations.title`.
    pub title: String,
    /// `description` as it was sent.
    pub description: String,
    /// Hints that the server declared.
    pub declared: DeclaredHints,
    /// `inputSchema` as it was sent.
    pub input_schema: String,
    /// `outputSchema` as it was sent, or empty.
    pub output_schema: String,
    /// `execution.taskSupport`: `forbidden` when absent or unknown.
    pub task_support: String,
}

/// How much engines are shown, in Unicode characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Of a description.
    pub description_chars: usize,
    /// Of the structure of results, after the description.
    pub structure_chars: usize,
    /// Of a result.
    pub result_chars: usize,
}

impl Bounds {
    /// Everything of a description, and no structure of results.
    pub const NONE: Self = Self { description_chars: usize::MAX, structure_chars: 0, result_chars: 0 };

    /// What the settings say.
    pub fn of(settings: &Settings) -> Self {
        Self {
            description_chars: settings.tool_description_chars as usize,
            structure_chars: settings.tool_structure_chars as usize,
            result_chars: results::shown_chars(settings),
        }
    }
}

/// Where a tool says how much of its results Claude Code shows.
const RESULT_SIZE: &str = "anthropic/maxResultSizeChars";

/// A definition that engines cannot take, in words for an admin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Not a JSON object.
    #[error("the definition is not a JSON object")]
    NotAnObject,
    /// No name.
    #[error("the definition has no name")]
    NoName,
    /// No usable input schema.
    #[error("`inputSchema` {0}")]
    InputSchema(&'static str),
}

/// Reads the facts of a definition. Members of a wrong type count as absent.
pub fn facts(definition: &str) -> Facts {
    let Some(tool) = RawObject::parse(definition) else { return Facts::default() };
    let annotations = tool.object("annotations").unwrap_or_default();
    let title = tool.string("title").or_else(|| annotations.string("title")).unwrap_or_default();
    let support = tool.object("execution").and_then(|execution| execution.string("taskSupport"));
    let support = support.filter(|support| matches!(support.as_ref(), "optional" | "required"));
    let schema = |name| tool.get(name).filter(|raw| raw::first_byte(raw) == b'{').unwrap_or_default().to_owned();
    Facts {
        title: title.into_owned(),
        description: tool.string("description").unwrap_or_default().into_owned(),
        declared: DeclaredHints {
            read_only: annotations.boolean("readOnlyHint"),
            destructive: annotations.boolean("destructiveHint"),
            idempotent: annotations.boolean("idempotentHint"),
            open_world: annotations.boolean("openWorldHint"),
        },
        input_schema: schema("inputSchema"),
        output_schema: schema("outputSchema"),
        task_support: support.map_or_else(|| "forbidden".to_owned(), Cow::into_owned),
    }
}

/// The definition for engines under its exposed name, or why there is none.
///
/// `hints` are the effective ones. The description is followed by the structure of results, each cut on its own.
pub fn clean(definition: &str, name: &str, hints: Hints, bounds: &Bounds) -> Result<String, Unusable> {
    let tool = RawObject::parse(definition).ok_or(Unusable::NotAnObject)?;
    if tool.string("name").is_none_or(|own| own.is_empty()) {
        return Err(Unusable::NoName);
    }
    let schema = tool.get("inputSchema").ok_or(Unusable::InputSchema("is missing"))?;
    let mut members: Vec<(Cow<'_, str>, Cow<'_, str>)> = vec![("name".into(), quoted(name).into())];
    if let Some(title) = tool.string("title") {
        members.push(("title".into(), quoted(&title).into()));
    }
    if let Some(description) = description(&tool, bounds) {
        members.push(("description".into(), quoted(&description).into()));
    }
    members.push(("inputSchema".into(), input_schema(schema)?));
    members.push(("annotations".into(), annotations(&tool, hints).into()));
    for (key, value) in &tool.0 {
        let kept = match key.as_ref() {
            "name" | "title" | "description" | "inputSchema" | "annotations" | "outputSchema" | "execution"
            | "_meta" => false,
            "icons" => well_formed_icons(value),
            _ => true,
        };
        if kept && !members.iter().any(|(name, _)| name == key) {
            members.push((key.clone(), (*value).into()));
        }
    }
    members.push(("_meta".into(), meta(&tool, bounds).into()));
    Ok(raw::join(members.iter().map(|(key, value)| (key.as_ref(), value.as_ref()))))
}

/// The description, and what the tool's results look like.
fn description<'a>(tool: &RawObject<'a>, bounds: &Bounds) -> Option<Cow<'a, str>> {
    let own = tool.string("description");
    let summary = tool.get("outputSchema").and_then(|schema| structure::summary(schema, bounds.structure_chars));
    let cut = |own: Cow<'a, str>| match cut(&own, bounds.description_chars) {
        Cow::Borrowed(whole) if whole.len() == own.len() => own,
        shorter => Cow::Owned(shorter.into_owned()),
    };
    match (own.map(cut), summary) {
        (Some(own), Some(summary)) if !own.is_empty() => Some(format!("{own}\n\n{summary}").into()),
        (_, Some(summary)) => Some(summary.into()),
        (own, None) => own,
    }
}

/// The server's own `_meta`, and how much of a result Claude Code shows.
fn meta(tool: &RawObject<'_>, bounds: &Bounds) -> String {
    let own = tool.object("_meta").unwrap_or_default();
    let shown = bounds.result_chars.to_string();
    let kept = own.0.iter().filter(|(key, _)| key != RESULT_SIZE).map(|(key, value)| (key.as_ref(), *value));
    raw::join(kept.chain([(RESULT_SIZE, shown.as_str())]))
}

/// At most `most` characters; a cut text ends in `…`.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most || text.char_indices().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let end = text.char_indices().nth(most.saturating_sub(1)).map_or(0, |(place, _)| place);
    Cow::Owned(format!("{}…", &text[..end]))
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    raw::push_string(&mut out, text);
    out
}

/// The schema as it was sent; with `type` added, and `properties: null` or a `required` that is no list taken out.
fn input_schema(schema: &str) -> Result<Cow<'_, str>, Unusable> {
    let members = RawObject::parse(schema).ok_or(Unusable::InputSchema("is not a JSON object"))?;
    let kind = members.get("type");
    if kind.is_some_and(|kind| kind != "\"object\"") {
        return Err(Unusable::InputSchema("has a `type` other than \"object\""));
    }
    let properties = members.get("properties").map(raw::first_byte);
    if properties.is_some_and(|first| first != b'{' && first != b'n') {
        return Err(Unusable::InputSchema("has `properties` that are not an object"));
    }
    let drop_properties = properties == Some(b'n');
    let drop_required = members.get("required").is_some_and(|raw| raw::first_byte(raw) != b'[');
    if kind.is_some() && !drop_properties && !drop_required {
        return Ok(Cow::Borrowed(schema));
    }
    let added = kind.is_none().then_some(("type", "\"object\""));
    let kept = members.0.iter().filter(|(key, _)| match key.as_ref() {
        "properties" => !drop_properties,
        "required" => !drop_required,
        _ => true,
    });
    Ok(Cow::Owned(raw::join(added.into_iter().chain(kept.map(|(key, value)| (key.as_ref(), *value))))))
}

/// The effective hints, the title, and whatever else the server put there.
fn annotations(tool: &RawObject<'_>, hints: Hints) -> String {
    let declared = tool.object("annotations").unwrap_or_default();
    let title = declared.string("title").map(|title| quoted(&title));
    let own = ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    let hints = [
        ("readOnlyHint", hints.read_only),
        ("destructiveHint", hints.destructive),
        ("idempotentHint", hints.idempotent),
        ("openWorldHint", hints.open_world),
    ];
    let title = title.iter().map(|title| ("title", title.as_str()));
    let hints = hints.iter().map(|(name, value)| (*name, if *value { "true" } else { "false" }));
    let rest = declared.0.iter().filter(|(key, _)| !own.contains(&key.as_ref()));
    raw::join(title.chain(hints).chain(rest.map(|(key, value)| (key.as_ref(), *value))))
}

fn well_formed_icons(icons: &str) -> bool {
    let Ok(list) = scan::items(icons, MOST_DEPTH) else { return false };
    list.into_iter().all(|icon| {
        let Some(icon) = RawObject::parse(icon) else { return false };
        let text_or_absent = |name| icon.get(name).is_none_or(|_| icon.has_string(name));
        let sizes = icon.get("sizes").is_none_or(|sizes| serde_json::from_str::<Vec<String>>(sizes).is_ok());
        icon.string("src").is_some() && text_or_absent("mimeType") && text_or_absent("theme") && sizes
    })
}

#[cfg(test)]
mod tests;
