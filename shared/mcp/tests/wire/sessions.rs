//! Opening, taking up again and closing, against a server on a socket.

use std::{sync::Arc, time::Duration};

use crate::common::{HI, call, endpoint, http, open, options, try_open};
use gatehouse_mcp::{Connection, OpenError, RequestError, RequestOptions};
use gatehouse_testkit::mcp_server::{Act, FakeServer, Reply, Request, SESSION, event, initialize_result};
use serde_json::json;

#[tokio::test]
async fn opening_initialises_with_the_headers_that_the_specification_demands() {
    let server = FakeServer::ordinary().await.unwrap();
    let connection = open(&server).await;
    assert_eq!(call(&connection).await.unwrap().result_str(), HI);

    let requests = server.requests();
    let methods: Vec<_> = requests.iter().map(Request::rpc).collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/call"]);
    let initialize = &requests[0];
    assert_eq!(
        initialize.body,
        r#"{"jsonrpc":"2.0","id":1000,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"gatehouse","version":"0.1.0"}}}"#
    );
    assert_eq!(initialize.header("mcp-session-id"), None);
    assert_eq!(initialize.header("mcp-protocol-version"), None);
    for request in &requests {
        assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(request.header("accept-encoding"), Some("identity"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("x-api-key"), Some("k"));
        assert_eq!(request.header("host"), Some(server.address().to_string().as_str()));
    }
    for request in &requests[1..] {
        assert_eq!(request.header("mcp-session-id"), Some(SESSION));
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"));
    }
}

#[tokio::test]
async fn the_revisions_of_real_servers_are_accepted_and_others_are_not() {
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07", "2026-07-28", "x"] {
        let server = FakeServer::start(move |request| {
            let mut result = initialize_result();
            result["protocolVersion"] = json!(version);
            let reply = || Reply::result(request, &result).with_header("mcp-session-id", SESSION);
            (request.rpc() == "initialize").then(reply)
        });
        let server = server.await.unwrap();
        let opened = try_open(&server, options(), Arc::new(())).await;
        if gatehouse_mcp::ACCEPTED_VERSIONS.contains(&version) {
            let connection = opened.unwrap();
            call(&connection).await.unwrap();
            assert_eq!(server.requests_of("tools/call")[0].header("mcp-protocol-version"), Some(version));
        } else {
            assert!(matches!(opened, Err(OpenError::UnsupportedVersion { version: named }) if named == version));
            assert_eq!(server.requests_of("DELETE").len(), 1, "the session that was begun is ended");
            assert!(server.requests_of("notifications/initialized").is_empty());
        }
    }
}

#[tokio::test]
async fn initialize_may_be_answered_on_a_stream_and_without_a_session() {
    let server = FakeServer::start(|request| {
        let answer = json!({"jsonrpc": "2.0", "id": request.id(), "result": initialize_result()}).to_string();
        (request.rpc() == "initialize")
            .then(|| Reply::stream(["id: 0\ndata:\n\n".to_owned(), event(Some("1"), &answer)]))
    });
    let server = server.await.unwrap();
    let connection = open(&server).await;
    call(&connection).await.unwrap();
    assert_eq!(connection.stored_session().mcp_session_id, None);
    assert_eq!(server.requests_of("tools/call")[0].header("mcp-session-id"), None);
    connection.close().await;
    assert!(server.requests_of("DELETE").is_empty(), "there is no session to end");
}

#[tokio::test]
async fn what_initialize_says_is_kept_to_the_byte_and_read_leniently() {
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"requests":{"tools":{"call":{}}}},"x":1.0},"serverInfo":{"name":"n","version":7},"instructions":null,"zz":1e3}"#;
    let server = FakeServer::start(move |request| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.id());
        (request.rpc() == "initialize").then(|| Reply::json(200, body))
    });
    let server = server.await.unwrap();
    let connection = open(&server).await;
    assert_eq!(connection.initialize_result().result_str(), result);
    let view = connection.view();
    assert_eq!(view.capability("tasks").unwrap().get(), r#"{"list":{},"requests":{"tools":{"call":{}}}}"#);
    assert!(view.capability("tools").is_none());
    assert_eq!(view.server(), (Some("n".into()), None));
    assert_eq!(view.instructions, None);
}

#[tokio::test]
async fn a_stored_session_is_taken_up_again_without_initialize() {
    let server = FakeServer::ordinary().await.unwrap();
    let connection = open(&server).await;
    let stored = connection.stored_session();
    drop(connection);
    assert!(!format!("{stored:?}").contains(SESSION), "a session id is a secret");
    let again = Connection::resume(http(), endpoint(&server), options(), Arc::new(()), stored.clone()).unwrap();
    assert_eq!(call(&again).await.unwrap().result_str(), HI);
    assert_eq!(again.stored_session(), stored);
    assert_eq!(server.requests_of("initialize").len(), 1);
    assert_eq!(server.requests_of("tools/call")[0].header("mcp-session-id"), Some(SESSION));
}

