use serde_json::{Value, json};

use super::*;
use crate::files::Place;

mod bounds;
mod files;
mod fuzz;

const LIMITS: Limits = Limits { text_chars: 100_000, text_bytes: usize::MAX, media_bytes: 5_000_000 };
const CONTEXT: Context<'_> = Context { known: Known::ALL, locale: Locale::En, limits: LIMITS, schema: None };

fn processed(result: &Value) -> Value {
    joined(&planned(result, &CONTEXT).finish(&[]))
}

fn planned(result: &Value, cx: &Context<'_>) -> Plan {
    plan(&Bytes::from(result.to_string()), cx).unwrap()
}

fn joined(output: &Output) -> Value {
    serde_json::from_slice(&output.pieces.concat()).unwrap()
}

/// The text of each text block.
fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap().iter().filter(|block| block["type"] == "text");
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

/// Files as they would be saved in the workspace.
fn saved(plan: &Plan) -> Vec<Saved> {
    let saved = |save: &FileToSave| Saved {
        path: format!(".agent/mcp/call/{}", save.place),
        size: save.content.len() as u64,
        media_type: save.media_type.clone(),
        at: Place::Workspace,
        problem: None,
    };
    plan.saves.iter().map(saved).collect()
}

#[test]
fn a_structured_result_that_a_text_block_already_holds_is_not_repeated() {
    for text in [
        r#"{"a":1,"b":[2.50]}"#,
        "{\n  \"b\": [2.5],\n  \"a\": 1.0\n}",
        "```json\n{\"a\":1,\"b\":[2.5]}\n```",
        "```\n{\"a\":1,\"b\":[2.5]}```",
        "\n````JSON\n{\n  \"a\": 1,\n  \"b\": [25e-1]\n}\n````\n",
        "~~~json\n{\"a\":1,\"b\":[2.5]}\n~~~",
    ] {
        let block = json!({"type": "text", "text": text, "annotations": {"priority": 1}});
        let result = json!({"content": [block], "structuredContent": {"a": 1, "b": [2.5]}});
        assert_eq!(processed(&result), json!({"content": [block]}), "{text}");
    }
}

#[test]
fn a_structured_result_that_no_text_block_holds_is_appended_as_text() {
    for text in [
        "{\"a\":2}",
        "a is 1",
        "```json\n{\"a\":2}\n```",
        "```python\n{\"a\":1}\n```",
        "```json\n{\"a\":1}\n```\nmore",
        "``\n{\"a\":1}\n``",
        "see: {\"a\":1}",
        "{\"a\":1,\"c\":0}",
        "[1]",
    ] {
        let result = json!({"content": [{"type": "text", "text": text}], "structuredContent": {"a": 1}});
        let appended = json!({"type": "text", "text": "{\"a\":1}"});
        assert_eq!(processed(&result), json!({"content": [{"type": "text", "text": text}, appended]}));
    }
}

