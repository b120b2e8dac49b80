use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn told(schema: &Value) -> String {
    summary(&schema.to_string(), 1_500).unwrap_or_default()
}

#[test]
fn the_structure_of_real_tools_is_told_in_a_few_lines() {
    // server-everything, `get-structured-content`.
    let weather = r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"temperature":{"type":"number","description":"Temperature in celsius"},"conditions":{"type":"string","description":"Weather conditions description"},"humidity":{"type":"number","description":"Humidity percentage"}},"required":["temperature","conditions","humidity"],"additionalProperties":false}"#;
    insta::assert_snapshot!(summary(weather, 1_500).unwrap(), @r"
    Returns JSON:
    - temperature: number – Temperature in celsius
    - conditions: string – Weather conditions description
    - humidity: number – Humidity percentage
    ");
    // server-filesystem, `read_media_file`.
    let media = r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"content":{"type":"array","items":{"anyOf":[{"type":"object","properties":{"type":{"type":"string","enum":["image","audio"]},"data":{"type":"string"},"mimeType":{"type":"string"}},"required":["type","data","mimeType"],"additionalProperties":false},{"type":"object","properties":{"type":{"type":"string","const":"resource"},"resource":{"type":"object","properties":{"uri":{"type":"string"},"mimeType":{"type":"string"},"blob":{"type":"string"}},"required":["uri","blob"],"additionalProperties":false}},"required":["type","resource"],"additionalProperties":false}]}}},"required":["content"],"additionalProperties":false}"#;
    insta::assert_snapshot!(summary(media, 1_500).unwrap(), @r#"
    Returns JSON:
    - content: array of object
      - either:
        - type: "image" | "audio"
        - data: string
        - mimeType: string
      - or:
        - type: "resource"
        - resource: object
          - uri: string
          - mimeType?: string
          - blob: string
    "#);
}

