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
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const BOUNDS: Bounds = Bounds { description_chars: 2_000, structure_chars: 1_500, result_chars: 101_000 };
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: false, open_world: true };

    fn cleaned(definition: &Value) -> Value {
        let text = clean(&definition.to_string(), "s__t", HINTS, &BOUNDS).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_good_definition_keeps_its_schema_letter_for_letter_and_its_unknown_members() {
        let definition = r##"{"name":"t","x-own":{"n":1.0},"inputSchema":{"$schema":"s", "type":"object","properties":{"a":{"$ref":"#/$defs/a","maximum":1e3}},"$defs":{"a":{}}},"_meta":{"k":1}}"##;
        let text = clean(definition, "s__t", HINTS, &BOUNDS).unwrap();
        insta::assert_snapshot!(text, @r##"{"name":"s__t","inputSchema":{"$schema":"s", "type":"object","properties":{"a":{"$ref":"#/$defs/a","maximum":1e3}},"$defs":{"a":{}}},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":false,"openWorldHint":true},"x-own":{"n":1.0},"_meta":{"k":1,"anthropic/maxResultSizeChars":101000}}"##);
    }

    #[test]
    fn members_of_a_wrong_type_are_dropped_alone() {
        for (member, value) in [
            ("description", json!(null)),
            ("description", json!(5)),
            ("title", json!({})),
            ("outputSchema", json!("x")),
            ("outputSchema", json!({"type": "object"})),
            ("icons", json!({"src": "x"})),
            ("icons", json!([{"source": "x"}])),
            ("icons", json!([{"src": "x", "sizes": "48x48"}])),
            ("execution", json!({"taskSupport": "sometimes"})),
        ] {
            let mut definition = json!({"name": "t", "inputSchema": {"type": "object"}});
            definition[member] = value;
            assert_eq!(cleaned(&definition).get(member), None, "{definition}");
        }
    }

    #[test]
    fn claude_code_is_told_how_much_of_a_result_to_show_whatever_the_server_says() {
        for (meta, expected) in [
            (
                json!({"a": 1, "anthropic/maxResultSizeChars": 5}),
                json!({"a": 1, "anthropic/maxResultSizeChars": 101_000}),
            ),
            (json!([]), json!({"anthropic/maxResultSizeChars": 101_000})),
            (json!(null), json!({"anthropic/maxResultSizeChars": 101_000})),
        ] {
            let definition = json!({"name": "t", "inputSchema": {"type": "object"}, "_meta": meta});
            assert_eq!(cleaned(&definition)["_meta"], expected);
        }
        let bounds = Bounds::of(&Settings { result_text_chars: 10_000_000, ..Settings::default() });
        assert_eq!(bounds.result_chars, 500_000);
    }

    #[test]
    fn the_structure_of_results_follows_the_description_and_each_is_cut_on_its_own() {
        let output = json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
        let described = |description: Value, bounds: &Bounds| {
            let definition = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": output, "description": description});
            let text = clean(&definition.to_string(), "s__t", HINTS, bounds).unwrap();
            serde_json::from_str::<Value>(&text).unwrap()["description"].as_str().map(str::to_owned)
        };
        let structure = "Returns JSON:\n- sum: number";
        assert_eq!(described(json!("Adds."), &BOUNDS), Some(format!("Adds.\n\n{structure}")));
        for none in [json!(""), json!(null), json!(5)] {
            assert_eq!(described(none, &BOUNDS).as_deref(), Some(structure));
        }
        let tight = Bounds { description_chars: 3, ..BOUNDS };
        assert_eq!(described(json!("Adds."), &tight), Some(format!("Ad…\n\n{structure}")));
        let without = Bounds { structure_chars: 5, ..BOUNDS };
        assert_eq!(described(json!("Adds."), &without).as_deref(), Some("Adds."));
    }

    #[test]
    fn wrong_annotations_give_way_to_the_effective_hints() {
        for annotations in
            [json!(null), json!("x"), json!({"readOnlyHint": "yes", "title": 5, "destructiveHint": null})]
        {
            let definition = json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": annotations});
            let expected =
                json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": false, "openWorldHint": true});
            assert_eq!(cleaned(&definition)["annotations"], expected);
        }
    }

    #[test]
    fn an_input_schema_is_mended_at_its_root_only() {
        for (schema, expected) in [
            (json!({}), json!({"type": "object"})),
            (json!({"properties": {"a": {}}}), json!({"type": "object", "properties": {"a": {}}})),
            (json!({"type": "object", "properties": null}), json!({"type": "object"})),
            (json!({"type": "object", "required": "a"}), json!({"type": "object"})),
            (json!({"type": "object", "required": null, "anyOf": []}), json!({"type": "object", "anyOf": []})),
        ] {
            assert_eq!(cleaned(&json!({"name": "t", "inputSchema": schema}))["inputSchema"], expected);
        }
    }

    #[test]
    fn what_cannot_be_mended_says_why() {
        for (definition, why) in [
            (json!([]), Unusable::NotAnObject),
            (json!({"inputSchema": {"type": "object"}}), Unusable::NoName),
            (json!({"name": "", "inputSchema": {"type": "object"}}), Unusable::NoName),
            (json!({"name": "t"}), Unusable::InputSchema("is missing")),
            (json!({"name": "t", "inputSchema": null}), Unusable::InputSchema("is not a JSON object")),
            (
                json!({"name": "t", "inputSchema": {"type": "array"}}),
                Unusable::InputSchema("has a `type` other than \"object\""),
            ),
            (
                json!({"name": "t", "inputSchema": {"type": null}}),
                Unusable::InputSchema("has a `type` other than \"object\""),
            ),
            (
                json!({"name": "t", "inputSchema": {"type": "object", "properties": []}}),
                Unusable::InputSchema("has `properties` that are not an object"),
            ),
        ] {
            assert_eq!(clean(&definition.to_string(), "s__t", HINTS, &BOUNDS), Err(why));
        }
    }

    #[test]
    fn a_long_description_is_cut_at_a_character() {
        assert_eq!(cut("añb", 3), "añb");
        assert_eq!(cut("añbc", 3), "añ…");
    }

    #[test]
    fn facts_count_only_well_typed_members() {
        let facts = facts(
            r#"{"name":"t","title":5,"annotations":{"title":"T","readOnlyHint":1,"openWorldHint":false},"execution":{"taskSupport":"required"}}"#,
        );
        assert_eq!((facts.title.as_str(), facts.task_support.as_str()), ("T", "required"));
        assert_eq!(facts.declared, DeclaredHints { open_world: Some(false), ..DeclaredHints::default() });
    }

    proptest! {
        #[test]
        fn whatever_a_server_sends_the_cleaned_definition_is_one_that_engines_take(
            title in value(), description in value(), annotations in value(), icons in value(), meta in value(),
            properties in value(), required in value(), kind in value(),
        ) {
            let schema = json!({"type": kind, "properties": properties, "required": required});
            let definition = json!({"name": "t", "title": title, "description": description, "annotations": annotations,
                "icons": icons, "_meta": meta, "inputSchema": schema});
            if let Ok(text) = clean(&definition.to_string(), "s__t", HINTS, &Bounds { description_chars: 50, ..BOUNDS }) {
                let tool: Value = serde_json::from_str(&text).unwrap();
                prop_assert!(tool["inputSchema"]["type"] == "object");
                prop_assert!(tool["inputSchema"].get("properties").is_none_or(Value::is_object));
                prop_assert!(tool["inputSchema"].get("required").is_none_or(Value::is_array));
                prop_assert!(tool.get("description").is_none_or(Value::is_string));
                prop_assert!(tool.get("title").is_none_or(Value::is_string));
                prop_assert!(tool.get("_meta").is_none_or(Value::is_object));
                prop_assert!(tool["annotations"]["readOnlyHint"].is_boolean());
                prop_assert!(tool["annotations"].get("title").is_none_or(Value::is_string));
            }
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            Just(json!("object")),
            Just(json!(["a"])),
            Just(json!([{"src": "x"}])),
            Just(json!({"title": 3, "a": {}})),
            Just(json!(1.5)),
            Just(json!(true)),
        ]
    }
}
