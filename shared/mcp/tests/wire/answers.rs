//! Answers, good and bad, and what each of them leaves untouched.

use std::{sync::Mutex, time::Duration};

use crate::common::{HI, call, call_with, http, open, options, try_open};
use bytes::Bytes;
use gatehouse_mcp::{Connection, OpenError, Params, Piece, RequestError, RequestOptions};
use gatehouse_outbound::Error as HttpError;
use gatehouse_testkit::mcp_server::{Act, FakeServer, Reply, Request, event};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// A server that answers `tools/call` as told, and everything else as an ordinary one.
async fn answering(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (FakeServer, Connection) {
    let server = FakeServer::start(move |request| (request.rpc() == "tools/call").then(|| reply(request)));
    let server = server.await.unwrap();
    let connection = open(&server).await;
    (server, connection)
}

/// The error of a call, after which another request on the same connection must still be answered.
async fn failing(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> RequestError {
    let (_server, connection) = answering(reply).await;
    let hurried = RequestOptions { timeout: Some(Duration::from_secs(5)), ..RequestOptions::default() };
    let error = call_with(&connection, hurried).await.unwrap_err();
    connection.request("ping", &Params::default(), RequestOptions::default()).await.expect("another request suffers");
    error
}

#[tokio::test]
async fn a_result_comes_out_byte_for_byte() {
    let result = r#"{ "content":[], "structuredContent":{"a":1.0,"b":1e3,"c":12345678901234567890123}, "task":{"ttl":60000,"pollInterval":5},"x-new":null }"#;
    let (_server, connection) = answering(move |request| {
        Reply::json(200, format!(r#"{{"result":{result},"jsonrpc":"2.0","id":{}}}"#, request.id()))
    })
    .await;
    let answer = call(&connection).await.unwrap();
    assert_eq!(answer.result_str(), result);
    assert_eq!(answer.result().get(), result);
    assert_eq!(answer.result_bytes(), result);
}

#[tokio::test]
async fn an_error_of_the_server_comes_out_with_its_data() {
    let error = failing(|request| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32042,"message":"go \"there\"","data":{{"elicitations":[1.0]}}}}}}"#,
            request.id()
        );
        Reply::json(200, body)
    })
    .await;
    let RequestError::Rpc { code, message, data, http_status } = error else { panic!("{error:?}") };
    assert_eq!((code, message.as_str(), http_status), (-32_042, "go \"there\"", 200));
    assert_eq!(data.unwrap().get(), r#"{"elicitations":[1.0]}"#);
}

#[tokio::test]
async fn statuses_are_told_apart() {
    let challenge = "Bearer resource_metadata=\"https://a/\"";
    let error = failing(move |_| Reply::json(401, "{}").with_header("www-authenticate", challenge)).await;
    assert!(
        matches!(&error, RequestError::Unauthorized { www_authenticate } if www_authenticate.as_deref() == Some(challenge))
    );
    assert!(error.certainly_not_carried_out());
    assert!(matches!(failing(|_| Reply::json(403, "{}")).await, RequestError::Forbidden { .. }));
    let busy = failing(|_| Reply::new(429, "text/plain", "slow down").with_header("retry-after", "7")).await;
    assert!(matches!(busy, RequestError::Http { status: 429, retry_after: Some(7) }), "{busy:?}");
    assert!(busy.certainly_not_carried_out());
    let broken = failing(|_| Reply::new(502, "text/html", "<html>bad gateway</html>")).await;
    assert!(matches!(broken, RequestError::Http { status: 502, .. }), "{broken:?}");
    assert!(!broken.certainly_not_carried_out());
    assert!(matches!(failing(|_| Reply::accepted()).await, RequestError::Protocol(_)));
}

#[tokio::test]
async fn html_is_said_to_be_no_mcp() {
    let error = failing(|_| Reply::new(200, "text/html; charset=utf-8", "<html>Welcome</html>")).await;
    assert_eq!(error.to_string(), "the server does not answer as an MCP server: the content type is text/html");
}

#[tokio::test]
async fn a_compressed_body_is_not_unpacked() {
    let error = failing(|_| Reply::json(200, "\u{1f}x").with_header("content-encoding", "gzip")).await;
    assert!(matches!(&error, RequestError::NotMcp(words) if words.contains("compressed")), "{error:?}");
}

