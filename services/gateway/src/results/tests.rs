use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn processed(result: &Value) -> Value {
    processed_at(result, Known::ALL)
}

fn processed_at(result: &Value, known: Known) -> Value {
    let body = Bytes::from(result.to_string());
    joined(&for_engine(&body, known).unwrap())
}

fn joined(output: &Output) -> Value {
    serde_json::from_slice(&output.pieces.concat()).unwrap()
}

#[test]
fn a_structured_result_that_a_text_block_already_holds_is_not_repeated() {
    for text in [
        r#"{"a":1,"b":[2.50]}"#,
        "{\n  \"b\": [2.5],\n  \"a\": 1.0\n}",
        "```json\n{\"a\":1,\"b\":[2.5]}\n```",
        "```\n{\"a\":1,\"b\":[2.5]}```",
    ] {
        let block = json!({"type": "text", "text": text, "annotations": {"priority": 1}});
        let result = json!({"content": [block], "structuredContent": {"a": 1, "b": [2.5]}});
        assert_eq!(processed(&result), json!({"content": [block]}), "{text}");
    }
}

#[test]
fn a_structured_result_that_no_text_block_holds_is_appended_as_text() {
    for text in ["{\"a\":2}", "a is 1", "see: {\"a\":1}", "{\"a\":1,\"c\":0}", "[1]"] {
        let result = json!({"content": [{"type": "text", "text": text}], "structuredContent": {"a": 1}});
        let appended = json!({"type": "text", "text": "{\"a\":1}"});
        assert_eq!(processed(&result), json!({"content": [{"type": "text", "text": text}, appended]}));
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
    let output = for_engine(&body, Known::ALL).unwrap();
    let joined = String::from_utf8(output.pieces.concat()).unwrap();
    insta::assert_snapshot!(joined, @r#"{"content":[{"type":"text","text":"\u0061","n":1e3},{"type":"image","data":"AA==","mimeType":"image/png"}],"x":1.0,"_meta":{"k":12345678901234567890}}"#);
}

#[test]
fn a_large_block_is_shared_with_the_answer_and_not_copied() {
    let result = json!({"content": [{"type": "text", "text": "x".repeat(100_000)}]});
    let body = Bytes::from(result.to_string());
    let output = for_engine(&body, Known::ALL).unwrap();
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
fn an_older_engine_gets_newer_blocks_as_text() {
    let audio = json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"});
    let link = json!({"type": "resource_link", "uri": "a:b", "name": "n", "mimeType": "text/plain"});
    let result = json!({"content": [audio, link]});
    assert_eq!(processed_at(&result, Known::at("2025-06-18")), result);
    let old = processed_at(&result, Known::at("2024-11-05"));
    assert_eq!(old["content"][1], json!({"type": "text", "text": "Resource link: n a:b (text/plain)"}));
    assert_eq!(old["content"][0]["type"], "text");
}

#[test]
fn an_answer_that_is_no_tool_result_is_refused() {
    for (text, why) in [
        ("[]", NotAResult::NotAnObject),
        ("{\"content\":{}}", NotAResult::Content),
        ("{\"content\":null}", NotAResult::Content),
    ] {
        let body = Bytes::from(text);
        assert_eq!(for_engine(&body, Known::ALL), Err(why));
    }
}

#[test]
fn a_refusal_tells_the_model_that_it_is_an_error() {
    assert_eq!(
        joined(&refusal("there is no tool `x`")),
        json!({"content": [{"type": "text", "text": "Error: there is no tool `x`"}], "isError": true})
    );
}

proptest! {
    #[test]
    fn whatever_a_server_sends_an_engine_gets_a_well_formed_result(
        blocks in proptest::collection::vec(block(), 0..4), structured in block(), is_error in proptest::bool::ANY,
    ) {
        let result = processed(&json!({"content": blocks, "structuredContent": structured, "isError": is_error}));
        prop_assert_eq!(result.get("isError").is_some(), is_error);
        prop_assert_eq!(result.get("structuredContent"), None);
        for block in result["content"].as_array().unwrap() {
            prop_assert!(block["type"].is_string());
            prop_assert!(block.get("_meta").is_none_or(Value::is_object));
        }
    }
}

fn block() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!({"type": "text", "text": "{\"a\":1}", "_meta": 5})),
        Just(json!({"type": "text", "text": "x"})),
        Just(json!({"a": 1})),
        Just(json!([1, {"type": "text"}])),
        Just(json!({"type": "resource", "resource": {"uri": "a:b", "blob": "AA=="}, "annotations": null})),
    ]
}
