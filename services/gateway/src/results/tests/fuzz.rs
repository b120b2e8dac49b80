//! Whatever a server sends, nothing panics, and an engine gets a well-formed result within its bounds.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// How many cases are tried; `GATEHOUSE_FUZZ_CASES` sets another number.
fn cases() -> ProptestConfig {
    let cases = std::env::var("GATEHOUSE_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn whatever_json_a_server_sends_an_engine_gets_a_well_formed_result_within_its_bounds(
        result in result(), chars in 10_usize..2_000, bytes in 10_usize..3_000, media in 0_usize..20, known in any::<bool>(),
        zh in any::<bool>(), outcomes in proptest::collection::vec(0_u8..4, 0..5), schema in schema(),
    ) {
        let limits = Limits { text_chars: chars, text_bytes: bytes, media_bytes: media };
        let locale = if zh { Locale::Zh } else { Locale::En };
        let definition: Arc<str> = format!("{{\"outputSchema\":{schema}}}").into();
        let schema = OutputSchema::of(&definition);
        let cx = Context { known: Known { audio: known }, locale, limits, schema: schema.as_ref() };
        let Ok(plan) = plan(&Bytes::from(result.clone()), &cx) else { return Ok(()) };
        let mut places: Vec<u32> = plan.saves.iter().map(|save| save.place).collect();
        places.sort_unstable();
        places.dedup();
        prop_assert_eq!(places.len(), plan.saves.len());
        prop_assert!(plan.saves.len() <= 52 && plan.notes.len() <= 20);
        prop_assert!(plan.notes.iter().all(|note| note.chars().count() <= 500));
        let saves = plan.saves.len();
        let mut saved = saved(&plan);
        saved.truncate(outcomes.len());
        for (saved, outcome) in saved.iter_mut().zip(&outcomes) {
            if *outcome == 0 { saved.problem = Some(result.clone()); }
            if *outcome == 1 { saved.at = Place::Platform; }
            if *outcome == 2 { saved.at = Place::Nowhere; }
        }
        let is_error = plan.is_error;
        let output = plan.finish(&saved);
        let whole = output.pieces.concat();
        // A number that no reader here can hold is valid JSON.
        let whole = String::from_utf8(whole).unwrap().replace("1e999", "1");
        let value: Value = serde_json::from_str(&whole).map_err(|error| TestCaseError::fail(error.to_string()))?;
        check(&value, is_error)?;
        let texts = texts(&value);
        let all: usize = texts.iter().map(|text| text.chars().count()).sum();
        // A URI takes up to 1,000 characters of our own words.
        prop_assert!(all <= chars + 7 + saves * 2_600, "{} characters", all);
    }
}

/// A `CallToolResult` that every engine takes.
fn check(result: &Value, is_error: bool) -> Result<(), TestCaseError> {
    prop_assert_eq!(result.get("isError"), is_error.then_some(&json!(true)));
    prop_assert!(result.get("structuredContent").is_none() && result.get("resultType").is_none());
    prop_assert!(result.get("_meta").is_none_or(Value::is_object));
    for block in result["content"].as_array().unwrap() {
        let good = match block["type"].as_str() {
            Some("text") => block["text"].is_string(),
            Some("image" | "audio") => block["data"].is_string() && block["mimeType"].is_string(),
            _ => false,
        };
        prop_assert!(good, "{}", block);
        prop_assert!(["_meta", "annotations"].iter().all(|name| block.get(name).is_none_or(Value::is_object)));
    }
    if is_error {
        prop_assert!(
            texts(result).first().is_some_and(|text| {
                let start = text.trim_start().to_lowercase();
                start.starts_with("error") || start.starts_with("错误")
            }),
            "{}",
            result
        );
    }
    Ok(())
}

/// JSON text of a result, with whatever in each of its members.
fn result() -> impl Strategy<Value = String> {
    let content = prop_oneof![
        8 => proptest::collection::vec(block(), 0..8).prop_map(|blocks| format!("[{}]", blocks.join(","))),
        1 => proptest::collection::vec(block(), 50..80).prop_map(|blocks| format!("[{}]", blocks.join(","))),
        1 => json_text(),
    ];
    let is_error = prop_oneof![Just("true".to_owned()), Just("false".to_owned()), json_text()];
    (content, json_text(), is_error, json_text(), member(), json_text()).prop_map(
        |(content, structured, is_error, meta, other, value)| {
            format!(
                r#"{{"content":{content},"structuredContent":{structured},"isError":{is_error},"_meta":{meta},{other}:{value}}}"#
            )
        },
    )
}

fn block() -> impl Strategy<Value = String> {
    let kind =
        prop_oneof![Just("text"), Just("image"), Just("audio"), Just("resource_link"), Just("resource"), Just("video")];
    let inner = (value(), value(), value(), value()).prop_map(|(uri, text, blob, kind)| {
        format!(r#"{{"uri":{uri},"text":{text},"blob":{blob},"mimeType":{kind}}}"#)
    });
    let resource = prop_oneof![inner, json_text()];
    prop_oneof![
        1 => json_text(),
        9 => (kind, value(), value(), value(), resource, json_text(), value()).prop_map(
            |(kind, text, data, media_type, resource, annotations, uri)| format!(
                r#"{{"type":"{kind}","text":{text},"data":{data},"mimeType":{media_type},"resource":{resource},"annotations":{annotations},"uri":{uri},"name":{text},"size":{data}}}"#
            )
        ),
    ]
}

/// Mostly strings of the kinds that are looked into.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![4 => string(), 1 => json_text()]
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        r"[A-Za-z0-9+/]{0,40}={0,2}".prop_map(|text| format!("\"{text}\"")),
        r"(\\u(d83d|DE00|dbff|0041|0000)|\\n|\\\\|\\/|[a-fé0-9 门😀]){0,30}".prop_map(|text| format!("\"{text}\"")),
        ".{0,20}".prop_map(|text| json!(text).to_string()),
        (r"[a-z门\n]{1,9}", 1_usize..300).prop_map(|(text, times)| json!(text.repeat(times)).to_string()),
        Just(r#""```json\n{\"a\":1}\n```""#.to_owned()),
        Just(r#""{\"a\":1}""#.to_owned()),
        Just("\"error\"".to_owned()),
    ]
}

fn member() -> impl Strategy<Value = String> {
    prop_oneof![
        string(),
        Just("\"content\"".to_owned()),
        Just("\"isError\"".to_owned()),
        Just("\"\\ud83d\"".to_owned())
    ]
}

/// Any JSON, nested too.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("{\"a\":1}".to_owned()),
        any::<f64>().prop_map(|number| json!(number).to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        Just("-9223372036854775808".to_owned()),
        Just("1e999".to_owned()),
        (1_usize..120).prop_map(|depth| "[".repeat(depth) + &"]".repeat(depth)),
        string(),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec((string(), inner), 0..4).prop_map(|members| {
                let members: Vec<String> = members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// Schemas, good ones and others.
fn schema() -> impl Strategy<Value = String> {
    prop_oneof![
        json_text(),
        Just(r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}"#.to_owned()),
        Just(r##"{"anyOf":[{"type":"array","items":{"$ref":"#"}},{"properties":{"a":{"$ref":"#"}}}],"unevaluatedProperties":false}"##.to_owned()),
        (string(), json_text()).prop_map(|(pattern, rest)| {
            format!(r#"{{"pattern":{pattern},"patternProperties":{{{pattern}:{rest}}},"propertyNames":{rest},"enum":[{rest}]}}"#)
        }),
    ]
}
