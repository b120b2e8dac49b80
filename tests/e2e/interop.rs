//! Official clients and official servers, with the gateway between them.

use gatehouse_proto::gateway::v1::{CallOutcome, ListCallsRequest, PermissionMode};
use gatehouse_testkit::eventually;
use serde_json::{Value, json};

use crate::support::{
    Gate, Options,
    engine::whole_text,
    peers::{Client, REFERENCE_TOKEN, everything, reference},
};

/// Each official client in each era that it speaks, and the revision that it must come to.
const CLIENTS: [(Client, &str, &str); 7] = [
    (Client::TypeScript, "legacy", "2025-11-25"),
    (Client::Python, "legacy", "2025-11-25"),
    (Client::Inspector, "legacy", ""),
    (Client::TypeScript2, "auto", "2026-07-28"),
    (Client::TypeScript2, "modern", "2026-07-28"),
    (Client::Python, "modern", "2026-07-28"),
    (Client::Inspector, "modern", ""),
];

/// What a client calls, with a text that the answer must hold and whether it is an error.
fn calls(client: Client) -> Vec<(Value, &'static str, bool)> {
    let mut calls = vec![
        (json!(["orders__get_order", {"orderId": "A1001"}]), "A1001", false),
        (json!(["orders__list_orders", {}]), "A1002", false),
        (json!(["orders__add_note", {"orderId": "A1001", "text": "left at the door"}]), "A1001", false),
        (json!(["orders__get_order", {"orderId": "no-such-order"}]), "Error", true),
        (json!(["everything__echo", {"message": "caf\u{e9} \u{1f600}"}]), "caf\u{e9} \u{1f600}", false),
        (json!(["everything__get-sum", {"a": 19, "b": 23}]), "42", false),
        (json!(["everything__no-such-tool", {}]), "there is no tool", true),
    ];
    // Inspector looks a tool up in the list and does not ask for one that is not there.
    if client == Client::Inspector {
        calls.pop();
    }
    calls
}

fn assert_answer(client: Client, answer: &Value) {
    let names: Vec<_> = answer["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in ["orders__get_order", "orders__list_orders", "orders__add_note", "orders__cancel_order"] {
        assert!(names.contains(&name), "{client:?} {names:?}");
    }
    for name in ["everything__echo", "everything__get-sum", "everything__get-tiny-image"] {
        assert!(names.contains(&name), "{client:?} {names:?}");
    }
    for ((call, text, is_error), answered) in calls(client).iter().zip(answer["calls"].as_array().unwrap()) {
        let result = &answered["result"];
        assert!(result.is_object(), "{client:?} {answered}");
        assert_eq!(answered["name"], call[0], "{client:?}");
        assert!(whole_text(result).contains(text), "{client:?} {call} {answered}");
        assert_eq!(result["isError"].as_bool().unwrap_or(false), *is_error, "{client:?} {call} {answered}");
        assert!(result.get("structuredContent").is_none(), "{client:?} {answered}");
    }
}

#[tokio::test]
async fn the_official_clients_list_and_call_the_reference_server_and_server_everything() {
    let (orders, everything) = (reference().await, everything().await);
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let bearer = format!("Bearer {REFERENCE_TOKEN}");
    admin.listed_server("orders", &orders.url, &[("Authorization", &bearer)]).await;
    admin.listed_server("everything", &everything.url, &[]).await;
    admin.profile("all", &["orders", "everything"]).await;
    for (client, era, revision) in CLIENTS {
        let asked: Value = calls(client).into_iter().map(|(call, ..)| call).collect();
        let (session, token) = admin.session("all", PermissionMode::Auto).await;
        let answer = client.run(&gate.mcp_url(), &token, era, &asked).await;
        assert_eq!(answer["protocolVersion"].as_str().unwrap_or_default(), revision, "{client:?} {era}");
        assert_answer(client, &answer);
        let filter = ListCallsRequest { session, ..Default::default() };
        let rows = eventually("every call is in the audit", async || {
            let rows = admin.calls(filter.clone()).await;
            let done = rows.iter().all(|row| row.outcome() != CallOutcome::Running);
            (rows.len() == calls(client).len() && done).then_some(rows)
        })
        .await;
        let denied = rows.iter().filter(|row| row.outcome() == CallOutcome::Denied).count();
        let failed = rows.iter().filter(|row| row.outcome() == CallOutcome::ToolError).count();
        assert_eq!((denied, failed), (usize::from(client != Client::Inspector), 1), "{client:?} {era} {rows:?}");
    }
    gate.stop().await;
}
