//! Cards that end without an answer, and calls whose server or database goes away.

use std::time::Duration;

use gatehouse_proto::{
    gateway::v1::{
        CallOutcome, DeleteSessionRequest, ListCallsRequest, PermissionMode, ToolHints, UpdateServerRequest,
        UpdateToolRequest,
    },
    interaction::v1::{Decision, InteractionState},
};
use gatehouse_testkit::{eventually, mcp_server::Reply};
use serde_json::json;

use super::{Stage, error_of};
use crate::support::{
    Engine, Gate, Options,
    engine::text_of,
    fakes::{server, writing_tool},
    within,
};

#[tokio::test]
async fn a_card_closes_with_the_word_of_what_ended_it_and_nothing_runs() {
    let mut stage = Stage::set().await;
    stage.admin.set(&[("interactionTimeoutSec", json!(1))]).await;
    let events = stage.held("s__change", "late").await;
    let text = error_of(&events.answer().await);
    assert!(text.contains("nobody approved this call within 1 s"), "{text}");
    let closed = stage.people.list(&stage.session, InteractionState::TimedOut).await;
    assert_eq!(closed.len(), 1);
    let call = stage.audit("change").await;
    assert_eq!((call.outcome(), call.decision.as_str()), (CallOutcome::TimedOut, "timed_out"));
    stage.admin.set(&[("interactionTimeoutSec", json!(600))]).await;

    // The engine cancels.
    let mut events = stage.held("s__change", "cancelled").await;
    events.message().await.unwrap();
    let card = stage.people.card(&stage.session).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    stage.engine.post(&cancelled).await;
    stage.people.becomes(&card.id, InteractionState::Cancelled).await;
    assert!(!stage.people.say(&card.id, Decision::Approve, "").await.unwrap().counted);

    // The session is deleted.
    let events = stage.held("s__change", "deleted").await;
    let card = stage.people.card(&stage.session).await;
    let delete = DeleteSessionRequest { session: stage.session.clone() };
    stage.admin.sessions().delete_session(delete).await.unwrap();
    stage.people.becomes(&card.id, InteractionState::SessionDeleted).await;
    assert!(error_of(&events.answer().await).contains("Nothing was carried out"));
    assert_eq!(stage.sent(), 0);
    stage.gate.stop().await;
}

#[tokio::test]
async fn fifty_calls_that_wait_when_the_gateway_is_killed_never_run_and_their_cards_close() {
    const CALLS: usize = 50;
    let mut stage = Stage::set().await;
    let mut open = Vec::new();
    for number in 0..CALLS {
        let mut events = stage.held("s__change", &number.to_string()).await;
        let priming = events.next().await.unwrap().id.expect("events of this revision have ids");
        open.push((events, priming));
    }
    let cards = stage.people.open(&stage.session, CALLS).await;
    // The audit is written in batches: whoever is killed may lose the last one.
    eventually("all calls are recorded as waiting", async || {
        let filter = ListCallsRequest { tool: "change".into(), page_size: 500, ..Default::default() };
        (stage.admin.calls(filter).await.len() == CALLS).then_some(())
    })
    .await;
    stage.gate.kill9();
    stage.gate.restart().await;
    let (people, admin) = (stage.gate.people(), stage.gate.admin());

    // The engines ask for their answers.
    let resumed = stage.engine.get(Some(&open[0].1)).await.message().await;
    let text = error_of(&resumed);
    assert!(text.contains("Nothing was carried out") && text.contains("approv"), "{text}");
    within(Duration::from_mins(1), "every card is closed", async || {
        let closed = people.list(&stage.session, InteractionState::Interrupted).await;
        (closed.len() == CALLS).then_some(())
    })
    .await;
    for card in &cards {
        let late = people.say(&card.id, Decision::Approve, "").await.unwrap();
        assert!(!late.counted && late.interaction.unwrap().state() == InteractionState::Interrupted);
    }
    let calls = within(Duration::from_mins(1), "every call is closed", async || {
        let filter = ListCallsRequest { tool: "change".into(), page_size: 500, ..Default::default() };
        let calls = admin.calls(filter).await;
        calls.iter().all(|call| call.outcome() != CallOutcome::Running).then_some(calls)
    })
    .await;
    assert_eq!(calls.len(), CALLS);
    for call in &calls {
        assert_eq!((call.outcome(), call.decision.as_str()), (CallOutcome::Interrupted, "interrupted"), "{call:?}");
        assert!(call.error.contains("nothing was carried out"), "{call:?}");
    }
    assert_eq!(stage.sent(), 0);
    // Life goes on.
    let events = stage.held("s__change", "after").await;
    people.approve(&people.card(&stage.session).await.id).await;
    assert_eq!(text_of(&events.answer().await["result"]), "after");
    stage.gate.stop().await;
}