#[test]
fn names_types_descriptions_nesting_and_what_may_be_missing_are_told() {
    let schema = json!({
        "type": "object",
        "properties": {
            "orders": {"type": "array", "description": "All\n  orders.", "items": {"type": "object", "properties": {
                "id": {"type": "integer"},
                "state": {"enum": ["open", "paid", null]},
                "at": {"type": "string", "format": "date-time", "title": "When"}
            }, "required": ["id"]}},
            "next": {"type": ["string", "null"]},
            "kind": {"const": "list"},
            "price": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "any": {},
            "yes": true,
            "more": {"additionalProperties": {"type": "integer"}},
            "pair": {"prefixItems": [{"type": "string"}, {"type": "number", "description": "The second."}]},
            "both": {"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}, "required": ["b"]}]}
        },
        "required": ["orders", "next"]
    });
    insta::assert_snapshot!(told(&schema), @r#"
    Returns JSON:
    - orders: array of object – All orders.
      - id: integer
      - state?: "open" | "paid" | null
      - at?: string (date-time) – When
    - next: string | null
    - kind?: "list"
    - price?: number | null
    - any?: any
    - yes?: any
    - more?: object
      - (any name): integer
    - pair?: array
      - [0]: string
      - [1]: number – The second.
    - both?: object
      - a?: string
      - b: any
    "#);
}

#[test]
fn references_are_followed_and_circles_end() {
    let schema = json!({
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {"type": "object", "properties": {
                "name": {"$ref": "#/$defs/Name", "description": "Its own."},
                "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                "parent": {"$ref": "#/$defs/Node"},
                "gone": {"$ref": "https://example.com/x"},
                "loop": {"$ref": "#/$defs/Loop"}
            }, "required": ["name"]},
            "Name": {"type": "string", "description": "A name."},
            "Loop": {"$ref": "#/$defs/Loop"}
        }
    });
    insta::assert_snapshot!(told(&schema), @r"
    Returns JSON:
    - name: string – Its own.
    - kids?: array of object (as above)
    - parent?: object (as above)
    - gone?: any
    - loop?: any
    ");
}

#[test]
fn alternatives_are_told_one_after_the_other() {
    let schema = json!({"oneOf": [
        {"type": "object", "properties": {"ok": {"const": true}}, "required": ["ok"]},
        {"type": "object", "properties": {"error": {"type": "string"}}}
    ]});
    insta::assert_snapshot!(told(&schema), @r"
    Returns JSON:
    - either:
      - ok: true
    - or:
      - error?: string
    ");
    let wrapped =
        json!({"anyOf": [{"type": "array", "items": {"properties": {"a": {"type": "string"}}}}, {"type": "null"}]});
    insta::assert_snapshot!(told(&wrapped), @r"
    Returns JSON: array of object | null
    - a?: string
    ");
}

#[test]
fn a_schema_that_tells_nothing_is_not_described() {
    for schema in
        ["{}", "{\"type\":\"object\"}", "true", "[]", "5", "null", "{", "{\"properties\":[]}", "{\"$ref\":\"#\"}"]
    {
        assert_eq!(summary(schema, 1_500), None, "{schema}");
    }
    assert_eq!(told(&json!({"type": "string"})), "Returns JSON: string");
    assert_eq!(summary(&json!({"description": "x".repeat(300_000)}).to_string(), 1_500), None);
}

#[test]
fn a_long_structure_is_cut_at_the_end_of_a_line_and_says_so() {
    let members: Map<String, Value> = (0..200).map(|k| (format!("名{k}"), json!({"type": "string"}))).collect();
    let text = summary(&json!({"properties": members}).to_string(), 100).unwrap();
    insta::assert_snapshot!(text, @r"
    Returns JSON:
    - 名0?: string
    - 名1?: string
    - 名2?: string
    - 名3?: string
    - 名4?: string
    - 名5?: string
    …
    ");
    assert!(text.chars().count() <= 100 && text.len() > 100);
    let wide = json!({"properties": {"a": {"description": "x".repeat(5_000)}}});
    assert!(told(&wide).chars().count() < 250);
    assert_eq!(summary(&wide.to_string(), 30), None);
}

#[test]
fn a_schema_that_doubles_is_described_at_once() {
    for keyword in ["anyOf", "allOf", "oneOf"] {
        let next = |k: usize| json!({keyword: vec![json!({"$ref": format!("#/$defs/a{}", k + 1)}); 50]});
        let definitions: Map<String, Value> = (0..60).map(|k| (format!("a{k}"), next(k))).collect();
        let began = std::time::Instant::now();
        told(&json!({"properties": {"x": {"$ref": "#/$defs/a0"}, "y": {"$ref": "#/$defs/a1"}}, "$defs": definitions}));
        assert!(began.elapsed().as_secs() < 5, "{keyword}");
    }
}

#[test]
fn nothing_in_a_schema_can_hide_from_a_reader() {
    let schema = json!({"properties": {"a\u{202e}\nb": {"description": "c\u{200b}\u{0}d"}}});
    assert_eq!(told(&schema), "Returns JSON:\n- a\u{fffd} b?: any – c\u{fffd}\u{fffd}d");
}

fn anything() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("properties"),
        Just("items"),
        Just("anyOf"),
        Just("allOf"),
        Just("$ref"),
        Just("type"),
        Just("enum"),
        Just("required"),
        Just("prefixItems"),
        Just("additionalProperties"),
        Just("description"),
        Just("a"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!("object")),
        Just(json!("#")),
        Just(json!("#/properties/a")),
        Just(json!("array")),
        Just(json!({})),
        any::<bool>().prop_map(Value::from),
        ".{0,9}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_the_schema_the_summary_keeps_within_its_bound(schema in anything(), most in 0_usize..400) {
        if let Some(text) = summary(&schema.to_string(), most) {
            prop_assert!(text.chars().count() <= most);
        }
    }
}
