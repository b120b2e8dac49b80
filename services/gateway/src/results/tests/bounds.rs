//! What is too long is cut, and the whole of it is saved.

use gatehouse_types::Settings;

use super::*;
use crate::registry::session::EngineKind;

fn limited(chars: usize) -> Context<'static> {
    Context { limits: Limits { text_chars: chars, ..LIMITS }, ..CONTEXT }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn content(save: &FileToSave) -> &str {
    std::str::from_utf8(&save.content).unwrap()
}

#[test]
fn text_within_the_limit_passes_whole_whatever_its_bytes() {
    let text = json!({"content": [text(&"门".repeat(99_999)), text("é"), {"type": "image", "data": "AA==", "mimeType": "image/png"}]});
    let plan = planned(&text, &CONTEXT);
    assert!(plan.saves.is_empty());
    assert_eq!(joined(&plan.finish(&[])), text);
}

#[test]
fn one_character_too_many_is_too_long() {
    let whole = "门".repeat(100_001);
    let plan = planned(&json!({"content": [text(&whole)]}), &CONTEXT);
    assert_eq!(content(&plan.saves[0]), whole);
    assert_eq!((plan.saves[0].media_type.as_str(), plan.saves[0].place), ("text/plain", 0));
    let saved = saved(&plan);
    let result = joined(&plan.finish(&saved));
    assert_eq!(texts(&result)[0], "门".repeat(100_000));
    insta::assert_snapshot!(texts(&result)[1], @"[The text is cut here: the first 100000 of its 100001 characters are shown. Whole text: text/plain, 300.0 KB. Saved in the workspace as .agent/mcp/call/0]");
}

#[test]
fn text_is_cut_at_the_end_of_a_line_when_there_is_one_near_the_limit() {
    for (text_before, kept) in
        [("x".repeat(95) + "\n" + &"y".repeat(50), 96), ("x".repeat(50) + "\n" + &"y".repeat(90), 100)]
    {
        let plan = planned(&json!({"content": [text(&text_before)]}), &limited(100));
        let result = joined(&plan.finish(&[]));
        assert_eq!(texts(&result)[0], &text_before[..kept]);
        assert!(texts(&result)[1].contains(&format!("first {kept} of")));
    }
}

#[test]
fn all_texts_count_together_and_go_into_one_file_while_other_blocks_stay_in_their_places() {
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let blocks = [text(&"a".repeat(60)), image.clone(), text(&"b".repeat(60)), text(&"c".repeat(60)), image.clone()];
    let plan = planned(&json!({"content": blocks, "structuredContent": {"d": 1}}), &limited(100));
    assert_eq!(plan.saves.len(), 1);
    let whole = format!("{}\n{}\n{}\n{{\"d\":1}}", "a".repeat(60), "b".repeat(60), "c".repeat(60));
    assert_eq!(content(&plan.saves[0]), whole);
    let saved = saved(&plan);
    let result = joined(&plan.finish(&saved));
    let blocks = result["content"].as_array().unwrap();
    assert_eq!(blocks.len(), 5);
    assert_eq!((&blocks[1], &blocks[4]), (&image, &image));
    assert_eq!((texts(&result)[0].len(), texts(&result)[1].len()), (60, 40));
    assert!(texts(&result)[2].contains("first 100 of its 187 characters"));
}

#[test]
fn a_text_that_is_json_is_saved_as_json_and_a_structured_result_alone_too() {
    let json = json!({"a": "x".repeat(200)});
    let object = json.to_string();
    for result in [
        json!({"structuredContent": json}),
        json!({"content": [text(&object)], "structuredContent": json}),
        json!({"content": [text(&object)]}),
    ] {
        let plan = planned(&result, &limited(100));
        assert_eq!((plan.saves[0].media_type.as_str(), content(&plan.saves[0])), ("application/json", object.as_str()));
    }
    let broken = planned(&json!({"content": [text(&object[1..])]}), &limited(100));
    assert_eq!(broken.saves[0].media_type, "text/plain");
}

#[test]
fn a_cut_block_keeps_its_other_members_and_an_escape_is_never_cut() {
    let body = Bytes::from(format!(
        r#"{{"content":[{{"type":"text","annotations":{{"priority":1}},"text":"{}"}}]}}"#,
        r"\ud83d\ude00\u00e9\n".repeat(60)
    ));
    let plan = plan(&body, &limited(100)).unwrap();
    assert_eq!(content(&plan.saves[0]), "😀é\n".repeat(60));
    let result = joined(&plan.finish(&[]));
    assert_eq!(
        result["content"][0],
        json!({"type": "text", "annotations": {"priority": 1}, "text": "😀é\n".repeat(33)})
    );
}

#[test]
fn an_error_that_is_cut_still_says_so() {
    let plan = planned(&json!({"content": [text(&"a".repeat(200))], "isError": true}), &limited(100));
    let result = joined(&plan.finish(&[]));
    assert!(texts(&result)[0].starts_with("Error: aaa"));
    assert!(texts(&result)[1].contains("It could not be saved."));
}