#[tokio::test]
async fn ids_that_do_not_exist_break_only_their_call() {
    let error = failing(|_| Reply::json(200, json!({"jsonrpc": "2.0", "id": 999_999, "result": {}}).to_string())).await;
    assert!(matches!(error, RequestError::Protocol(_)), "{error:?}");
    let (_server, connection) = answering(|request| {
        let right = json!({"jsonrpc": "2.0", "id": request.id().to_string(), "result": {}}).to_string();
        Reply::stream([event(None, r#"{"jsonrpc":"2.0","id":999999,"result":{"wrong":true}}"#), event(None, &right)])
    })
    .await;
    assert_eq!(call(&connection).await.unwrap().result_str(), "{}");
    assert_eq!(connection.unknown_answers(), 1);
}

#[tokio::test]
async fn bodies_that_break_off_are_lost_and_may_have_been_carried_out() {
    let half: fn(&Request) -> Vec<Reply> = |request| {
        let body = json!({"jsonrpc": "2.0", "id": request.id(), "result": {}}).to_string();
        let head = |length: usize| {
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n")
        };
        let raw = |parts: &[&str]| {
            Reply::raw(parts.iter().map(|part| Act::Write(Bytes::copy_from_slice(part.as_bytes()))).collect())
        };
        vec![
            raw(&[&head(body.len()), &body[..10]]),
            raw(&[&head(body.len() + 100), &body]),
            raw(&[&head(body.len())]),
            raw(&["HTTP/1.1 200 OK\r\ncontent-type: appl"]),
            raw(&[]),
            raw(&["HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"js"]),
            raw(&["SSH-2.0-OpenSSH_9.2\r\n"]),
        ]
    };
    for way in 0..7 {
        let error = failing(move |request| half(request).swap_remove(way)).await;
        assert!(matches!(error, RequestError::Lost(_)), "way {way}: {error:?}");
        assert!(!error.certainly_not_carried_out());
    }
}

#[tokio::test]
async fn a_length_that_is_too_short_harms_only_its_call() {
    let error = failing(|request| {
        let body = json!({"jsonrpc": "2.0", "id": request.id(), "result": {}}).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n";
        Reply::raw(vec![Act::Write(format!("{head}{body}").into())])
    })
    .await;
    assert!(matches!(error, RequestError::Protocol(_)), "{error:?}");
}

#[tokio::test]
async fn what_is_too_large_is_not_read_to_the_end() {
    let small = || gatehouse_mcp::Options { most_message_bytes: 64 << 10, most_stream_bytes: 128 << 10, ..options() };
    let block = Bytes::from(vec![b'x'; 16 << 10]);
    let comment = Bytes::from(format!(":{}\n", "x".repeat(8 << 10)));
    let replies = [
        // Says that a gigabyte is to come.
        Reply::raw(vec![
            Act::Write(Bytes::from_static(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n",
            )),
            Act::Hang,
        ]),
        Reply::acts(200, "application/json", vec![Act::Forever(block.clone())]),
        Reply::acts(200, "text/event-stream", vec![Act::Write(Bytes::from_static(b"data: ")), Act::Forever(block)]),
        Reply::acts(200, "text/event-stream", vec![Act::Forever(comment)]),
    ];
    for reply in replies {
        let server = FakeServer::start(move |request| (request.rpc() == "tools/call").then(|| reply.clone()));
        let server = server.await.unwrap();
        let connection = try_open(&server, small(), std::sync::Arc::new(())).await.unwrap();
        let error = call(&connection).await.unwrap_err();
        assert!(matches!(error, RequestError::TooLarge { .. }), "{error:?}");
        connection.request("ping", &Params::default(), RequestOptions::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_deeply_nested_answer_is_refused() {
    let error = failing(|request| {
        let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
        Reply::json(200, format!(r#"{{"jsonrpc":"2.0","id":{},"result":{open}{close}}}"#, request.id()))
    })
    .await;
    assert_eq!(error.to_string(), "the server broke the protocol: in its answer the message is nested too deeply");
}

#[tokio::test]
async fn silence_and_dripping_end_at_the_deadline_and_the_server_is_told() {
    let byte = [Act::Write(Bytes::from_static(b"{")), Act::Pause(Duration::from_millis(50))];
    let dripping: Vec<Act> = std::iter::repeat_n(byte, 400).flatten().collect();
    let replies = [
        Reply::raw(vec![Act::Hang]),
        Reply::acts(200, "application/json", dripping.clone()),
        Reply::acts(200, "text/event-stream", dripping),
    ];
    for reply in replies {
        let (server, connection) = answering(move |_| reply.clone()).await;
        let hurried = RequestOptions { timeout: Some(Duration::from_millis(400)), ..RequestOptions::default() };
        let error = call_with(&connection, hurried).await.unwrap_err();
        assert!(matches!(error, RequestError::TimedOut), "{error:?}");
        let told = server.wait_for("notifications/cancelled", 1).await.unwrap();
        assert_eq!(told[0].json()["params"]["requestId"], server.requests_of("tools/call")[0].id());
    }
}

#[tokio::test]
async fn taking_a_request_back_ends_it_at_once_and_the_server_is_told() {
    let (server, connection) = answering(|_| Reply::raw(vec![Act::Hang])).await;
    let cancel = CancellationToken::new();
    let taken_back = RequestOptions { cancel: Some(&cancel), ..RequestOptions::default() };
    let (outcome, ()) = tokio::join!(call_with(&connection, taken_back), async {
        server.wait_for("tools/call", 1).await.unwrap();
        cancel.cancel();
    });
    assert!(matches!(outcome, Err(RequestError::Cancelled)), "{outcome:?}");
    let told = server.wait_for("notifications/cancelled", 1).await.unwrap();
    assert_eq!(told[0].json()["params"]["requestId"], server.requests_of("tools/call")[0].id());

    let again = call_with(&connection, taken_back).await;
    assert!(matches!(again, Err(RequestError::Cancelled)), "{again:?}");
    assert_eq!(server.requests_of("tools/call").len(), 1, "what is taken back before it is sent is not sent");
}

#[tokio::test]
async fn where_nobody_listens_nothing_was_carried_out() {
    let server = FakeServer::ordinary().await.unwrap();
    let connection = open(&server).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let endpoint = gatehouse_mcp::Endpoint {
        target: gatehouse_outbound::Target::parse(&nobody).unwrap(),
        headers: http::HeaderMap::new(),
    };
    let stored = connection.stored_session();
    let nowhere = Connection::resume(http(), endpoint, options(), std::sync::Arc::new(()), stored).unwrap();
    let error = call(&nowhere).await.unwrap_err();
    assert!(matches!(error, RequestError::NotSent(HttpError::ConnectionRefused)), "{error:?}");
    assert!(error.certainly_not_carried_out() && error.needs_new_connection());
}

#[tokio::test]
async fn redirects_lead_nowhere_but_within_the_origin() {
    let other = FakeServer::ordinary().await.unwrap();
    let elsewhere = other.url();
    for (location, words) in [
        (elsewhere.as_str(), "another origin"),
        ("http://169.254.169.254/latest/meta-data/", "another origin"),
        ("file:///etc/passwd", "not an http URL"),
    ] {
        let location = location.to_owned();
        let server =
            FakeServer::start(move |_| Some(Reply::json(307, "").with_header("location", &location))).await.unwrap();
        let error = try_open(&server, options(), std::sync::Arc::new(())).await.unwrap_err();
        assert!(matches!(&error, OpenError::Request(RequestError::NotMcp(_))), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn progress_asked_for_is_reported_and_starts_the_clock_anew() {
    let (server, connection) = answering(|request| {
        let report = |step: u32| {
            let params = json!({"progressToken": request.id(), "progress": step, "total": 6, "message": "on it"});
            let text = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string();
            [Act::Pause(Duration::from_millis(300)), Act::Write(event(None, &text).into())]
        };
        let answer = json!({"jsonrpc": "2.0", "id": request.id(), "result": {}}).to_string();
        let acts = (1..=6).flat_map(report).collect();
        Reply::acts(200, "text/event-stream", acts).then(Act::Write(event(None, &answer).into()))
    })
    .await;
    let seen = Mutex::new(Vec::new());
    let note = |progress: gatehouse_mcp::Progress<'_>| {
        let total = progress.total.map(|total| total.get().to_owned());
        seen.lock().unwrap().push((progress.progress.get().to_owned(), total, progress.message.map(String::from)));
    };
    // Shorter than the whole call, longer than any pause in it.
    let options = RequestOptions {
        timeout: Some(Duration::from_millis(1_500)),
        on_progress: Some(&note),
        ..RequestOptions::default()
    };
    call_with(&connection, options).await.unwrap();
    let one = |step: &str| (step.to_owned(), Some("6".to_owned()), Some("on it".to_owned()));
    assert_eq!(*seen.lock().unwrap(), ["1", "2", "3", "4", "5", "6"].map(one));
    let sent = server.requests_of("tools/call")[0].json();
    assert_eq!(sent["params"]["_meta"]["progressToken"], sent["id"]);
}

#[tokio::test]
async fn many_requests_at_once_get_their_own_answers() {
    let server = FakeServer::ordinary().await.unwrap();
    let connection = std::sync::Arc::new(open(&server).await);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..200 {
        let connection = connection.clone();
        calls.spawn(async move {
            let arguments = format!(r#"{{"message":"m{number}"}}"#);
            let members = [("name", Piece::Text("echo")), ("arguments", Piece::Json(&arguments))];
            let answer = connection.request("tools/call", &Params::new(&members), RequestOptions::default()).await;
            assert_eq!(answer.unwrap().result_str(), HI.replace("hi", &format!("m{number}")));
        });
    }
    calls.join_all().await;
    let mut ids: Vec<_> =
        server.requests_of("tools/call").iter().map(|request| request.id().as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1_001..1_201).collect::<Vec<_>>());
}
