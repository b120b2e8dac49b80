//! Lists that change while engines are at work.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use gatehouse_proto::gateway::v1::{BeginRunRequest, EndRunRequest, PermissionMode};
use gatehouse_testkit::eventually;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    listing::growing,
    support::{
        Engine, Gate, Options,
        engine::{Events, text_of},
        peers::{REFERENCE_TOKEN, reference},
    },
};

const NOTICE: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";

async fn assert_announced(notices: &mut Events) {
    let event = timeout(Duration::from_secs(30), notices.message()).await.unwrap().unwrap();
    assert_eq!(event.data["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_change_during_a_run_is_announced_once_at_its_end_without_waiting_for_quiet() {
    let mut gate = Gate::start(Options::default()).await;
    let (admin, more) = (gate.admin(), Arc::new(AtomicUsize::new(0)));
    let fake = growing(&more).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (session, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    let run = BeginRunRequest { session, ..Default::default() };
    let run = admin.sessions().begin_run(run).await.unwrap().into_inner().run.unwrap().id;
    assert_eq!(text_of(&engine.call("s__echo", json!({"message": "x"})).await), "x");
    fake.wait_for_listeners(1).await.unwrap();
    let mut notices = engine.get(None).await.events();
    // Another session, without runs, shows when quiet alone would have been enough.
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let other = Engine::connect(&gate, &token).await;
    let mut others = other.get(None).await.events();
    assert_eq!(text_of(&other.call("s__echo", json!({"message": "x"})).await), "x");
    for count in 1..=3 {
        more.store(count, Ordering::Relaxed);
        fake.push(NOTICE);
    }
    assert_announced(&mut others).await;
    assert!(timeout(Duration::from_millis(200), notices.message()).await.is_err(), "announced in mid-turn");
    assert_eq!(text_of(&engine.call("s__echo", json!({"message": "x"})).await), "x");
    let ended = Instant::now();
    admin.sessions().end_run(EndRunRequest { run_id: run }).await.unwrap();
    assert_announced(&mut notices).await;
    assert!(ended.elapsed() < Duration::from_secs(4), "waited for quiet: {:?}", ended.elapsed());
    assert_eq!(engine.list().await.len(), 4);
    let (rest, others, ()) = tokio::join!(notices.message(), others.message(), gate.stop());
    assert_eq!((rest, others), (None, None), "once for all changes");
}

#[tokio::test]
async fn a_tool_that_the_reference_server_switches_on_is_announced_listed_and_called() {
    let orders = reference().await;
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let bearer = format!("Bearer {REFERENCE_TOKEN}");
    admin.listed_server("orders", &orders.url, &[("Authorization", &bearer)]).await;
    admin.profile("all", &["orders"]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    let mut notices = engine.get(None).await.events();
    let beta = "orders__summarize_orders";
    assert!(!engine.names().await.contains(&beta.to_owned()));
    let refused = engine.call(beta, json!({})).await;
    assert!(text_of(&refused).contains("there is no tool"), "{refused}");
    let enabled = engine.call("orders__enable_beta", json!({})).await;
    assert!(text_of(&enabled).contains("summarize_orders"), "{enabled}");
    assert_announced(&mut notices).await;
    assert!(engine.names().await.contains(&beta.to_owned()));
    let summary = eventually("the tool answers", async || {
        let result = engine.call(beta, json!({})).await;
        (result["isError"] != true).then_some(result)
    })
    .await;
    let summary: Value = serde_json::from_str(text_of(&summary)).unwrap();
    assert_eq!(summary["states"].as_array().unwrap().len(), 3);
    let (rest, ()) = tokio::join!(notices.message(), gate.stop());
    assert_eq!(rest, None, "one notice");
}
