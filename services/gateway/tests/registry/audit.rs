//! `AuditService`.

use gatehouse_proto::gateway::v1::{self, CallOutcome};
use tonic::Code;

use crate::harness::{Gateway, refused, wrong_fields};

/// Ids that sort as they are counted.
fn id(number: u32) -> String {
    format!("0198f1c2-0000-7000-8000-{number:012}")
}

/// Writes a call that came `number` seconds after the epoch, with its tool and outcome.
async fn put(gateway: &Gateway, number: u32, session: &str, tool: &str, outcome: &str) {
    let outcome = if outcome.is_empty() { "NULL".to_owned() } else { format!("'{outcome}'") };
    let duration = if outcome == "NULL" { "NULL" } else { "1500000" };
    gateway
        .execute(&format!(
            "INSERT INTO calls (id, session_id, actor, run_id, server, tool, hints, outcome, started_at, duration_us,
                                retries, arguments, arguments_bytes, arguments_sha256, result_bytes, structured_result,
                                error, trace_id, replica_id)
             VALUES ('{}', '{session}', 'bot', '{}', 'orders', '{tool}', 9, {outcome}, to_timestamp({number}),
                     {duration}, 1, '{{\"a\":1}}', 7, '\\xab', 12, '{{\"b\":2}}', '', 'trace', '{}')",
            id(number),
            id(900),
            id(901),
        ))
        .await;
}

async fn list(
    gateway: &Gateway,
    request: v1::ListCallsRequest,
) -> Result<tonic::Response<v1::ListCallsResponse>, tonic::Status> {
    gateway.audit().list_calls(request).await
}

async fn numbers(gateway: &Gateway, request: v1::ListCallsRequest) -> Vec<i64> {
    let calls = list(gateway, request).await.unwrap().into_inner().calls;
    calls.iter().map(|call| call.started_at.unwrap().seconds).collect()
}

async fn start() -> (Gateway, String) {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    let request =
        v1::CreateSessionRequest { profile: "p".to_owned(), external_id: "e".to_owned(), ..Default::default() };
    let session = gateway.sessions().create_session(request).await.unwrap().into_inner().session.unwrap().id;
    for (number, session, tool, outcome) in [
        (1, session.as_str(), "get", "ok"),
        (2, &session, "add", "tool_error"),
        (3, &id(700), "get", ""),
        (4, &session, "get", "unknown"),
    ] {
        put(&gateway, number, session, tool, outcome).await;
    }
    (gateway, session)
}

const fn at(seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds, nanos: 0 }
}

#[tokio::test]
async fn calls_are_listed_newest_first_and_each_filter_holds() {
    let (gateway, session) = start().await;
    let all = v1::ListCallsRequest::default;
    let outcome = |outcome: CallOutcome| v1::ListCallsRequest { outcome: outcome.into(), ..all() };
    let text = str::to_owned;
    let cases: Vec<(v1::ListCallsRequest, &[i64])> = vec![
        (all(), &[4, 3, 2, 1]),
        (v1::ListCallsRequest { session: session.clone(), ..all() }, &[4, 2, 1]),
        (v1::ListCallsRequest { session: text("e"), ..all() }, &[4, 2, 1]),
        (v1::ListCallsRequest { session: id(700), ..all() }, &[3]),
        (v1::ListCallsRequest { server: text("orders"), ..all() }, &[4, 3, 2, 1]),
        (v1::ListCallsRequest { server: text("other"), ..all() }, &[]),
        (v1::ListCallsRequest { tool: text("add"), ..all() }, &[2]),
        (outcome(CallOutcome::Running), &[3]),
        (outcome(CallOutcome::Unknown), &[4]),
        (v1::ListCallsRequest { from: Some(at(2)), to: Some(at(4)), ..all() }, &[3, 2]),
        (v1::ListCallsRequest { session: text("e"), tool: text("get"), to: Some(at(4)), ..all() }, &[1]),
    ];
    for (request, expected) in cases {
        assert_eq!(numbers(&gateway, request.clone()).await, expected, "{request:?}");
    }
    // The record outlives the session.
    gateway.sessions().delete_session(v1::DeleteSessionRequest { session: text("e") }).await.unwrap();
    assert_eq!(numbers(&gateway, v1::ListCallsRequest { session: text("e"), ..all() }).await, [4, 2, 1]);
    assert_eq!(refused(list(&gateway, v1::ListCallsRequest { session: text("x"), ..all() }).await), Code::NotFound);
}

