use std::time::{Duration, Instant};

use serde_json::{Map, json};

use super::*;

fn schema(schema: &Value) -> OutputSchema {
    let definition: Arc<str> = json!({"name": "t", "outputSchema": schema}).to_string().into();
    OutputSchema::of(&definition).unwrap()
}

/// What is told of a result. Each check has to be quick, also in a build without optimisation.
fn check(output: &Value, result: &Value) -> Vec<String> {
    let began = Instant::now();
    let told = schema(output).check(Some(&result.to_string()));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?} for {told:?}", began.elapsed());
    told
}

/// Definitions `a0` to `a<n>`, each made of references to the next; the last is a rule that only strings keep.
fn chain(length: usize, part: impl Fn(Value) -> Value) -> Value {
    let next = |k: usize| part(json!({"$ref": format!("#/$defs/a{}", k + 1)}));
    let mut definitions: Map<String, Value> = (0..length).map(|k| (format!("a{k}"), next(k))).collect();
    definitions.insert(format!("a{length}"), json!({"type": "string"}));
    json!({"$ref": "#/$defs/a0", "$defs": definitions})
}

#[test]
fn a_result_that_keeps_to_its_schema_is_not_remarked_on() {
    let output = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    assert_eq!(check(&output, &json!({"n": 1, "more": true})), [""; 0]);
    assert_eq!(check(&json!(true), &json!([1])), [""; 0]);
}

#[test]
fn a_mismatch_is_told_with_place_and_rule_and_without_values() {
    let output = json!({
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id", "name"]}},
            "state": {"enum": ["on", "off"]},
            "exact": {"const": 1},
            "list": {"prefixItems": [true], "unevaluatedItems": false}
        },
        "additionalProperties": false
    });
    let result = json!({"rows": [{"id": "secret-1", "name": "x"}, {"id": 2}], "state": "secret-2", "exact": "secret-3",
        "list": [1, "secret-4"], "extra": "secret-5"});
    let told = check(&output, &result).join("\n");
    insta::assert_snapshot!(told, @r"
    /rows/0/id is not of type integer
    /rows/1 has no `name`
    /state breaks /properties/state/enum
    /exact breaks /properties/exact/const
    /list breaks /properties/list/unevaluatedItems
    the result has 1 more than it may: `extra`
    ");
    assert!(!told.contains("secret"));
}

#[test]
fn many_mismatches_are_counted_and_a_long_place_is_cut() {
    let told = check(&json!({"items": {"type": "string"}}), &json!(vec![1; 500]));
    assert_eq!(told.len(), 11);
    assert_eq!(told[10], "490 more");
    let told = check(&json!({"additionalProperties": false}), &json!({"x".repeat(5_000): 1}));
    assert!(told[0].chars().count() <= 301);
}

#[test]
fn a_missing_structured_result_is_remarked_on() {
    let told = schema(&json!({"type": "object"})).check(None);
    assert_eq!(told, ["the tool has an `outputSchema`, but its result has no `structuredContent`"]);
}

#[test]
fn the_dialect_is_the_one_that_the_schema_names_and_2020_12_when_it_names_none() {
    let tuple = json!([1, 2]);
    let draft_07 = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}], "additionalItems": false});
    assert_eq!(check(&draft_07, &tuple).len(), 1);
    let latest = json!({"prefixItems": [{"type": "integer"}], "items": false});
    assert_eq!(check(&latest, &tuple).len(), 1);
    let named = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "integer"}], "items": false});
    assert_eq!(check(&named, &tuple).len(), 1);
    // `prefixItems` says nothing in draft-07, and a sibling of `$ref` neither.
    let older = json!({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "string"}],
        "definitions": {"a": {}}, "properties": {"x": {"$ref": "#/definitions/a", "type": "string"}}});
    assert_eq!(check(&older, &tuple), [""; 0]);
    assert_eq!(check(&older, &json!({"x": 1})), [""; 0]);
}