#[test]
fn an_engine_gets_what_it_shows_when_that_is_less() {
    let settings = Settings::default();
    let limits = |engine| Limits::of(&settings, engine);
    assert_eq!(limits(EngineKind::Other), LIMITS);
    assert_eq!(limits(EngineKind::ClaudeCode), LIMITS);
    assert_eq!(limits(EngineKind::Codex), Limits { text_bytes: 39_000, ..LIMITS });
    assert_eq!(shown_chars(&settings), 101_000);
    let high = Settings { result_text_chars: 10_000_000, ..settings };
    assert_eq!((Limits::of(&high, EngineKind::ClaudeCode).text_chars, shown_chars(&high)), (499_000, 500_000));
    let codex = Context { limits: limits(EngineKind::Codex), ..CONTEXT };
    for (text_sent, shown) in
        [("门".repeat(13_000), 13_000), ("门".repeat(13_001), 13_000), ("x".repeat(39_001), 39_000)]
    {
        let result = joined(&planned(&json!({"content": [text(&text_sent)]}), &codex).finish(&[]));
        assert_eq!(texts(&result)[0].chars().count(), shown);
    }
}

#[test]
fn room_is_kept_for_what_is_said_of_files() {
    let file = json!({"type": "resource", "resource": {"uri": "a:b", "text": "x"}});
    let plan = planned(&json!({"content": [file, text(&"a".repeat(9_900))]}), &limited(10_000));
    assert_eq!(plan.saves.len(), 2);
    let result = joined(&plan.finish(&[]));
    assert_eq!(texts(&result)[1].len(), 9_700);
}

#[test]
fn what_is_not_text_counts_once_it_has_become_text() {
    let links: Vec<Value> =
        (0..100).map(|k| json!({"type": "resource_link", "uri": format!("a:{k}"), "name": "n"})).collect();
    let plan = planned(&json!({"content": links}), &limited(1_000));
    assert!(content(&plan.saves[0]).ends_with("Resource link: n a:99"));
    let result = joined(&plan.finish(&[]));
    let all: usize = texts(&result).iter().map(|text| text.chars().count()).sum();
    assert!((1_000..1_300).contains(&all), "{all}");
}

#[test]
fn files_beyond_the_most_go_into_one_together_and_nothing_is_lost() {
    let file = |k: usize| json!({"type": "resource", "resource": {"uri": format!("a:{k}"), "text": "x"}});
    let blocks: Vec<Value> = (0..60).map(file).collect();
    let plan = planned(&json!({"content": blocks}), &CONTEXT);
    assert_eq!(plan.saves.len(), 51);
    let rest: Value = serde_json::from_slice(&plan.saves[50].content).unwrap();
    assert_eq!(rest, json!(blocks[50..]));
    let saved = saved(&plan);
    let result = joined(&plan.finish(&saved));
    insta::assert_snapshot!(texts(&result)[50], @"[The result has 10 more parts, which are not shown. All of them, as JSON: application/json, 571 B. Saved in the workspace as .agent/mcp/call/50]");
}

#[test]
fn the_same_result_has_the_same_files_in_the_same_places() {
    let file = json!({"type": "resource", "resource": {"uri": "a:b", "text": "x"}});
    let result = json!({"content": [file, text(&"a".repeat(200)), file, text("b")]});
    let places = |plan: &Plan| plan.saves.iter().map(|save| save.place).collect::<Vec<_>>();
    let plan = planned(&result, &limited(100));
    assert_eq!(places(&plan), [0, 1, 2]);
    assert_eq!(planned(&result, &limited(100)).saves, plan.saves);
}

#[test]
fn blocks_beyond_the_most_go_into_one_file_and_nothing_is_lost() {
    let blocks: Vec<Value> = (0..MOST_BLOCKS + 50).map(|k| text(&k.to_string())).collect();
    let high = Context { limits: Limits { text_chars: 1_000_000, text_bytes: 1_000_000, ..LIMITS }, ..CONTEXT };
    let plan = planned(&json!({ "content": blocks }), &high);
    assert_eq!(plan.saves.len(), 1);
    let rest: Value = serde_json::from_slice(&plan.saves[0].content).unwrap();
    assert_eq!(rest, json!(blocks[MOST_BLOCKS..]));
    let saved = saved(&plan);
    let result = joined(&plan.finish(&saved));
    let shown = result["content"].as_array().unwrap();
    assert_eq!(shown[..MOST_BLOCKS], blocks[..MOST_BLOCKS]);
    assert!(shown[MOST_BLOCKS]["text"].as_str().unwrap().contains("50 more parts"), "{}", shown[MOST_BLOCKS]);
    assert_eq!(shown.len(), MOST_BLOCKS + 1);
}
