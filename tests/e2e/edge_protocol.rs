//! Engines that break the rules of HTTP and MCP at the edge.

use std::{sync::Arc, time::Duration};

use gatehouse_proto::gateway::v1::PermissionMode;
use gatehouse_testkit::mcp_server::{Act, Reply};
use http::StatusCode;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
    time::timeout,
};

use crate::support::{
    Engine, Gate, Options,
    engine::text_of,
    fakes::{reading_tool, server, writing_tool},
};

async fn connect(gate: &Gate) -> TcpStream {
    let address = gate.mcp_url().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    TcpStream::connect(address).await.unwrap()
}

#[tokio::test]
async fn a_connection_without_a_whole_request_is_closed_after_half_a_minute() {
    let gate = Gate::start(Options::default()).await;
    let began = ["", "PRI * H", "POST /mcp HT", "POST /mcp HTTP/1.1\r\nhost: localhost\r\n"];
    let closed = began.map(async |words| {
        let mut stream = connect(&gate).await;
        stream.write_all(words.as_bytes()).await.unwrap();
        let read = timeout(Duration::from_secs(45), stream.read_to_end(&mut Vec::new())).await;
        assert!(read.is_ok(), "still open after {words:?}");
    });
    futures_util::future::join_all(closed).await;
}

#[tokio::test]
async fn a_forged_place_in_a_stream_does_not_hide_the_answer_or_break_anything() {
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let go = Arc::new(Notify::new());
    let waiting = Arc::clone(&go);
    let fake = server(vec![writing_tool("slow")], move |request, _| {
        let message =
            json!({"jsonrpc": "2.0", "id": request.id(), "result": {"content": [{"type": "text", "text": "late"}]}});
        let acts = vec![Act::Until(Arc::clone(&waiting)), Act::Write(message.to_string().into())];
        Some(Reply::acts(200, "application/json", acts))
    })
    .await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    let mut open = engine.start_call("s__slow", json!({})).await.events();
    let id = open.next().await.unwrap().id.unwrap();
    let [stream, _, request] = id.split('.').collect::<Vec<_>>().try_into().unwrap();
    let mut resumed = Vec::new();
    for place in ["0", "99", "18446744073709551615"] {
        let answer = engine.get(Some(&format!("{stream}.{place}.{request}"))).await;
        assert_eq!(answer.status, StatusCode::OK);
        resumed.push(answer);
    }
    go.notify_one();
    for answer in resumed {
        assert_eq!(text_of(&answer.message().await["result"]), "late");
    }
    assert!(!gate.printed().contains("panicked"), "{}", gate.printed());
    gate.stop().await;
}

#[tokio::test]
async fn messages_that_are_none_are_refused_with_the_id_when_there_is_one() {
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let fake = server(vec![reading_tool("echo")], |_, _| None).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    for (message, names_id) in [
        (json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]), false),
        (json!({"jsonrpc": "2.0", "id": null, "method": "ping"}), false),
        (json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}), true),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}), true),
    ] {
        let answer = engine.post(&message).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{message}");
        // An error with `id: null` would make Codex wait for the answer.
        assert_eq!(answer.content_type() == "application/json", names_id, "{message}");
    }
    for arguments in [json!([]), json!("x"), json!(7)] {
        let result = engine.call("s__echo", arguments).await;
        assert!(text_of(&result).contains("must be a JSON object"), "{result}");
    }
    assert_eq!(engine.delete().await, StatusCode::OK);
    assert_eq!(engine.request("ping", &json!({})).await.status, StatusCode::NOT_FOUND);
    assert_eq!(engine.get(None).await.status, StatusCode::NOT_FOUND);
    gate.stop().await;
}