#[test]
fn references_within_the_schema_are_followed() {
    for output in [
        json!({"$defs": {"a b/~": {"type": "string"}}, "$ref": "#/$defs/a%20b~1~0"}),
        json!({"$defs": {"a": {"$anchor": "here", "type": "string"}}, "$ref": "#here"}),
        json!({"$id": "https://example.com/s", "$defs": {"a": {"type": "string"}}, "$ref": "https://example.com/s#/$defs/a"}),
        json!({"$id": "https://example.com/s", "$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"}),
        json!({"$defs": {"a": {"$dynamicAnchor": "node", "type": "string"}}, "$dynamicRef": "#node"}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$id": "#here", "type": "string"}},
            "allOf": [{"$ref": "#here"}]}),
    ] {
        assert_eq!(check(&output, &json!(1)), ["the result is not of type string"], "{output}");
        assert_eq!(check(&output, &json!("x")), [""; 0], "{output}");
    }
    let tree = json!({"type": "object", "properties": {"kids": {"items": {"$ref": "#"}}}, "required": ["kids"]});
    assert_eq!(check(&tree, &json!({"kids": [{"kids": []}, {}]})), ["/kids/1 has no `kids`"]);
}

#[test]
fn a_schema_that_cannot_be_used_is_remarked_on_and_nothing_is_fetched() {
    for output in [
        json!({"$ref": "https://example.com/s"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"$ref": "other.json#/a"}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"$ref": "#missing"}),
        json!({"$ref": 5}),
        json!({"$defs": {"a": {"$ref": "https://example.com/s"}}}),
        json!({"$defs": {"a": {"$id": "https://example.com/a"}}}),
        json!({"$schema": "https://example.com/dialect"}),
        json!({"$schema": 5}),
        json!({"type": "text"}),
        json!({"type": 5}),
        json!({"properties": []}),
        json!({"pattern": "("}),
        json!({"patternProperties": {"(?=a)": {}}}),
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
        json!({"enum": ["x".repeat(300_000)]}),
        json!([]),
        json!("x"),
        json!(5),
    ] {
        let told = check(&output, &json!({}));
        assert!(told.len() == 1 && told[0].starts_with("the `outputSchema` cannot be used"), "{output}: {told:?}");
        assert!(told[0].chars().count() < 400);
    }
    let deep = format!("{{\"outputSchema\":{}{{}}{}}}", "{\"not\":".repeat(126), "}".repeat(126));
    // As deep as messages may be: compiled or not, it ends.
    assert!(OutputSchema::of(&deep.into()).unwrap().check(Some("{}")).len() <= 1);
}

#[test]
fn a_tool_without_a_schema_has_none() {
    for definition in ["{}", "[]", "x", "{\"outputSchema\":null}"] {
        assert!(OutputSchema::of(&definition.into()).is_none());
    }
}

#[test]
fn a_pattern_that_needs_backtracking_lets_everything_through_and_the_rest_is_checked() {
    let output = json!({"properties": {"a": {"pattern": "^(?!x)", "maxLength": 2}, "b": {"pattern": "(a)\\1"}, "c": {"pattern": "^\\d+$"}}});
    assert_eq!(check(&output, &json!({"a": "x", "b": "b", "c": "1"})), [""; 0]);
    assert_eq!(check(&output, &json!({"a": "xxx", "c": "y"})).len(), 2);
}

#[test]
fn evil_patterns_end() {
    let text = "a".repeat(100_000) + "!";
    for pattern in [
        "^(a+)+$",
        "^(a|aa)+$",
        "(a*)*b",
        "^(\\w+\\s?)*$",
        "(.*a){30}b",
        "[a-z]{1,400}[0-9]{1,400}x",
        "^(\\w{1,30}){20}$",
    ] {
        check(&json!({"pattern": pattern}), &json!(text));
        check(&json!({"patternProperties": {pattern: false}}), &json!({&text: 1}));
        check(&json!({"propertyNames": {"pattern": pattern}}), &json!({&text: 1}));
    }
    check(&json!({"pattern": "(((a{1000}){1000}){1000}){1000}"}), &json!(text));
    // Many patterns on much text are refused before any is tried.
    let many: Vec<Value> = (0..400).map(|k| json!({"pattern": format!("(.*{k}){{20}}b")})).collect();
    let told = check(&json!({"allOf": many}), &json!(text));
    assert!(told[0].contains("take too long"), "{told:?}");
}

