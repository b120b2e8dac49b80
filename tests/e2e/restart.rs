//! The process dies, or is told to end, in the middle of a call.

use std::time::{Duration, Instant};

use gatehouse_proto::gateway::v1::{Call, CallOutcome, ListCallsRequest, PermissionMode};
use gatehouse_testkit::mcp_server::{Act, FakeServer, Reply};
use http::StatusCode;
use serde_json::json;

use crate::support::{
    Engine, Gate, Options,
    engine::{Events, text_of},
    fakes::{reading_tool, server, sessions_of_calls, writing_tool},
    within,
};

/// A server whose tool `change` never answers.
async fn hanging() -> FakeServer {
    let tools = vec![reading_tool("echo"), writing_tool("change")];
    server(tools, |_, tool| (tool == "change").then(|| Reply::raw(vec![Act::Hang]))).await
}

/// A gate, an engine that has called `echo`, and the open stream of its call of `change`.
async fn in_mid_call(fake: &FakeServer) -> (Gate, Engine, Events) {
    let gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    admin.listed_server("shop", &fake.url(), &[]).await;
    admin.profile("all", &["shop"]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    assert_eq!(engine.names().await, ["shop__echo", "shop__change"]);
    assert_eq!(text_of(&engine.call("shop__echo", json!({"message": "before"})).await), "before");
    let open = engine.start_call("shop__change", json!({"order": 7})).await.events();
    fake.wait_for("tools/call", 2).await.unwrap();
    (gate, engine, open)
}

async fn change(gate: &Gate) -> Call {
    let filter = ListCallsRequest { tool: "change".into(), ..Default::default() };
    let mut calls = gate.admin().calls(filter).await;
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls.remove(0)
}

#[tokio::test]
async fn after_kill_9_in_mid_call_the_session_goes_on_and_the_audit_says_interrupted() {
    let fake = hanging().await;
    let (mut gate, mut engine, mut open) = in_mid_call(&fake).await;
    let priming = open.next().await.unwrap().id.expect("events of this revision have ids");
    assert_eq!(change(&gate).await.outcome(), CallOutcome::Running, "recorded before it was sent");
    gate.kill9();
    let killed = Instant::now();
    assert_eq!(open.next().await, None, "the stream broke");
    gate.restart().await;

    // The old token and the old MCP session id, without another `initialize`.
    assert_eq!(engine.names().await, ["shop__echo", "shop__change"]);
    assert_eq!(text_of(&engine.call("shop__echo", json!({"message": "after"})).await), "after");
    let resumed = engine.get(Some(&priming)).await.message().await;
    assert_eq!(resumed["id"], 4, "the answer to the call that was open: {resumed}");
    assert_eq!(resumed["result"]["isError"], true);
    assert!(text_of(&resumed["result"]).contains("may or may not have been carried out"), "{resumed}");
    assert_eq!(sessions_of_calls(&fake).len(), 1, "the MCP session at the server was taken up again");
    assert_eq!(fake.requests_of("tools/call").len(), 3, "nothing was sent twice");

    let interrupted = within(Duration::from_secs(45), "the call is closed as interrupted", async || {
        let call = change(&gate).await;
        (call.outcome() != CallOutcome::Running).then_some(call)
    })
    .await;
    assert_eq!(interrupted.outcome(), CallOutcome::Interrupted, "{interrupted:?}");
    assert!(interrupted.error.contains("may or may not have been carried out"), "{interrupted:?}");
    eprintln!("interrupted {:.1} s after the kill", killed.elapsed().as_secs_f64());

    // An MCP session that is not known is a 404, after which the engine begins a new one with the same token.
    engine.session = format!("{}x", &engine.session[..87]);
    assert_eq!(engine.request("tools/list", &json!({})).await.status, StatusCode::NOT_FOUND);
    engine.session.clear();
    engine.initialize().await;
    assert_eq!(text_of(&engine.call("shop__echo", json!({"message": "again"})).await), "again");
    gate.stop().await;
}

#[tokio::test]
async fn sigterm_answers_open_calls_and_ends_streams_and_the_next_process_goes_on() {
    let fake = hanging().await;
    let (mut gate, engine, open) = in_mid_call(&fake).await;
    let mut notices = engine.get(None).await.events();
    let began = Instant::now();
    let (answer, notice, ()) = tokio::join!(open.answer(), notices.message(), gate.stop());
    eprintln!("ended {:.1} s after SIGTERM", began.elapsed().as_secs_f64());
    assert_eq!(answer["id"], 4);
    assert_eq!(answer["result"]["isError"], true);
    assert!(text_of(&answer["result"]).contains("may or may not have been carried out"), "{answer}");
    assert_eq!(notice, None, "the stream of notifications ended");

    gate.restart().await;
    let call = change(&gate).await;
    assert_eq!(call.outcome(), CallOutcome::Unknown, "{call:?}");
    assert_eq!(text_of(&engine.call("shop__echo", json!({"message": "after"})).await), "after");
    assert_eq!(sessions_of_calls(&fake).len(), 1, "the MCP session at the server was taken up again");
    assert!(
        fake.requests_of("DELETE").iter().all(|end| end.header("mcp-session-id") != Some(&sessions_of_calls(&fake)[0]))
    );
    gate.stop().await;
}