#[tokio::test]
async fn a_gateway_that_is_told_to_end_answers_calls_that_wait_for_approval() {
    let mut stage = Stage::set().await;
    let events = stage.held("s__change", "x").await;
    let card = stage.people.card(&stage.session).await;
    let (answer, ()) = tokio::join!(events.answer(), stage.gate.stop());
    let text = error_of(&answer);
    assert!(text.contains("Gatehouse is restarting") && text.contains("Nothing was carried out"), "{text}");
    stage.gate.restart().await;
    let closed = stage.gate.people().get(&card.id).await;
    assert_eq!(closed.state(), InteractionState::Interrupted, "closed before the process ended: {closed:?}");
    assert_eq!(stage.sent(), 0);
    stage.gate.stop().await;
}

/// A person takes longer than the server may.
#[tokio::test]
async fn a_held_call_is_kept_alive_and_none_of_its_clocks_runs() {
    let mut stage = Stage::set().await;
    let timeout = Some(prost_types::Duration { seconds: 1, nanos: 0 });
    let update = UpdateServerRequest { server: "s".into(), request_timeout: timeout, ..Default::default() };
    stage.admin.servers().update_server(update).await.unwrap();
    let mut events = stage.held("s__change", "late").await;
    let card = stage.people.card(&stage.session).await;
    let mut told = Vec::new();
    for _ in 0..2 {
        let progress = events.message().await.unwrap().data["params"].take();
        let words = progress["message"].as_str().unwrap();
        assert!(words.contains(&format!("gatehouse answer {} approve", card.id)), "{words}");
        told.push(progress["progress"].as_f64().unwrap());
    }
    assert!(told[0] < told[1], "progress grows: {told:?}");
    assert!(events.comments >= 2, "{}", events.comments);
    stage.people.approve(&card.id).await;
    assert_eq!(
        text_of(&events.answer().await["result"]),
        "late",
        "the server's own second begins when the call goes out"
    );
    assert_eq!(stage.audit("change").await.outcome(), CallOutcome::Ok);
    stage.gate.stop().await;
}

#[tokio::test]
async fn without_the_database_nothing_that_may_change_something_goes_out() {
    let mut stage = Stage::set_with(Options::default(), PermissionMode::Auto).await;
    stage.engine.call("s__change", json!({"message": "before"})).await;
    let before = stage.sent();
    stage.gate.database.refuse_connections().await.unwrap();
    for _ in 0..5 {
        let text = error_of(&json!({"result": stage.engine.call("s__change", json!({"message": "cut off"})).await}));
        assert!(text.contains("Nothing was carried out"), "{text}");
    }
    assert_eq!(stage.sent(), before);
    stage.gate.database.allow_connections().await.unwrap();
    within(Duration::from_secs(30), "calls go out again", async || {
        let result = stage.engine.call("s__change", json!({"message": "after"})).await;
        result.get("isError").is_none().then_some(())
    })
    .await;
    stage.gate.stop().await;
}

#[tokio::test]
async fn a_call_that_was_approved_is_not_sent_a_second_time_when_its_connection_is_lost() {
    let gate = Gate::start(Options::default()).await;
    let mut gate = gate;
    let (admin, people) = (gate.admin(), gate.people());
    let fake = server(vec![writing_tool("change")], |_, _| Some(Reply::raw(Vec::new()))).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (session, token) = admin.session("all", PermissionMode::Ask).await;
    let engine = Engine::connect(&gate, &token).await;
    let events = engine.start_call("s__change", json!({})).await.events();
    people.approve(&people.card(&session).await.id).await;
    let text = error_of(&events.answer().await);
    assert!(text.contains("may or may not have been carried out"), "{text}");
    assert_eq!(fake.requests_of("tools/call").len(), 1);
    let call = admin.ended_call("change").await;
    assert_eq!((call.outcome(), call.retries), (CallOutcome::Unknown, 0), "{call:?}");

    // Idempotent: sent once more, within the same approval, and the audit counts it.
    let set = Some(ToolHints { idempotent: Some(true), ..Default::default() });
    let request = UpdateToolRequest { server: "s".into(), tool: "change".into(), set, ..Default::default() };
    admin.tools().update_tool(request).await.unwrap();
    let events = engine.start_call("s__change", json!({})).await.events();
    people.approve(&people.card(&session).await.id).await;
    error_of(&events.answer().await);
    assert_eq!(fake.requests_of("tools/call").len(), 3);
    let retried = eventually("the retried call has ended", async || {
        let retried = admin.ended_call("change").await;
        (retried.id != call.id).then_some(retried)
    })
    .await;
    assert_eq!((retried.retries, retried.decision.as_str()), (1, "approved"), "{retried:?}");
    assert!(people.open(&session, 0).await.is_empty());
    gate.stop().await;
}
