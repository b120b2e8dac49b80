//! Event streams: before the answer, without one, resumed, and the one that belongs to no request.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt;
use gatehouse_mcp::{Call, Options, Reply as OurReply, RequestError, RequestOptions};
use gatehouse_testkit::mcp_server::{Act, FakeServer, Reply, Request, event};
use gatehouse_types::CallId;
use serde_json::{Value, json};

use crate::common::{Recorder, call, call_with, open, options, try_open};

fn answer(id: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

async fn serving(handler: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> FakeServer {
    FakeServer::start(handler).await.unwrap()
}

fn listening() -> Options {
    Options { listen: true, ..options() }
}

#[tokio::test]
async fn what_comes_before_the_answer_is_taken_in_its_order() {
    let server = serving(|request| {
        (request.rpc() == "tools/call").then(|| {
            Reply::stream([
                "id: p\nretry: 10\ndata:\n\n".to_owned(),
                ": keep-alive\n\n".to_owned(),
                event(Some("1"), r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"n":1.0}}"#),
                "event: other\ndata: not for us\n\n".to_owned(),
                event(Some("2"), "not json"),
                event(Some("3"), r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
                event(Some("4"), &answer(&request.id(), &json!({"ok": true}))),
            ])
        })
    })
    .await;
    let recorder = Arc::new(Recorder::default());
    let connection = try_open(&server, options(), recorder.clone()).await.unwrap();
    assert_eq!(call(&connection).await.unwrap().result_str(), r#"{"ok":true}"#);
    let seen = recorder.wait_for(2).await;
    assert_eq!(seen, [r#"notifications/message {"n":1.0} request"#, "notifications/tools/list_changed  request"]);
}

#[tokio::test]
async fn a_message_over_several_data_lines_and_chunks_is_one_message() {
    let server = serving(|request| {
        (request.rpc() == "tools/call").then(|| {
            let text = format!(
                "data: {{\"jsonrpc\":\"2.0\",\r\ndata: \"id\":{},\"result\":\r\ndata: {{\"a\":1e3}}}}\r\n\r\n",
                request.id()
            );
            let acts = text.as_bytes().chunks(7).flat_map(|chunk| {
                [Act::Write(bytes::Bytes::copy_from_slice(chunk)), Act::Pause(Duration::from_millis(1))]
            });
            Reply::acts(200, "text/event-stream", acts.collect())
        })
    })
    .await;
    let connection = open(&server).await;
    assert_eq!(call(&connection).await.unwrap().result_str(), r#"{"a":1e3}"#);
}

#[tokio::test]
async fn a_stream_that_ends_without_an_answer_and_without_an_id_is_lost() {
    let server = serving(|request| {
        (request.rpc() == "tools/call")
            .then(|| Reply::stream([event(None, r#"{"jsonrpc":"2.0","method":"notifications/message"}"#)]))
    })
    .await;
    let connection = open(&server).await;
    let error = call(&connection).await.unwrap_err();
    assert!(matches!(error, RequestError::Lost(_)), "{error:?}");
    assert!(server.requests_of("GET").is_empty());
}

#[tokio::test]
async fn a_stream_that_breaks_is_resumed_after_its_last_event_until_the_answer_comes() {
    let server =
        serving(|request| match (request.method.as_str(), request.rpc().as_str(), request.header("last-event-id")) {
            (_, "tools/call", _) => Some(Reply::stream(["id: a\nretry: 20\ndata:\n\n"])),
            ("GET", _, Some("a")) => {
                Some(Reply::stream([event(Some("b"), r#"{"jsonrpc":"2.0","method":"notifications/message"}"#)]))
            }
            ("GET", _, Some("b")) => {
                Some(Reply::stream([event(Some("c"), &answer(&json!(1001), &json!({"late": true})))]))
            }
            _ => None,
        })
        .await;
    let recorder = Arc::new(Recorder::default());
    let connection = try_open(&server, options(), recorder.clone()).await.unwrap();
    assert_eq!(call(&connection).await.unwrap().result_str(), r#"{"late":true}"#);
    assert_eq!(recorder.wait_for(1).await.len(), 1);
    let gets = server.requests_of("GET");
    let after: Vec<_> = gets.iter().map(|get| get.header("last-event-id").unwrap()).collect();
    assert_eq!(after, ["a", "b"]);
    assert_eq!(gets[0].header("accept"), Some("text/event-stream"));
    assert_eq!(gets[0].header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(server.requests_of("tools/call").len(), 1, "the request itself is not sent again");
}

#[tokio::test]
async fn resuming_ends_when_the_server_does_not_take_it_or_nothing_comes_of_it() {
    for (status, attempts) in [(405, 1), (404, 1), (400, 1), (503, 5)] {
        let server = serving(move |request| match request.rpc().as_str() {
            "tools/call" => Some(Reply::stream(["id: a\nretry: 5\ndata:\n\n"])),
            "GET" => Some(Reply::json(status, "")),
            _ => None,
        })
        .await;
        let connection = open(&server).await;
        let error = call(&connection).await.unwrap_err();
        assert!(matches!(error, RequestError::Lost(_)), "{status}: {error:?}");
        assert_eq!(server.requests_of("GET").len(), attempts, "{status}");
    }
    let server = serving(|request| match request.rpc().as_str() {
        "tools/call" => Some(Reply::stream(["id: a\nretry: 5\ndata:\n\n"])),
        "GET" => Some(Reply::stream(["retry: 5\n\n:\n\n"])),
        _ => None,
    })
    .await;
    let connection = open(&server).await;
    let hurried = RequestOptions { timeout: Some(Duration::from_millis(500)), ..RequestOptions::default() };
    assert!(matches!(call_with(&connection, hurried).await, Err(RequestError::TimedOut)), "retry events are events");
}

#[tokio::test]
async fn a_pause_that_the_server_asks_for_is_kept() {
    let server = serving(|request| match request.rpc().as_str() {
        "tools/call" => Some(Reply::stream(["id: a\nretry: 400\ndata:\n\n"])),
        "GET" => Some(Reply::stream([event(None, &answer(&json!(1001), &json!({})))])),
        _ => None,
    })
    .await;
    let connection = open(&server).await;
    let before = std::time::Instant::now();
    call(&connection).await.unwrap();
    assert!(before.elapsed() >= Duration::from_millis(400));
}

#[tokio::test]
async fn pings_are_answered_and_other_requests_refused_without_holding_up_the_answer() {
    let server = serving(|request| match request.rpc().as_str() {
        "tools/call" => Some(Reply::stream([
            event(None, r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#),
            event(None, r#"{"jsonrpc":"2.0","id":"s-1","method":"sampling/createMessage","params":{}}"#),
            event(None, &answer(&request.id(), &json!({}))),
        ])),
        _ => None,
    })
    .await;
    let connection = open(&server).await;
    call(&connection).await.unwrap();
    server.wait_for("POST", 2).await.unwrap();
    let mut bodies: Vec<_> = server.requests_of("POST").into_iter().map(|request| request.body).collect();
    bodies.sort();
    assert_eq!(
        bodies,
        [
            r#"{"jsonrpc":"2.0","id":"s-1","error":{"code":-32601,"message":"this client does not offer the method"}}"#,
            r#"{"jsonrpc":"2.0","id":0,"result":{}}"#,
        ]
    );
}

#[tokio::test]
async fn a_request_of_the_server_reaches_whoever_takes_it_with_the_call_it_belongs_to() {
    let server = serving(|request| match request.rpc().as_str() {
        "tools/call" => Some(Reply::stream([
            event(None, r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"x":1.0}}"#),
            event(None, &answer(&request.id(), &json!({}))),
        ])),
        _ => None,
    })
    .await;
    let reply = || async { OurReply::Result(r#"{"action":"decline"}"#.to_owned()) }.boxed();
    let recorder = Arc::new(Recorder { reply: Some(reply), ..Recorder::default() });
    let connection = try_open(&server, options(), recorder.clone()).await.unwrap();
    let tag = Call(CallId::new());
    call_with(&connection, RequestOptions { call: Some(tag), ..RequestOptions::default() }).await.unwrap();
    let posted = server.wait_for("POST", 1).await.unwrap();
    assert_eq!(posted[0].body, r#"{"jsonrpc":"2.0","id":7,"result":{"action":"decline"}}"#);
    let requests = recorder.requests.lock().unwrap();
    assert_eq!((requests[0].method.as_str(), &requests[0].params[..]), ("elicitation/create", &b"{\"x\":1.0}"[..]));
    assert_eq!((requests[0].origin.request_id, requests[0].origin.call), (Some(1001), Some(tag)));
}

#[tokio::test]
async fn a_flood_of_requests_of_the_server_is_bounded_and_holds_no_answer_up() {
    let server = serving(|request| {
        let ask = |id: u32| event(None, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create"}}"#));
        let answered = event(None, &answer(&request.id(), &json!({})));
        (request.rpc() == "tools/call").then(|| Reply::stream((0..100).map(ask).chain([answered])))
    })
    .await;
    let recorder = Arc::new(Recorder { reply: Some(|| std::future::pending().boxed()), ..Recorder::default() });
    let few = Options { most_server_requests: 4, ..options() };
    let connection = try_open(&server, few, recorder.clone()).await.unwrap();
    call(&connection).await.unwrap();
    assert_eq!(recorder.requests.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn a_request_that_the_server_takes_back_is_not_answered() {
    let server =
        serving(|request| (request.method == "GET").then(|| Reply::acts(200, "text/event-stream", vec![Act::Pushed])))
            .await;
    let recorder = Arc::new(Recorder { reply: Some(|| std::future::pending().boxed()), ..Recorder::default() });
    let _connection = try_open(&server, listening(), recorder.clone()).await.unwrap();
    server.wait_for_listeners(1).await.unwrap();
    server.push(event(None, r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create"}"#));
    server.push(event(None, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#));
    server.push(event(None, r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#));
    assert_eq!(server.wait_for("POST", 1).await.unwrap()[0].id(), json!(8));
    let cancelled = recorder.requests.lock().unwrap()[0].cancelled.clone();
    tokio::time::timeout(Duration::from_secs(10), cancelled.cancelled()).await.unwrap();
}

#[tokio::test]
async fn the_stream_of_no_request_carries_notifications_progress_and_late_answers() {
    let server = serving(|request| match request.rpc().as_str() {
        "GET" => Some(Reply::acts(200, "text/event-stream", vec![Act::Pushed])),
        "tools/call" => Some(Reply::acts(200, "text/event-stream", vec![Act::Hang])),
        _ => None,
    })
    .await;
    let recorder = Arc::new(Recorder::default());
    let connection = try_open(&server, listening(), recorder.clone()).await.unwrap();
    server.wait_for_listeners(1).await.unwrap();
    server.push(event(None, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#));
    assert_eq!(recorder.wait_for(1).await, ["notifications/tools/list_changed  listen"]);

    let (reported, mut reports) = tokio::sync::watch::channel(String::new());
    let note = |progress: gatehouse_mcp::Progress<'_>| drop(reported.send(progress.params.get().to_owned()));
    let options = RequestOptions { on_progress: Some(&note), ..RequestOptions::default() };
    let (outcome, ()) = tokio::join!(call_with(&connection, options), async {
        // Reports until one arrives: the request is reachable a moment after it was sent.
        let id = server.wait_for("tools/call", 1).await.unwrap()[0].id();
        let params = json!({"progressToken": id, "progress": 1});
        let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string();
        let mut every = tokio::time::interval(Duration::from_millis(20));
        loop {
            tokio::select! {
                changed = reports.changed() => break changed.unwrap(),
                _ = every.tick() => { server.push(event(None, &report)); }
            }
        }
        server.push(event(None, &answer(&id, &json!({"by": "listening"}))));
    });
    assert_eq!(outcome.unwrap().result_str(), r#"{"by":"listening"}"#);
}

#[tokio::test]
async fn the_stream_of_no_request_is_opened_again_after_its_last_event() {
    let server = serving(|request| match (request.method.as_str(), request.header("last-event-id")) {
        ("GET", None) => Some(Reply::stream(["retry: 10\nid: 7\ndata:\n\n"])),
        ("GET", Some("7")) => Some(Reply::acts(200, "text/event-stream", vec![Act::Pushed])),
        _ => None,
    })
    .await;
    let _connection = try_open(&server, listening(), Arc::new(())).await.unwrap();
    server.wait_for_listeners(1).await.unwrap();
    assert_eq!(server.requests_of("GET").len(), 2);
}

#[tokio::test]
async fn a_server_without_a_stream_is_not_asked_again_and_a_hanging_one_holds_nothing_up() {
    let server = FakeServer::ordinary().await.unwrap();
    let connection = try_open(&server, listening(), Arc::new(())).await.unwrap();
    server.wait_for("GET", 1).await.unwrap();
    call(&connection).await.unwrap();
    assert_eq!(server.requests_of("GET").len(), 1);

    let server = serving(|request| (request.method == "GET").then(|| Reply::raw(vec![Act::Hang]))).await;
    let connection = try_open(&server, listening(), Arc::new(())).await.unwrap();
    server.wait_for("GET", 1).await.unwrap();
    call(&connection).await.unwrap();
}
