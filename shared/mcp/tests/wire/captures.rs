//! Recorded traffic of real servers goes through decoder, messages, client and lists, and nothing of it is lost.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use gatehouse_mcp::{
    ListLimits, Message, Options, Params, Piece, RequestError, RequestOptions, encode,
    message::{self, MOST_DEPTH},
    sse::Decoder,
};
use gatehouse_testkit::mcp_server::{FakeServer, Reply};
use serde_json::{Value, value::RawValue};

use crate::common::{Recorder, options, try_open};

const CAPTURES: [(&str, &str); 10] = [
    ("everything-http-elicitation-form", include_str!("../captures/everything-http-elicitation-form.txt")),
    ("everything-http-elicitation-url", include_str!("../captures/everything-http-elicitation-url.txt")),
    ("everything-http-init-tools", include_str!("../captures/everything-http-init-tools.txt")),
    ("everything-http-task-cancel", include_str!("../captures/everything-http-task-cancel.txt")),
    ("everything-http-task-input-required", include_str!("../captures/everything-http-task-input-required.txt")),
    ("everything-http-task-lifecycle", include_str!("../captures/everything-http-task-lifecycle.txt")),
    ("fastmcp3-task-lifecycle", include_str!("../captures/fastmcp3-task-lifecycle.txt")),
    (
        "sdk-elicitationUrlExample-32042-complete",
        include_str!("../captures/sdk-elicitationUrlExample-32042-complete.txt"),
    ),
    ("sdk-simpleTaskInteractive", include_str!("../captures/sdk-simpleTaskInteractive.txt")),
    ("sdk132-transport-errors", include_str!("../captures/sdk132-transport-errors.txt")),
];

fn capture(name: &str) -> &'static str {
    CAPTURES.iter().find(|(known, _)| *known == name).unwrap().1
}

/// An event as it was recorded: the stream's label, the id, the data.
struct Recorded {
    label: &'static str,
    id: Option<&'static str>,
    data: &'static str,
}

fn events(capture: &'static str) -> Vec<Recorded> {
    let read = |line: &'static str| {
        let (_, rest) = line.split_once("] <-- ")?;
        let (label, rest) = rest.split_once(" SSE event=")?;
        let (head, data) = rest.split_once(" data=")?;
        let id = head.split(" id=").nth(1)?.split(" retry=").next().filter(|id| *id != "None");
        Some(Recorded { label: label.trim_matches(['[', ']']), id, data })
    };
    capture.lines().filter_map(read).collect()
}

fn framed(event: &Recorded) -> String {
    let id = event.id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: message\n{id}data: {}\n\n", event.data)
}

/// The message put together again from its parts, spliced as we splice.
fn again(text: &str) -> Bytes {
    let piece = |params: Option<&'_ RawValue>| params.map(|params| params.get().to_owned());
    match message::parse(text.as_bytes(), MOST_DEPTH).unwrap().message {
        Message::Result { id, result } => encode::result(id.as_json(), Piece::Json(result)),
        Message::Error { id, error } => {
            encode::error(id.map(message::Id::as_json), error.code, &error.message, error.data)
        }
        Message::Request { id, method, params } => {
            let params = piece(params).map(|params| format!(",\"params\":{params}")).unwrap_or_default();
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"{params}}}").into()
        }
        Message::Notification { method, params } => {
            let params = piece(params).map(|params| format!(",\"params\":{params}")).unwrap_or_default();
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"{params}}}").into()
        }
    }
}

#[test]
fn every_recorded_event_comes_out_of_the_decoder_and_every_payload_out_of_its_message() {
    let mut messages = 0;
    for (name, text) in CAPTURES {
        let recorded = events(text);
        assert!(!recorded.is_empty(), "{name}");
        let stream: String = recorded.iter().map(framed).collect();
        let mut decoder = Decoder::new(1 << 20);
        let mut read = Vec::new();
        for chunk in stream.as_bytes().chunks(1_013) {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(event) = decoder.next_event().unwrap() {
                read.push(event);
            }
        }
        assert_eq!(read.len(), recorded.len(), "{name}");
        for (event, source) in read.iter().zip(&recorded) {
            assert_eq!((event.id.as_deref(), &event.data[..]), (source.id, source.data.as_bytes()), "{name}");
            if source.data.is_empty() {
                continue;
            }
            messages += 1;
            let mut before: Value = serde_json::from_str(source.data).unwrap();
            let parsed = message::parse(source.data.as_bytes(), MOST_DEPTH).unwrap();
            for (extra, _) in &parsed.extra {
                before.as_object_mut().unwrap().remove(extra.as_ref()).expect("what is extra was there");
            }
            let after: Value = serde_json::from_slice(&again(source.data)).unwrap();
            assert_eq!(after, before, "{name}");
            let payload = match parsed.message {
                Message::Result { result, .. } => Some(result),
                Message::Request { params, .. } | Message::Notification { params, .. } => params.map(RawValue::get),
                Message::Error { error, .. } => error.data.map(RawValue::get),
            };
            assert!(payload.is_none_or(|payload| source.data.contains(payload)), "{name}");
        }
    }
    assert_eq!(messages, 144);
}