#[test]
fn equal_json_is_equal_by_its_values() {
    for (text, structured, same) in [
        ("[9007199254740993]", "[9007199254740993]", true),
        ("[9007199254740993]", "[9007199254740992]", false),
        ("[9007199254740993]", "[9007199254740992.0]", false),
        ("[-9223372036854775808]", "[-9223372036854775808.0]", false),
        ("[18446744073709551615]", "[18446744073709551614]", false),
        ("[1e400]", "[1e401]", false),
        ("[1e2]", "[100]", true),
        ("[0]", "[-0.0]", true),
        ("[\"\\u00e9\"]", "[\"é\"]", true),
        ("{\"a\":[1,{}],\"b\":null}", "{ \"b\": null, \"a\": [1, {}] }", true),
        ("{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false),
        ("5", "5.0", true),
        ("true", "true", true),
        ("\"x\"", "\"x\"", true),
        ("x", "\"x\"", false),
    ] {
        assert_eq!(Structured::new(structured).is_in(text), same, "{text} {structured}");
        assert_eq!(Structured::new(text).is_in(structured), same, "{structured} {text}");
    }
}

#[test]
fn a_structured_result_alone_becomes_text() {
    for result in [json!({"structuredContent": {"a": 1}}), json!({"content": [], "structuredContent": {"a": 1}})] {
        assert_eq!(processed(&result), json!({"content": [{"type": "text", "text": "{\"a\":1}"}]}));
    }
}

#[test]
fn an_error_is_marked_and_its_text_says_so_once() {
    for (text, expected) in
        [("no such order", "Error: no such order"), ("error -32602: x", "error -32602: x"), ("", "Error: ")]
    {
        let result =
            json!({"content": [{"type": "text", "text": text}, {"type": "text", "text": "more"}], "isError": true});
        let content = json!([{"type": "text", "text": expected}, {"type": "text", "text": "more"}]);
        assert_eq!(processed(&result), json!({"content": content, "isError": true}));
    }
    let silent = processed(&json!({"content": [], "isError": true}));
    assert_eq!(silent["content"][0]["text"], "Error: the tool failed and said nothing about it.");
    let structured = processed(&json!({"structuredContent": {"a": 1}, "isError": true}));
    assert_eq!(structured["content"], json!([{"type": "text", "text": "Error: {\"a\":1}"}]));
}

#[test]
fn blocks_and_unknown_members_pass_byte_for_byte() {
    let text = r#"{"x":1.0,"content":[{"type":"text","text":"\u0061","n":1e3},{"type":"image","data":"AA==","mimeType":"image/png"}],"_meta":{"k":12345678901234567890}}"#;
    let body = Bytes::from(text);
    let output = plan(&body, &CONTEXT).unwrap().finish(&[]);
    let joined = String::from_utf8(output.pieces.concat()).unwrap();
    insta::assert_snapshot!(joined, @r#"{"content":[{"type":"text","text":"\u0061","n":1e3},{"type":"image","data":"AA==","mimeType":"image/png"}],"x":1.0,"_meta":{"k":12345678901234567890}}"#);
}

#[test]
fn a_large_block_is_shared_with_the_answer_and_not_copied() {
    let result = json!({"content": [{"type": "text", "text": "x".repeat(100_000)}]});
    let body = Bytes::from(result.to_string());
    let output = plan(&body, &CONTEXT).unwrap().finish(&[]);
    assert!(output.pieces.iter().any(|piece| piece.len() > 100_000 && body.as_ptr_range().contains(&piece.as_ptr())));
    assert_eq!(joined(&output), result);
}

#[test]
fn a_block_that_would_cost_the_engine_the_whole_result_becomes_text() {
    for block in [
        json!({"type": "video", "data": "x"}),
        json!({"type": "text"}),
        json!({"type": "image", "data": 5, "mimeType": "image/png"}),
        json!({"type": "resource", "resource": {"uri": "a:b"}}),
        json!("plain"),
        json!(null),
    ] {
        let result = processed(&json!({"content": [block]}));
        assert_eq!(result, json!({"content": [{"type": "text", "text": block.to_string()}]}));
    }
}

#[test]
fn annotations_that_a_client_would_refuse_are_left_out() {
    for (annotations, stays) in [
        (
            json!({"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z", "x": 1}),
            true,
        ),
        (json!({"audience": "bogus"}), false),
        (json!({"audience": ["model"]}), false),
        (json!({"priority": 99}), false),
        (json!({"priority": "high"}), false),
        (json!({"lastModified": 5}), false),
        (json!({"lastModified": "yesterday"}), false),
        (json!([]), false),
    ] {
        let block = json!({"type": "text", "text": "a", "annotations": annotations});
        let kept = processed(&json!({"content": [block]}))["content"][0].take();
        assert_eq!(kept.get("annotations").is_some(), stays, "{annotations}");
        assert_eq!(kept["text"], "a");
    }
}

#[test]
fn an_answer_that_is_no_tool_result_is_refused() {
    for (text, why) in [
        ("[]", NotAResult::NotAnObject),
        ("{\"content\":{}}", NotAResult::Content),
        ("{\"content\":null}", NotAResult::Content),
    ] {
        let body = Bytes::from(text);
        assert_eq!(plan(&body, &CONTEXT).unwrap_err(), why);
    }
}

#[test]
fn a_refusal_tells_the_model_that_it_is_an_error() {
    assert_eq!(
        joined(&refusal("there is no tool `x`", Locale::En)),
        json!({"content": [{"type": "text", "text": "Error: there is no tool `x`"}], "isError": true})
    );
}
