//! Announced changes of a list, over the wire.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gatehouse_proto::gateway::v1;
use gatehouse_testkit::{
    eventually,
    mcp_server::{Act, FakeServer, Reply, echo_tool, initialize_result},
};
use serde_json::json;

use crate::harness::Gateway;

const NOTICE: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";

/// A server that pushes what it is told to; its list has `more` tools besides `echo`.
async fn growing(more: &Arc<AtomicUsize>) -> FakeServer {
    let more = Arc::clone(more);
    FakeServer::start(move |request| match (request.method.as_str(), request.rpc().as_str()) {
        ("POST", "initialize") => {
            Some(Reply::result(request, &initialize_result()).with_header("mcp-session-id", "growing"))
        }
        ("POST", "tools/list") => {
            let extra = (0..more.load(Ordering::Relaxed))
                .map(|number| json!({"name": format!("extra_{number}"), "inputSchema": {"type": "object"}}));
            let tools: Vec<_> = std::iter::once(echo_tool()).chain(extra).collect();
            Some(Reply::result(request, &json!({ "tools": tools })))
        }
        ("GET", _) => Some(Reply::acts(200, "text/event-stream", vec![Act::Pushed])),
        _ => None,
    })
    .await
    .unwrap()
}

async fn call(gateway: &Gateway, tool: &str) -> v1::CallResult {
    let call = v1::CallToolRequest {
        session: "e".to_owned(),
        tool: tool.to_owned(),
        arguments_json: r#"{"message":"x"}"#.to_owned(),
        ..Default::default()
    };
    let mut stream = gateway.calls().call_tool(call).await.unwrap().into_inner();
    let mut result = None;
    while let Some(answer) = stream.message().await.unwrap() {
        if let Some(v1::call_tool_response::Event::Result(last)) = answer.event {
            result = Some(last);
        }
    }
    result.unwrap()
}

async fn tool_count(gateway: &Gateway) -> i32 {
    let request = v1::GetServerRequest { server: "fake".to_owned() };
    gateway.servers().get_server(request).await.unwrap().into_inner().server.unwrap().tool_count
}

#[tokio::test]
async fn a_burst_of_a_thousand_announcements_costs_a_handful_of_listings_and_one_event() {
    let more = Arc::new(AtomicUsize::new(1));
    let fake = growing(&more).await;
    let gateway = Gateway::listing().await;
    let settings = v1::UpdateSettingsRequest {
        set: [("tools.listChangedMergeSec".to_owned(), "1".to_owned())].into(),
        ..Default::default()
    };
    gateway.settings().update_settings(settings).await.unwrap();
    let request = v1::CreateServerRequest { name: "fake".to_owned(), url: fake.url(), ..Default::default() };
    gateway.servers().create_server(request).await.unwrap();
    gateway.servers().refresh_server(v1::RefreshServerRequest { server: "fake".to_owned() }).await.unwrap();
    gateway.profile("p", &["fake"]).await;
    let (profile, external_id) = ("p".to_owned(), "e".to_owned());
    let session = v1::CreateSessionRequest { profile, external_id, ..Default::default() };
    gateway.sessions().create_session(session).await.unwrap();
    // The connection that a call opens hears announcements from then on.
    assert!(!call(&gateway, "fake__echo").await.is_error);
    fake.wait_for_listeners(1).await.unwrap();
    let before = fake.requests_of("tools/list").len();
    more.store(3, Ordering::Relaxed);
    for _ in 0..50 {
        assert_eq!(fake.push(NOTICE.repeat(20)), 1);
    }
    eventually("the change is stored", async || (tool_count(&gateway).await == 4).then_some(())).await;
    let listings = fake.requests_of("tools/list").len() - before;
    assert!(listings <= 6, "{listings}");
    let changed = "SELECT count(*) FROM events WHERE kind = 'tools.changed'";
    let events: i64 = sqlx::query_scalar(changed).fetch_one(&gateway.state.pool).await.unwrap();
    assert_eq!(events, 2, "the first listing, and this one");

    // A tool that has vanished since: the model is told so, and that there is a list.
    more.store(0, Ordering::Relaxed);
    fake.push(NOTICE);
    eventually("the tools are gone", async || (tool_count(&gateway).await == 1).then_some(())).await;
    let gone = eventually("the call is refused", async || {
        let result = call(&gateway, "fake__extra_0").await;
        result.content_json.contains("there is no tool `fake__extra_0`").then_some(result)
    })
    .await;
    assert!(gone.is_error && gone.content_json.contains("List the tools again"), "{gone:?}");
}