/// What the client is to do again: method and parameters by request id.
fn requests(capture: &'static str) -> BTreeMap<u64, (String, Value)> {
    let read = |line: &'static str| {
        let (_, rest) = line.split_once("] --> POST[")?;
        let (label, rest) = rest.split_once("] ")?;
        let sent: Value = serde_json::from_str(rest).ok()?;
        let body = &sent["body"];
        Some((label.parse().ok()?, (body["method"].as_str()?.to_owned(), body["params"].clone())))
    };
    capture.lines().filter_map(read).collect()
}

/// Plays a capture through a connection; gives each request's method and outcome, and what else was seen.
async fn replay(name: &'static str) -> (Vec<(String, Result<String, RequestError>)>, Vec<String>) {
    let text = capture(name);
    let server = FakeServer::start(move |request| {
        let id = request.id().as_u64()?.to_string();
        let recorded = events(text);
        let mine: Vec<_> = recorded.iter().filter(|event| event.label == id).map(framed).collect();
        (!mine.is_empty()).then(|| Reply::stream(mine))
    });
    let server = server.await.unwrap();
    let recorder = Arc::new(Recorder::default());
    let connection = try_open(&server, Options { id_base: 1, ..options() }, recorder.clone()).await.unwrap();
    let mut outcomes = vec![("initialize".to_owned(), Ok(connection.initialize_result().result_str().to_owned()))];
    for (number, (method, params)) in requests(text).into_iter().skip(1) {
        let members: Vec<_> =
            params.as_object().into_iter().flatten().map(|(name, value)| (name, value.to_string())).collect();
        let pieces: Vec<_> = members.iter().map(|(name, value)| (name.as_str(), Piece::Json(value))).collect();
        let outcome = connection.request(&method, &Params::new(&pieces), RequestOptions::default()).await;
        assert_eq!(server.requests_of(&method).last().unwrap().id(), number, "{name}: the ids are those recorded");
        outcomes.push((method, outcome.map(|answer| answer.result_str().to_owned())));
    }
    (outcomes, recorder.notifications.borrow().clone())
}

#[tokio::test]
async fn recorded_sessions_give_the_recorded_answers_byte_for_byte() {
    for name in ["everything-http-init-tools", "everything-http-task-lifecycle", "everything-http-task-cancel"] {
        let (outcomes, _) = replay(name).await;
        let mut results = 0;
        for (method, outcome) in outcomes {
            match outcome {
                Ok(result) => {
                    results += 1;
                    assert!(capture(name).contains(&format!("\"result\":{result}")), "{name} {method}");
                }
                Err(RequestError::Rpc { code, message, .. }) => {
                    let recorded = format!("\"code\":{code},\"message\":{}", Value::from(message));
                    assert!(capture(name).contains(&recorded), "{name} {method}: {recorded}");
                }
                Err(error) => panic!("{name} {method}: {error:?}"),
            }
        }
        assert!(results >= 5, "{name}: {results}");
    }
}

#[tokio::test]
async fn what_typed_models_drop_is_all_there() {
    let (outcomes, _) = replay("everything-http-task-lifecycle").await;
    let results: Vec<&str> = outcomes.iter().filter_map(|(_, outcome)| outcome.as_deref().ok()).collect();
    assert!(results[0].contains(r#""tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#));
    let holding = |text: &str| results.iter().filter(|result| result.contains(text)).count();
    assert!(holding(r#"{"task":{"taskId":"#) >= 1, "a created task is nested");
    assert!(holding(r#""ttl":"#) >= 2 && holding(r#""pollInterval":"#) >= 2, "ttl and pollInterval of a working task");
    assert!(holding("io.modelcontextprotocol/related-task") >= 1);
}

#[tokio::test]
async fn a_recorded_tool_list_is_read_tool_by_tool() {
    let name = "everything-http-init-tools";
    let text = capture(name);
    let server = FakeServer::start(move |request| {
        let label = match request.rpc().as_str() {
            "initialize" => "1",
            "tools/list" => "2",
            _ => return None,
        };
        let recorded = events(text);
        Some(Reply::stream(recorded.iter().filter(|event| event.label == label).map(framed).collect::<Vec<_>>()))
    });
    let server = server.await.unwrap();
    let connection = try_open(&server, Options { id_base: 1, ..options() }, Arc::new(())).await.unwrap();
    let tools = connection.list_all("tools/list", "tools", ListLimits::default()).await.unwrap();
    assert!(tools.len() >= 13, "{}", tools.len());
    let joined = tools.iter().collect::<Vec<_>>().join(",");
    assert!(text.contains(&format!("\"tools\":[{joined}]")), "the items are the recorded bytes");
    assert!(tools.iter().any(|tool| tool.contains(r#""execution":{"taskSupport":"required"}"#)));
    assert!(joined.contains("http://json-schema.org/draft-07/schema#"));
}
