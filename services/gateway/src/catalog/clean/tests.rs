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
        (json!({"a": 1, "anthropic/maxResultSizeChars": 5}), json!({"a": 1, "anthropic/maxResultSizeChars": 101_000})),
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
        let definition =
            json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": output, "description": description});
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
    for annotations in [json!(null), json!("x"), json!({"readOnlyHint": "yes", "title": 5, "destructiveHint": null})] {
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
