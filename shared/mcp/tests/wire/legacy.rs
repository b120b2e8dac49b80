//! HTTP+SSE (2024-11-05): found out or set, its address, answers on its stream, and its end.

use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use gatehouse_mcp::{Connection, Inbound, OpenError, Options, RequestError, Transport};
use gatehouse_testkit::mcp_server::{Act, FakeServer, Reply, Request, event, initialize_result};
use serde_json::json;

use crate::common::{HI, Recorder, call, options, try_open};

/// What the server answers instead of taking a message.
type Instead = fn(&Request) -> Option<Reply>;

/// A server of the old kind. What it is posted at `/message` it answers on its stream.
async fn serving(instead: Instead) -> Arc<FakeServer> {
    let myself: Arc<OnceLock<Weak<FakeServer>>> = Arc::default();
    let told = Arc::clone(&myself);
    let server = FakeServer::start(move |request| {
        if let Some(reply) = instead(request) {
            return Some(reply);
        }
        if request.method == "GET" {
            return Some(Reply::acts(200, "text/event-stream", vec![Act::Pushed]));
        }
        if !request.path.starts_with("/message") {
            return Some(Reply::new(404, "text/html", "Cannot POST"));
        }
        let result = match request.rpc().as_str() {
            "initialize" => initialize_result(),
            "tools/call" => json!({"content": [{"type": "text", "text": "hi"}]}),
            _ => return Some(Reply::new(202, "text/plain", "Accepted")),
        };
        let answer = json!({"jsonrpc": "2.0", "id": request.id(), "result": result}).to_string();
        told.get().and_then(Weak::upgrade).unwrap().push(event(None, &answer));
        Some(Reply::new(202, "text/plain", "Accepted"))
    });
    let server = Arc::new(server.await.unwrap());
    myself.set(Arc::downgrade(&server)).unwrap();
    server
}

/// Opens a connection while the server names this address.
async fn opening(
    server: &FakeServer,
    options: Options,
    inbound: Arc<dyn Inbound>,
    address: &str,
) -> Result<Connection, OpenError> {
    let naming = async {
        server.wait_for_listeners(1).await.unwrap();
        server.push(format!("event: endpoint\ndata: {address}\n\n"));
    };
    tokio::join!(try_open(server, options, inbound), naming).0
}

async fn open(server: &FakeServer) -> Connection {
    opening(server, options(), Arc::new(()), "/message?sessionId=1").await.unwrap()
}

fn with(transport: Transport) -> Options {
    Options { transport, ..options() }
}

#[tokio::test]
async fn a_server_that_refuses_initialize_as_old_ones_do_is_spoken_to_over_its_stream() {
    let refusals: [Instead; 4] = [
        |_| None,
        |request| (request.method == "POST" && request.path == "/mcp").then(|| Reply::new(405, "text/plain", "")),
        |request| (request.method == "POST" && request.path == "/mcp").then(|| Reply::new(400, "text/plain", "no")),
        |request| {
            (request.method == "POST" && request.path == "/mcp")
                .then(|| Reply::error(400, &json!(null), -32_000, "Bad Request"))
        },
    ];
    for refusal in refusals {
        let server = serving(refusal).await;
        let connection = open(&server).await;
        assert_eq!(connection.transport(), Some(Transport::Sse));
        assert_eq!(call(&connection).await.unwrap().result_str(), HI);
        let posted = &server.requests_of("tools/call")[0];
        assert_eq!((posted.path.as_str(), posted.header("x-api-key")), ("/message?sessionId=1", Some("k")));
    }
}

#[tokio::test]
async fn what_is_set_is_not_tried_otherwise() {
    let server = serving(|_| None).await;
    opening(&server, with(Transport::Sse), Arc::new(()), "/message").await.unwrap();
    assert!(server.requests().iter().all(|request| request.method == "GET" || request.path == "/message"));

    let server = serving(|_| None).await;
    let error = try_open(&server, with(Transport::StreamableHttp), Arc::new(())).await.unwrap_err();
    assert!(matches!(error, OpenError::Request(RequestError::Http { status: 404, .. })), "{error:?}");
    assert!(server.requests().iter().all(|request| request.method == "POST"));
}

