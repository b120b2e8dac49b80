use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(text: &str) -> Result<Parsed<'_>, Malformed> {
    parse(text.as_bytes(), MOST_DEPTH)
}

fn refused(text: &str) -> (i64, Option<String>) {
    let malformed = read(text).unwrap_err();
    (malformed.code, malformed.id)
}

#[test]
fn each_kind_of_message_is_told_apart() {
    let request = read(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#).unwrap().message;
    assert!(
        matches!(request, Message::Request { id, method, params: None } if id.as_json() == "0" && method == "ping")
    );
    let notification = read(r#"{"method":"a\/b","params":{"x":1.0},"jsonrpc":"2.0"}"#).unwrap().message;
    let Message::Notification { method, params } = notification else { panic!("{notification:?}") };
    assert_eq!((method.as_ref(), params.unwrap().get()), ("a/b", r#"{"x":1.0}"#));
    let result = read(r#" {"jsonrpc":"2.0","id":"a-1","result":{ }} "#).unwrap().message;
    assert!(matches!(result, Message::Result { id, result } if id.as_json() == "\"a-1\"" && result == "{ }"));
    let error = read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no","data":[1e3]}}"#).unwrap();
    let Message::Error { id: None, error } = error.message else { panic!() };
    assert_eq!((error.code, error.message.as_ref(), error.data.unwrap().get()), (-32_000, "no", "[1e3]"));
}

#[test]
fn members_that_json_rpc_does_not_know_are_kept() {
    let parsed = read(r#"{"jsonrpc":"2.0","method":"n","_meta":{"k":1e3},"x":null}"#).unwrap();
    let extra: Vec<_> = parsed.extra.iter().map(|(name, value)| (name.as_ref(), *value)).collect();
    assert_eq!(extra, [("_meta", r#"{"k":1e3}"#), ("x", "null")]);
}

#[test]
fn an_id_is_echoed_in_its_spelling() {
    for id in ["0", "-7", "\"0\"", "\"a\\u0062\"", "9007199254740993", "1.0", "\"\""] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        let Message::Request { id: read, .. } = read(&text).unwrap().message else { panic!("{id}") };
        assert_eq!(read.as_json(), id);
    }
}

#[test]
fn only_whole_numbers_and_their_strings_are_ids_of_ours() {
    let number = |text: &str| {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        Id::read(&raw).and_then(Id::number)
    };
    assert_eq!(number("12"), Some(12));
    assert_eq!(number("\"12\""), Some(12));
    for other in ["-1", "1.0", "1e3", "\"\"", "\"a\"", "null", "true", "[1]", "99999999999999999999"] {
        assert_eq!(number(other), None, "{other}");
    }
}

#[test]
fn what_is_no_message_is_refused_with_the_error_to_give() {
    assert_eq!(refused(""), (PARSE_ERROR, None));
    assert_eq!(refused("<html>"), (PARSE_ERROR, None));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"#), (PARSE_ERROR, None));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"m"} {}"#), (PARSE_ERROR, None));
    assert_eq!(refused("7"), (INVALID_REQUEST, None));
    assert_eq!(refused(r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#), (INVALID_REQUEST, None));
    let one = Some("1".to_owned());
    assert_eq!(refused(r#"{"id":1,"method":"m"}"#), (INVALID_REQUEST, one.clone()));
    assert_eq!(refused(r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#), (INVALID_REQUEST, one.clone()));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), (INVALID_REQUEST, one.clone()));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":7}"#), (INVALID_REQUEST, one.clone()));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#), (INVALID_REQUEST, one.clone()));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1}"#), (INVALID_REQUEST, one.clone()));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#), (INVALID_REQUEST, one));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#), (INVALID_REQUEST, None));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#), (INVALID_REQUEST, None));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","result":{}}"#), (INVALID_REQUEST, None));
    assert_eq!(parse(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}", 9).unwrap_err().code, PARSE_ERROR);
}

#[test]
fn a_member_that_occurs_twice_is_refused() {
    for twice in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":2}"#,
    ] {
        assert_eq!(refused(twice).0, INVALID_REQUEST, "{twice}");
    }
}

#[test]
fn nesting_is_bounded_and_brackets_in_strings_do_not_count() {
    let nested = |depth: usize| {
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth))
    };
    assert!(read(&nested(127)).is_ok());
    assert_eq!(refused(&nested(128)).0, INVALID_REQUEST);
    assert_eq!(refused(&nested(1_000_000)).0, INVALID_REQUEST);
    let text = "[{\\\"".repeat(1_000);
    assert!(read(&format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":"{text}","b":[{{}},{{}}]}}}}"#)).is_ok());
    let wide = "[],".repeat(1_000);
    assert!(read(&format!(r#"{{"jsonrpc":"2.0","method":"m","params":[{wide}[]]}}"#)).is_ok());
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_result_comes_out_byte_for_byte(value in json_value(), id in any::<u64>()) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let message = format!("{{\"result\": {text} ,\"jsonrpc\":\"2.0\",\"id\":{id}}}");
        let Message::Result { id: theirs, result } = read(&message).unwrap().message else { panic!() };
        prop_assert_eq!(theirs.number(), Some(id));
        prop_assert_eq!(result, text);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, MOST_DEPTH);
    }

    #[test]
    fn the_depth_is_that_of_the_value(value in json_value()) {
        fn depth_of(value: &Value) -> usize {
            match value {
                Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
                Value::Object(members) => 1 + members.values().map(depth_of).max().unwrap_or(0),
                _ => 0,
            }
        }
        let text = json!(value).to_string();
        let depth = depth_of(&value);
        prop_assert!(scan::check(&text, depth).is_ok());
        prop_assert_eq!(scan::check(&text, depth.saturating_sub(1)).is_err(), depth > 0);
    }
}
