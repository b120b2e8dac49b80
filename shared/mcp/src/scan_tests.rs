use proptest::prelude::*;
use serde_json::{Value, value::RawValue};

use super::*;

const DEEP: usize = 1_000;

fn judge(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

#[test]
fn members_and_items_are_the_text_that_was_written() {
    let text = r#" { "a" : 1.0 ,"b\u0062":[ 1e3 , "x\"y" ],"a":{"c":null} } "#;
    let found = members(text, DEEP).unwrap();
    let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_ref(), *value)).collect();
    assert_eq!(found, [("a", "1.0"), ("bb", r#"[ 1e3 , "x\"y" ]"#), ("a", r#"{"c":null}"#)]);
    assert_eq!(items(r#"[ 1e3 , "x\"y" ,[],{}]"#, DEEP).unwrap(), ["1e3", r#""x\"y""#, "[]", "{}"]);
    assert_eq!((members("{}", DEEP).unwrap().len(), items(" [ ] ", DEEP).unwrap().len()), (0, 0));
}

#[test]
fn what_is_not_json_is_refused_as_serde_json_refuses_it() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[",
        "[1",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "01",
        "1.",
        ".5",
        "-",
        "1e",
        "1e+",
        "+1",
        "tru",
        "nul",
        "True",
        "\"",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"a\u{1}b\"",
        "\"\t\"",
        "1 2",
        "[] []",
        "{\"a\":1}x",
        "[}",
        "{]",
        "{\"a\":[}",
        "'a'",
        "NaN",
        "-Infinity",
        "[1 2]",
        "\u{a0}1",
    ] {
        assert_eq!(check(text, DEEP).is_ok(), judge(text), "{text:?}");
        assert!(check(text, DEEP).is_err(), "{text:?}");
    }
}

#[test]
fn what_is_json_is_taken_as_serde_json_takes_it() {
    for text in [
        "0",
        "-0",
        "-0.0e-0",
        "10",
        "1E5",
        "1e+5",
        "true",
        " null ",
        "\"\"",
        "\"\\u0000\\uD800\"",
        "\"é\u{7f}\u{10ffff}\"",
        "[[[]],{}]",
        "{\"a\":{\"b\":[1,{\"c\":\"}]\"}]}}",
        "\r\n\t[ ]\r\n",
    ] {
        assert!(check(text, DEEP).is_ok() && judge(text), "{text:?}");
    }
}

#[test]
fn nesting_is_bounded_without_a_stack() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(check(&nested(128), 128), Ok(()));
    assert_eq!(check(&nested(129), 128), Err(Fault::TooDeep));
    assert_eq!(items(&nested(129), 128), Err(Fault::TooDeep));
    assert_eq!(check(&nested(1_000_000), usize::MAX), Ok(()));
    assert!(members("{\"a\":[[]]}", 3).is_ok());
    assert_eq!(members("{\"a\":[[]]}", 2), Err(Fault::TooDeep));
}

#[test]
fn a_listing_gives_the_items_of_one_member_and_their_members() {
    let text = r#"{"other":[{"x":1}],"content":[{"type":"text","text":"a"}, 5],"isError":true}"#;
    let found = listing(text, "content", DEEP).unwrap();
    assert_eq!(found.members, members(text, DEEP).unwrap());
    let items = found.items.unwrap();
    assert_eq!(items[0].text, r#"{"type":"text","text":"a"}"#);
    assert_eq!(items[0].members.as_ref().unwrap()[1], ("text".into(), "\"a\""));
    assert_eq!((items[1].text, &items[1].members), ("5", &None));
    for text in ["{}", "{\"content\":{}}", "{\"content\":[],\"content\":null}"] {
        assert_eq!(listing(text, "content", DEEP).unwrap().items, None, "{text}");
    }
}

#[test]
fn every_byte_at_every_place_of_a_word_stops_a_string_or_does_not() {
    for byte in 0..=0x7f_u8 {
        for place in 0..24 {
            let mut inner = "x".repeat(24);
            inner.replace_range(place..=place, &char::from(byte).to_string());
            let text = format!("\"{inner}\"");
            assert_eq!(check(&text, DEEP).is_ok(), judge(&text), "{byte} at {place}");
        }
    }
}

#[test]
fn a_quote_a_backslash_or_a_control_character_counts_at_every_place_of_a_long_string() {
    // From the first words over a border of blocks into the bytes that fill no block.
    for place in 0..260 {
        for piece in
            ["\"", "\\", "\n", "\u{1f}", "\\n", "\\\"", "\\\\", "\\\\\"", "\\u00e9", "\\u00e", "\\x", "é", "\u{7f}"]
        {
            for rest in [0, 1, 2, 3, 7, 8, 70] {
                let text = format!("\"{}{piece}{}\"", "x".repeat(place), "y".repeat(rest));
                assert_eq!(check(&text, DEEP).is_ok(), judge(&text), "{piece:?} at {place}, {rest} after it");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_judged_as_serde_json_judges_it(text in r#"[\[\]{}:,"\\u0-9a-f.eE+\- \ntrufalsn]{0,24}"#) {
        prop_assert_eq!(check(&text, DEEP).is_ok(), judge(&text), "{:?}", text);
    }

    #[test]
    fn any_string_is_judged_as_serde_json_judges_it(inner in r#"(\\[u"nx\\]|[a-f0-9]{0,9}|é|"|[\x01\x1f\x7f])*"#) {
        let text = format!("\"{inner}\"");
        prop_assert_eq!(check(&text, DEEP).is_ok(), judge(&text), "{:?}", text);
    }

    #[test]
    fn any_long_string_is_judged_as_serde_json_judges_it(inner in r#"(\\[un\\]?|\\"|\\u[0-9a-f]{4}|[a-f0-9]{0,40}|é){20,60}"#) {
        let text = format!("\"{inner}\"");
        prop_assert_eq!(check(&text, DEEP).is_ok(), judge(&text), "{:?}", text);
    }

    #[test]
    fn any_value_is_taken_apart_into_what_it_was_made_of(value in tree(), pretty in proptest::bool::ANY) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        prop_assert!(check(&text, DEEP).is_ok());
        match &value {
            Value::Object(expected) => {
                let found = members(&text, DEEP).unwrap();
                prop_assert_eq!(found.len(), expected.len());
                for ((name, found), (key, value)) in found.iter().zip(expected) {
                    prop_assert_eq!(name.as_ref(), key);
                    prop_assert_eq!(&serde_json::from_str::<Value>(found).unwrap(), value);
                }
            }
            Value::Array(expected) => {
                let found: Vec<Value> = items(&text, DEEP).unwrap().iter().map(|item| serde_json::from_str(item).unwrap()).collect();
                prop_assert_eq!(&found, expected);
            }
            _ => prop_assert!(members(&text, DEEP).is_err() && items(&text, DEEP).is_err()),
        }
    }

    #[test]
    fn a_listing_of_what_was_judged_is_what_the_other_ways_give(items in proptest::collection::vec(tree(), 0..4), rest in tree()) {
        let text = serde_json::json!({"a": rest, "content": items, "b\\\"": rest}).to_string();
        let found = listing(&text, "content", DEEP).unwrap();
        prop_assert_eq!(&found.members, &members(&text, DEEP).unwrap());
        let content = found.members.iter().find(|(name, _)| name == "content").unwrap().1;
        let found: Vec<_> = found.items.unwrap();
        prop_assert_eq!(found.iter().map(|item| item.text).collect::<Vec<_>>(), super::items(content, DEEP).unwrap());
        for item in found {
            prop_assert_eq!(item.members, members(item.text, DEEP).ok());
        }
    }

    #[test]
    fn a_listing_of_anything_does_not_panic(text in r#"[\[\]{}:,"\\ux1 ]{0,24}"#) {
        let _ = listing(&text, "x", DEEP);
    }

    #[test]
    fn a_changed_byte_is_judged_as_serde_json_judges_it(value in tree(), place in 0_usize..200, byte in 0x20_u8..0x7f) {
        let mut text = serde_json::to_string(&value).unwrap().into_bytes();
        let place = place % text.len();
        text[place] = byte;
        if let Ok(text) = String::from_utf8(text) {
            prop_assert_eq!(check(&text, DEEP).is_ok(), judge(&text), "{:?}", text);
        }
    }
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Quarters, since these come back exactly.
        any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        ".{0,12}".prop_map(Value::from),
        Just(Value::from("a\"\\\n\u{1}é")),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(".{0,6}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}