#[tokio::test]
async fn a_server_of_neither_kind_is_told_by_its_first_refusal_and_in_time() {
    let neither: [Instead; 3] = [
        |request| (request.method == "GET").then(|| Reply::new(404, "text/html", "none")),
        |request| (request.method == "GET").then(|| Reply::stream(["data: hello\n\n"])),
        |request| (request.method == "GET").then(|| Reply::acts(200, "text/event-stream", vec![Act::Hang])),
    ];
    for instead in neither {
        let server = serving(instead).await;
        let options = Options { connect_timeout: Duration::from_millis(500), ..options() };
        let error = try_open(&server, options, Arc::new(())).await.unwrap_err();
        assert!(matches!(error, OpenError::Request(RequestError::Http { status: 404, .. })), "{error:?}");
    }
}

#[tokio::test]
async fn an_address_is_relative_to_the_stream_and_never_at_another_origin() {
    let server = serving(|_| None).await;
    let whole = format!("http://{}/message?a=1", server.address());
    for address in ["message?a=1", "/message?a=1", whole.as_str()] {
        let server = serving(|_| None).await;
        let address = address.replace(&whole, &format!("http://{}/message?a=1", server.address()));
        let connection = opening(&server, options(), Arc::new(()), &address).await.unwrap();
        call(&connection).await.unwrap();
        assert_eq!(server.requests_of("tools/call")[0].path, "/message?a=1");
    }
    let other = FakeServer::ordinary().await.unwrap();
    for address in [format!("http://{}/message", other.address()), "//evil.example/message".into(), "http://".into()] {
        let server = serving(|_| None).await;
        let error = opening(&server, options(), Arc::new(()), &address).await.unwrap_err();
        assert!(matches!(error, OpenError::Request(RequestError::Protocol(_))), "{error:?}");
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn the_end_of_the_stream_fails_what_waits_and_nothing_is_posted_any_more() {
    let server = serving(|request| match (request.method.as_str(), request.rpc().as_str()) {
        (_, "tools/call") => Some(Reply::new(202, "text/plain", "Accepted")),
        _ => None,
    })
    .await;
    let connection = open(&server).await;
    let end = async {
        server.wait_for("tools/call", 1).await.unwrap();
        // An event without end is more than the connection takes: the stream cannot be read on.
        server.push(vec![b'x'; 33 << 20]);
    };
    let (lost, ()) = tokio::join!(call(&connection), end);
    let lost = lost.unwrap_err();
    assert!(matches!(lost, RequestError::Lost(_)) && !lost.certainly_not_carried_out(), "{lost:?}");
    connection.ended().await;
    let refused = call(&connection).await.unwrap_err();
    assert!(matches!(refused, RequestError::SessionGone) && refused.needs_new_connection(), "{refused:?}");
    assert!(connection.has_ended());
    assert_eq!(server.requests_of("tools/call").len(), 1);
}

#[tokio::test]
async fn a_session_that_the_server_does_not_know_is_gone_however_it_says_so() {
    let unknown: [Instead; 2] = [
        |request| (request.rpc() == "tools/call").then(|| Reply::new(404, "text/plain", "Could not find session")),
        |request| (request.rpc() == "tools/call").then(|| Reply::new(400, "text/plain", "No transport found")),
    ];
    for instead in unknown {
        let server = serving(instead).await;
        let connection = open(&server).await;
        let error = call(&connection).await.unwrap_err();
        assert!(matches!(error, RequestError::SessionGone) && connection.session_gone(), "{error:?}");
    }
}

#[tokio::test]
async fn what_the_server_says_on_its_stream_is_heard_and_answered_and_closing_ends_the_stream() {
    let server = serving(|_| None).await;
    let recorder = Arc::new(Recorder::default());
    let connection = opening(&server, options(), recorder.clone(), "/message").await.unwrap();
    server.push(": keep-alive\n\n");
    server.push(event(None, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#));
    server.push(event(None, r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#));
    assert_eq!(recorder.wait_for(1).await, ["notifications/tools/list_changed  listen"]);
    // A message without a method goes by that of HTTP.
    let answers = server.wait_for("POST", 1).await.unwrap();
    assert_eq!(answers.last().unwrap().json(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    assert_eq!(connection.stored_session().mcp_session_id, None);
    connection.close().await;
    server.wait_for_listeners(0).await.unwrap();
}