#[tokio::test]
async fn the_many_ways_to_say_that_a_session_is_unknown_are_understood() {
    let ways = [
        (
            404,
            "application/json",
            r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#,
        ),
        (404, "text/plain", "not found"),
        (
            400,
            "application/json",
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
        ),
        (
            400,
            "application/json",
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
        ),
        (
            400,
            "application/json; charset=utf-8",
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}"#,
        ),
    ];
    for (status, kind, body) in ways {
        let server =
            FakeServer::start(move |request| (request.rpc() == "tools/call").then(|| Reply::new(status, kind, body)));
        let server = server.await.unwrap();
        let connection = open(&server).await;
        let error = call(&connection).await.unwrap_err();
        assert!(matches!(error, RequestError::SessionGone), "{status} {body}: {error:?}");
        assert!(error.certainly_not_carried_out() && connection.session_gone());
    }
}

#[tokio::test]
async fn a_404_about_the_method_and_a_400_about_the_version_leave_the_session_alone() {
    let server = FakeServer::start(|request| match request.rpc().as_str() {
        "tools/call" => Some(Reply::error(404, &request.id(), -32_601, "Method not found")),
        "ping" => {
            Some(Reply::error(400, &serde_json::Value::Null, -32_000, "Bad Request: Unsupported protocol version: x"))
        }
        _ => None,
    });
    let server = server.await.unwrap();
    let connection = open(&server).await;
    let error = call(&connection).await.unwrap_err();
    assert!(matches!(error, RequestError::Rpc { code: -32_601, http_status: 404, .. }), "{error:?}");
    let ping = connection.request("ping", &gatehouse_mcp::Params::default(), RequestOptions::default()).await;
    assert!(matches!(ping, Err(RequestError::Rpc { code: -32_000, http_status: 400, .. })), "{ping:?}");
    assert!(!connection.session_gone());
}

/// The server has read this very request: it may have carried it out, whatever its error says.
#[tokio::test]
async fn an_error_that_answers_the_request_by_its_id_is_its_answer_and_nothing_is_sent_again() {
    for (status, code, message) in
        [(404, -32_001, "order 17 not found"), (400, -32_000, "created, but: session not found in the CRM")]
    {
        let server = FakeServer::start(move |request| {
            (request.rpc() == "tools/call").then(|| Reply::error(status, &request.id(), code, message))
        });
        let server = server.await.unwrap();
        let connection = open(&server).await;
        let error = call(&connection).await.unwrap_err();
        assert!(matches!(&error, RequestError::Rpc { http_status, .. } if *http_status == status), "{error:?}");
        assert!(!connection.session_gone() && !error.certainly_not_carried_out());
        assert_eq!(server.requests_of("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn closing_ends_the_session_and_minds_no_refusal_and_no_silence() {
    for reply in [None, Some(Reply::json(405, "")), Some(Reply::json(500, ""))] {
        let server =
            FakeServer::start(move |request| reply.clone().filter(|_| request.method == "DELETE")).await.unwrap();
        open(&server).await.close().await;
        assert_eq!(server.requests_of("DELETE")[0].header("mcp-session-id"), Some(SESSION));
    }
}

#[tokio::test]
async fn opening_a_silent_server_ends_in_time_and_cancels_nothing() {
    let server = FakeServer::start(|_| Some(Reply::raw(vec![Act::Hang]))).await.unwrap();
    let hurried = gatehouse_mcp::Options { connect_timeout: Duration::from_millis(200), ..options() };
    let error = try_open(&server, hurried, Arc::new(())).await.unwrap_err();
    assert!(matches!(error, OpenError::Request(RequestError::TimedOut)), "{error:?}");
    server.wait_for_connections(0).await.unwrap();
    assert!(server.requests_of("notifications/cancelled").is_empty(), "initialize must not be cancelled");
}

#[tokio::test]
async fn dropping_a_connection_ends_its_stream() {
    let server = FakeServer::start(|request| {
        (request.method == "GET").then(|| Reply::acts(200, "text/event-stream", vec![Act::Pushed]))
    });
    let server = server.await.unwrap();
    let listening = gatehouse_mcp::Options { listen: true, ..options() };
    let connection = try_open(&server, listening, Arc::new(())).await.unwrap();
    server.wait_for_listeners(1).await.unwrap();
    drop(connection);
    server.wait_for_listeners(0).await.unwrap();
}

#[tokio::test]
async fn renewed_headers_go_out_with_the_session() {
    let server = FakeServer::ordinary().await.unwrap();
    let connection = open(&server).await;
    connection
        .set_headers(http::HeaderMap::from_iter([("authorization".parse().unwrap(), "Bearer 2".parse().unwrap())]));
    call(&connection).await.unwrap();
    let sent = &server.requests_of("tools/call")[0];
    assert_eq!((sent.header("authorization"), sent.header("x-api-key")), (Some("Bearer 2"), None));
    assert_eq!(sent.header("mcp-session-id"), Some(SESSION));
}
