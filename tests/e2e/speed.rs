//! How answers begin: at once whatever the servers do, plain when quick, as a stream when not.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gatehouse_proto::gateway::v1::{CallOutcome, PermissionMode};
use gatehouse_testkit::mcp_server::{Act, FakeServer, Reply, event};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{
    Engine, Gate, Options,
    engine::text_of,
    fakes::{reading_tool, server, writing_tool},
};

/// For `initialize` and `tools/list`, whatever the servers do.
const AT_ONCE: Duration = Duration::from_millis(100);
/// For the headers of the answer to `tools/call`.
const HEADERS_WITHIN: Duration = Duration::from_secs(1);
/// How often each is asked for. The servers hang every time, so that one answer in time shows that it waits for none of them; a
/// later one may only show that the machine was busy.
const TRIES: usize = 5;
/// What even a busy machine keeps to; a wait for a server would be longer.
const BUSY: Duration = Duration::from_secs(1);
/// The same for headers, which begin to be sent a little before the second is over.
const HEADERS_BUSY: Duration = Duration::from_millis(1_900);

/// A server with the ordinary answers, until `hangs`: then with none.
async fn until_it_hangs(hangs: &Arc<AtomicBool>) -> FakeServer {
    let hangs = Arc::clone(hangs);
    FakeServer::start(move |_| hangs.load(Ordering::Relaxed).then(|| Reply::raw(vec![Act::Hang]))).await.unwrap()
}

#[tokio::test]
async fn with_every_server_hanging_initialize_and_lists_answer_at_once_and_calls_begin_their_answer() {
    let gate = Gate::start(Options::default()).await;
    let (admin, hangs) = (gate.admin(), Arc::new(AtomicBool::new(false)));
    let fakes = [until_it_hangs(&hangs).await, until_it_hangs(&hangs).await, until_it_hangs(&hangs).await];
    for (name, fake) in ["a", "b", "c"].into_iter().zip(&fakes) {
        admin.listed_server(name, &fake.url(), &[]).await;
    }
    hangs.store(true, Ordering::Relaxed);
    admin.server("never_listed", &until_it_hangs(&hangs).await.url(), &[]).await;
    admin.profile("all", &["a", "b", "c", "never_listed"]).await;
    // Every list counts as old, so that each `tools/list` would have reason to ask the servers.
    admin.set(&[("tools.staleAfterSec", 1.into())]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let tools = ["a__echo", "b__echo", "c__echo"];

    let mut engine = Engine::new(&gate, &token);
    let (mut initialized, mut listed) = (Vec::new(), Vec::new());
    for _ in 0..TRIES {
        // A new MCP session each time.
        engine.session.clear();
        let began = Instant::now();
        engine.initialize().await;
        initialized.push(began.elapsed());
        let began = Instant::now();
        assert_eq!(engine.names().await, tools);
        listed.push(began.elapsed());
    }
    let (mut heads, mut open) = (Vec::new(), Vec::new());
    for tool in tools {
        let began = Instant::now();
        let answer = engine.start_call(tool, json!({"message": "hello"})).await;
        heads.push(began.elapsed());
        assert!(answer.is_stream(), "{} {:?}", answer.status, answer.headers);
        open.push(answer.events());
    }
    eprintln!("initialize {initialized:?}, tools/list {listed:?}, headers of calls {heads:?}");
    for times in [initialized, listed] {
        assert!(times.iter().any(|time| *time < AT_ONCE), "{times:?}");
        assert!(times.iter().all(|time| *time < BUSY), "{times:?}");
    }
    assert!(heads.iter().any(|head| *head < HEADERS_WITHIN), "{heads:?}");
    assert!(heads.iter().all(|head| *head < HEADERS_BUSY), "{heads:?}");
    // While these calls wait, lists and pings answer.
    assert_eq!(engine.names().await, tools);
    assert_eq!(engine.request("ping", &json!({})).await.message().await["result"], json!({}));
    drop(open);
}

/// A server whose tool `work` reports progress twice and then waits until it is told to finish.
async fn worker(finish: &Arc<Notify>) -> FakeServer {
    let finish = Arc::clone(finish);
    let tools = vec![reading_tool("echo"), writing_tool("work"), writing_tool("silent")];
    server(tools, move |request, tool| {
        let report = |progress: &str, total: &str, message: &str| {
            let token = request.json()["params"]["_meta"]["progressToken"].clone();
            let params =
                format!(r#"{{"progressToken":{token},"progress":{progress},"total":{total},"message":"{message}"}}"#);
            event(None, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#))
        };
        let result = json!({"content": [{"type": "text", "text": "done"}]});
        let answer = event(None, &json!({"jsonrpc": "2.0", "id": request.id(), "result": result}).to_string());
        let reports =
            [Act::Write(report("0.50", "2", "half").into()), Act::Write(report("1e0", "2.0", "whole").into())];
        let end = [Act::Until(Arc::clone(&finish)), Act::Write(answer.into())];
        match tool {
            "work" => Some(Reply::acts(200, "text/event-stream", reports.into_iter().chain(end).collect())),
            "silent" => Some(Reply::raw(vec![Act::Hang])),
            _ => None,
        }
    })
    .await
}

#[tokio::test]
async fn quick_results_are_plain_json_progress_has_the_engines_token_and_cancelling_reaches_the_server() {
    let mut gate = Gate::start(Options::default()).await;
    let (admin, finish) = (gate.admin(), Arc::new(Notify::new()));
    let fake = worker(&finish).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;

    let quick = engine.start_call("s__echo", json!({"message": "quick"})).await;
    assert_eq!(quick.content_type(), "application/json");
    assert_eq!(text_of(&quick.message().await["result"]), "quick");

    for token in [json!("engine-token"), json!(7)] {
        let mut open = engine.call_with_progress("s__work", json!({}), token.clone()).await.events();
        let (first, second) = (open.message().await.unwrap().data, open.message().await.unwrap().data);
        assert_eq!(first["method"], "notifications/progress");
        assert_eq!(first["params"], json!({"progressToken": token, "progress": 0.5, "total": 2, "message": "half"}));
        assert_eq!(second["params"]["message"], "whole");
        assert_eq!(second["params"]["progressToken"], token);
        finish.notify_one();
        assert_eq!(text_of(&open.answer().await["result"]), "done");
    }
    let sent: Vec<_> = fake
        .requests_of("tools/call")
        .iter()
        .map(|call| call.json()["params"]["_meta"]["progressToken"].clone())
        .collect();
    assert!(!sent.contains(&json!("engine-token")) && !sent.contains(&json!(7)), "the server has tokens of its own");

    // Without a token there is no progress, only the answer.
    let plain = engine.start_call("s__work", json!({})).await.events();
    finish.notify_one();
    assert_eq!(text_of(&plain.answer().await["result"]), "done");

    let open = engine.start_call("s__silent", json!({})).await.events();
    let asked = fake.requests_of("tools/call").pop().unwrap();
    let rpc_id = 6;
    engine.post(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": rpc_id}})).await;
    let told = fake.wait_for("notifications/cancelled", 1).await.unwrap().remove(0);
    assert_eq!(told.json()["params"]["requestId"], asked.id(), "the server's own id");
    let answer = open.answer().await;
    assert_eq!(answer["id"], rpc_id);
    assert!(text_of(&answer["result"]).contains("cancelled"), "{answer}");
    assert_eq!(admin.ended_call("silent").await.outcome(), CallOutcome::Cancelled);
    gate.stop().await;
}