#[tokio::test]
async fn pages_of_calls_stay_stable_while_calls_come_in() {
    let (gateway, session) = start().await;
    let page = async |page_token: String, tool: &str| {
        list(&gateway, v1::ListCallsRequest { page_size: 2, page_token, tool: tool.to_owned(), ..Default::default() })
            .await
    };
    let first = page(String::new(), "").await.unwrap().into_inner();
    put(&gateway, 5, &session, "get", "ok").await;
    let second = page(first.next_page_token.clone(), "").await.unwrap().into_inner();
    let ids: Vec<_> = first.calls.iter().chain(&second.calls).map(|call| call.id.clone()).collect();
    assert_eq!((ids, second.next_page_token.as_str()), ([4, 3, 2, 1].map(id).to_vec(), ""));
    assert_eq!(wrong_fields(page(first.next_page_token, "get").await), ["page_token"]);
}

#[tokio::test]
async fn every_wrong_filter_is_named_at_once() {
    let (gateway, _) = start().await;
    let request = v1::ListCallsRequest {
        page_size: -1,
        page_token: "x".to_owned(),
        session: "a\0".to_owned(),
        server: "x".repeat(257),
        tool: "\n".to_owned(),
        outcome: 77,
        from: Some(at(i64::MAX)),
        to: Some(at(0)),
    };
    let named = wrong_fields(list(&gateway, request).await);
    assert_eq!(named, ["session", "server", "tool", "outcome", "from", "page_size", "page_token"]);
    let request = v1::ListCallsRequest { from: Some(at(2)), to: Some(at(1)), ..Default::default() };
    assert_eq!(wrong_fields(list(&gateway, request).await), ["to"]);
}

#[tokio::test]
async fn one_call_comes_with_its_arguments_and_result() {
    let (gateway, session) = start().await;
    let get = async |id: String| gateway.audit().get_call(v1::GetCallRequest { call_id: id }).await;
    let call = get(id(1)).await.unwrap().into_inner().call.unwrap();
    assert_eq!(
        (call.session_id.as_str(), call.actor.as_str(), call.outcome()),
        (session.as_str(), "bot", CallOutcome::Ok)
    );
    assert_eq!((call.arguments_json.as_str(), call.structured_result_json.as_str()), (r#"{"a":1}"#, r#"{"b":2}"#));
    assert_eq!((call.arguments_sha256.as_str(), call.run_id.clone()), ("ab", id(900)));
    assert_eq!(call.duration, Some(prost_types::Duration { seconds: 1, nanos: 500_000_000 }));
    assert_eq!(
        (call.read_only, call.hints["openWorld"], call.hints["destructive"], call.hints.len()),
        (true, true, false, 4)
    );
    let running = get(id(3)).await.unwrap().into_inner().call.unwrap();
    assert_eq!((running.outcome(), running.duration), (CallOutcome::Running, None));
    let listed = list(&gateway, v1::ListCallsRequest::default()).await.unwrap().into_inner().calls;
    assert!(listed.iter().all(|call| call.arguments_json.is_empty() && call.structured_result_json.is_empty()));
    let short = v1::Call { arguments_json: String::new(), structured_result_json: String::new(), ..call };
    assert_eq!(listed[3], short);
    assert_eq!(refused(get(id(99)).await), Code::NotFound);
    assert_eq!(wrong_fields(get("x".to_owned()).await), ["call_id"]);
}