#[test]
fn schemas_that_double_are_refused_before_they_are_compiled() {
    for keyword in ["anyOf", "allOf", "oneOf"] {
        for length in [20, 60] {
            let told = check(&chain(length, |next| json!({keyword: [next, next]})), &json!(5));
            assert!(told[0].contains("too large"), "{told:?}");
        }
        // A small one is checked.
        let told = check(&chain(6, |next| json!({keyword: [next, next]})), &json!(5));
        assert!(told[0].starts_with("the result "), "{told:?}");
    }
    let mut output = chain(20, |next| json!({"anyOf": [next, next]}));
    output["unevaluatedProperties"] = json!(false);
    assert!(check(&output, &json!({"x": 1}))[0].contains("too large"));
    // Every part refers to every other: a circle.
    let all: Vec<Value> = (0..30).map(|k| json!({"$ref": format!("#/$defs/a{k}")})).collect();
    let definitions: Map<String, Value> = (0..30).map(|k| (format!("a{k}"), json!({"anyOf": all}))).collect();
    assert!(check(&json!({"$ref": "#/$defs/a0", "$defs": definitions}), &json!(5))[0].contains("circle"));
}

#[test]
fn long_chains_of_references_do_not_exhaust_the_stack() {
    for length in [100, 149, 200, 4_000] {
        check(&chain(length, |next| next), &json!(5));
        check(&chain(length, |next| json!({"allOf": [next]})), &json!(5));
        check(&chain(length, |next| json!({"properties": {"x": next}})), &json!({"x": {"x": 1}}));
        // The same, found from the far end.
        let mut turned = chain(length, |next| json!({"properties": {"x": next}}));
        let from_the_end: Vec<Value> = (0..length).rev().map(|k| json!({"$ref": format!("#/$defs/a{k}")})).collect();
        turned["properties"] = json!({"all": {"items": {"anyOf": from_the_end}}});
        check(&turned, &json!({"x": 1}));
    }
}

#[test]
fn recursion_that_branches_is_bounded_by_the_result() {
    let branch = |op: &str| json!({"type": "object", "properties": {"l": {"$ref": "#/$defs/e"}, "op": {"const": op}}, "required": ["l", "op"]});
    let output =
        json!({"$defs": {"e": {"anyOf": [branch("+"), branch("*"), {"type": "number"}]}}, "$ref": "#/$defs/e"});
    let nested = |depth: usize, leaf: Value| (0..depth).fold(leaf, |inner, _| json!({"op": "*", "l": inner}));
    assert_eq!(check(&output, &nested(5, json!(1))), [""; 0]);
    assert_eq!(check(&output, &nested(5, json!("x"))).len(), 1);
    for depth in [10, 13, 16, 20, 60] {
        let told = check(&output, &nested(depth, json!("x")));
        assert_eq!(told.len(), 1, "{told:?}");
    }
    assert!(check(&output, &nested(60, json!(1)))[0].contains("would take too long"));
    let unevaluated = json!({"$defs": {"e": {"anyOf": [{"properties": {"l": {"$ref": "#/$defs/e"}}}], "unevaluatedProperties": {"type": "string"}}}, "$ref": "#/$defs/e"});
    for depth in [5, 9, 12, 60] {
        check(&unevaluated, &nested(depth, json!(1)));
    }
}

#[test]
fn large_results_are_checked_or_refused_but_never_for_long() {
    let row = json!({"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}, "required": ["id"]});
    let output =
        json!({"type": "object", "properties": {"rows": {"type": "array", "items": row, "uniqueItems": true}}});
    let rows = |count: usize| json!({"rows": (0..count).map(|k| json!({"id": k, "name": "x"})).collect::<Vec<_>>()});
    assert_eq!(check(&output, &rows(5_000)), [""; 0]);
    assert!(check(&output, &rows(100_000))[0].contains("not checked"));
    let wrong = json!({"rows": vec![json!({"id": "x"}); 10_000]});
    assert!(check(&output, &wrong)[0].starts_with("it does not keep to the `outputSchema`"));
    assert!(check(&json!(true), &json!("x".repeat(9 << 20)))[0].contains("too large"));
    let names: Map<String, Value> = (0..50_000).map(|k| (format!("{k}"), json!(1))).collect();
    let dear: Vec<Value> = (0..200).map(|k| json!({"minLength": k})).collect();
    assert!(check(&json!({"propertyNames": {"allOf": dear}}), &json!(names))[0].contains("not checked"));
    assert!(schema(&json!({})).check(Some(&("[".repeat(200) + &"]".repeat(200))))[0].contains("nests too deeply"));
    assert!(schema(&json!({})).check(Some("[1e999]"))[0].contains("not checked"));
}
