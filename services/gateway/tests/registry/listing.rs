//! Storing what servers list, as the upstream side does it.

use std::time::Duration;

use gatehouse_gateway::{
    registry::tool::{Changed, ListedTool, ServerFacts},
    store::listing::{claim_refresh, mark_failing, release_refresh, replace_listing},
};
use gatehouse_proto::gateway::v1::{self, ServerState, ToolHints};
use gatehouse_types::{ApiKeyId, ServerId};

use crate::{harness::Gateway, tools::listed};

/// A server that says little of itself.
pub(crate) fn facts() -> ServerFacts {
    ServerFacts {
        protocol_version: "2025-11-25".to_owned(),
        server_name: "s".to_owned(),
        server_version: "1".to_owned(),
        capabilities: String::new(),
    }
}

async fn put(gateway: &Gateway, server: &v1::Server, tools: &[ListedTool], capabilities: &str) -> Changed {
    let facts = ServerFacts {
        protocol_version: "2025-11-25".to_owned(),
        server_name: "s\0".to_owned(),
        server_version: "1".to_owned(),
        capabilities: capabilities.to_owned(),
    };
    let mut transaction = gatehouse_store::begin(&gateway.state.pool).await.unwrap();
    let (id, now) = (server.id.parse().unwrap(), gateway.state.now());
    let changed = replace_listing(&mut transaction, id, tools, &facts, now).await.unwrap().unwrap();
    transaction.commit().await.unwrap();
    changed
}

async fn get(gateway: &Gateway, server: &v1::Server) -> v1::Server {
    let request = v1::GetServerRequest { server: server.id.clone() };
    gateway.servers().get_server(request).await.unwrap().into_inner().server.unwrap()
}

async fn names(gateway: &Gateway) -> Vec<String> {
    let tools = gateway.tools().list_tools(v1::ListToolsRequest::default()).await.unwrap().into_inner().tools;
    tools.into_iter().map(|tool| tool.name).collect()
}

const fn changed(tools: bool, capabilities: bool) -> Changed {
    Changed { tools, capabilities, skipped: 0 }
}

#[tokio::test]
async fn only_a_real_change_moves_the_time_of_tools_and_the_counter() {
    let gateway = Gateway::start().await;
    let server = gateway.server("s").await;
    let (one, two) = (listed("one", ""), listed("two", ""));
    let other = listed("two", r#","title":"new""#);
    let capabilities = r#"{"tools":{},"tasks":{}}"#;
    let steps: &[(&[ListedTool], &str, Changed)] = &[
        (&[], capabilities, changed(true, true)),
        (&[], capabilities, changed(false, false)),
        (&[one.clone(), two.clone()], capabilities, changed(true, false)),
        (&[one.clone(), two.clone()], r#"{ "tasks":{}, "tools":{} }"#, changed(false, false)),
        (&[two.clone(), one.clone()], capabilities, changed(true, false)),
        (&[other.clone(), one.clone()], capabilities, changed(true, false)),
        (&[other.clone(), one.clone()], r#"{"tools":{"listChanged":true}}"#, changed(false, true)),
        (&[other], r#"{"tools":{"listChanged":true}}"#, changed(true, false)),
    ];
    for (place, (tools, capabilities, expected)) in steps.iter().enumerate() {
        let (before, epoch) = (get(&gateway, &server).await, gateway.epoch().await.catalog);
        assert_eq!(put(&gateway, &server, tools, capabilities).await, *expected, "step {place}");
        let after = get(&gateway, &server).await;
        let moved = after.tools_updated_at != before.tools_updated_at;
        assert_eq!(moved, expected.any(), "step {place}");
        assert_eq!(gateway.epoch().await.catalog - epoch, i64::from(expected.any()), "step {place}");
        let status = after.status.unwrap();
        assert_eq!(status.state(), ServerState::Healthy);
        assert_ne!(status.checked_at, before.status.unwrap().checked_at);
        assert_eq!(usize::try_from(after.tool_count).unwrap(), tools.len());
        assert_eq!(after.updated_at, server.updated_at, "its configuration did not change");
    }
}

#[tokio::test]
async fn an_override_outlives_its_tools_absence_and_its_new_definition() {
    let gateway = Gateway::start().await;
    let server = gateway.server("s").await;
    put(&gateway, &server, &[listed("kept", ""), listed("gone", "")], "{}").await;
    let update = async |tool: &str, set: ToolHints, clear: &[&str]| {
        let clear = clear.iter().map(|name| (*name).to_owned()).collect();
        let request =
            v1::UpdateToolRequest { server: "s".to_owned(), tool: tool.to_owned(), set: Some(set), clear, policy: 0 };
        gateway.tools().update_tool(request).await
    };
    let set = ToolHints { destructive: Some(true), ..Default::default() };
    update("kept", set, &[]).await.unwrap();
    put(&gateway, &server, &[], "{}").await;
    assert_eq!((names(&gateway).await.len(), get(&gateway, &server).await.tool_count), (0, 0));
    let absent = update("kept", ToolHints::default(), &[]).await.unwrap().into_inner().tool.unwrap();
    assert!(absent.exposed_name.is_empty() && absent.problem.contains("does not list"));
    assert_eq!(update("gone", set, &[]).await.unwrap_err().code(), tonic::Code::NotFound);
    put(&gateway, &server, &[listed("kept", r#","title":"new""#)], "{}").await;
    let tool = update("kept", ToolHints::default(), &[]).await.unwrap().into_inner().tool.unwrap();
    assert_eq!((tool.title.as_str(), tool.overrides), ("new", Some(set)));
    // With its last override, an absent tool is forgotten.
    put(&gateway, &server, &[], "{}").await;
    update("kept", ToolHints::default(), &["destructive"]).await.unwrap();
    assert_eq!(update("kept", set, &[]).await.unwrap_err().code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn a_tool_that_no_row_can_hold_costs_only_itself() {
    let gateway = Gateway::start().await;
    let server = gateway.server("s").await;
    let tool = |name: &str| ListedTool { name: name.to_owned(), ..listed("x", "") };
    let tools = [tool("a"), tool(""), tool("n\0"), tool(&"x".repeat(1_025)), tool(&"y".repeat(1_024)), tool("a")];
    let stored = put(&gateway, &server, &tools, "{}").await;
    assert_eq!(stored, Changed { tools: true, capabilities: true, skipped: 4 });
    assert_eq!(names(&gateway).await, ["a".to_owned(), "y".repeat(1_024)]);
}

#[tokio::test]
async fn a_failure_is_kept_with_its_beginning_and_a_listing_ends_it() {
    let gateway = Gateway::start().await;
    let server = gateway.server("s").await;
    let id: ServerId = server.id.parse().unwrap();
    put(&gateway, &server, &[listed("t", "")], "{}").await;
    let epoch = gateway.epoch().await;
    let fail = async |message: &str| {
        let mut connection = gateway.state.pool.acquire().await.unwrap();
        mark_failing(&mut connection, id, message, gateway.state.now()).await.unwrap()
    };
    assert!(fail("refused\0").await);
    let first = get(&gateway, &server).await.status.unwrap();
    assert!(fail("timed out").await);
    let second = get(&gateway, &server).await.status.unwrap();
    assert_eq!((first.state(), second.state()), (ServerState::Failing, ServerState::Failing));
    assert_eq!((second.message.as_str(), second.since), ("timed out", first.since));
    assert_ne!(second.checked_at, first.checked_at);
    assert_eq!(get(&gateway, &server).await.tool_count, 1, "the cache stays");
    put(&gateway, &server, &[listed("t", "")], "{}").await;
    let healthy = get(&gateway, &server).await.status.unwrap();
    assert_eq!((healthy.state(), healthy.message.as_str()), (ServerState::Healthy, ""));
    assert_ne!(healthy.since, second.since);
    let after = gateway.epoch().await;
    assert_eq!(after.sessions, epoch.sessions);
    assert_eq!(after.catalog - epoch.catalog, 3, "offers name what is unavailable and why: two failures and their end");
}

#[tokio::test]
async fn another_url_makes_the_state_unknown_again() {
    let gateway = Gateway::start().await;
    let server = gateway.server("s").await;
    put(&gateway, &server, &[listed("t", "")], "{}").await;
    let update = async |request: v1::UpdateServerRequest| {
        let request = v1::UpdateServerRequest { server: "s".to_owned(), ..request };
        gateway.servers().update_server(request).await.unwrap().into_inner().server.unwrap().status.unwrap().state()
    };
    let words = v1::UpdateServerRequest { description: Some("d".to_owned()), ..Default::default() };
    assert_eq!(update(words).await, ServerState::Healthy);
    let url = v1::UpdateServerRequest { url: Some("http://other.example/mcp".to_owned()), ..Default::default() };
    assert_eq!(update(url).await, ServerState::Unknown);
}

#[tokio::test]
async fn one_of_many_replicas_gets_the_right_to_list_and_a_lapsed_right_is_free() {
    let gateway = Gateway::start().await;
    let id: ServerId = gateway.server("s").await.id.parse().unwrap();
    let now = gateway.state.now();
    let until = now + Duration::from_mins(1);
    let racing: Vec<_> = (0..8)
        .map(|_| {
            let pool = gateway.state.pool.clone();
            tokio::spawn(async move {
                let lease = ApiKeyId::new().uuid();
                let mut connection = pool.acquire().await.unwrap();
                claim_refresh(&mut connection, id, lease, now, until).await.unwrap().then_some(lease)
            })
        })
        .collect();
    let mut leases = Vec::new();
    for racer in racing {
        leases.extend(racer.await.unwrap());
    }
    let [winner] = leases[..] else { panic!("{} replicas got it", leases.len()) };
    let mut connection = gateway.state.pool.acquire().await.unwrap();
    let other = ApiKeyId::new().uuid();
    assert!(!release_refresh(&mut connection, id, other).await.unwrap());
    assert!(claim_refresh(&mut connection, id, other, until, until).await.unwrap(), "lapsed");
    assert!(!release_refresh(&mut connection, id, winner).await.unwrap(), "another has taken it");
    assert!(release_refresh(&mut connection, id, other).await.unwrap());
    assert!(claim_refresh(&mut connection, id, winner, now, until).await.unwrap());
}

#[tokio::test]
async fn a_server_that_was_removed_meanwhile_is_no_error() {
    let gateway = Gateway::start().await;
    let id: ServerId = gateway.server("s").await.id.parse().unwrap();
    gateway.servers().delete_server(v1::DeleteServerRequest { server: "s".to_owned() }).await.unwrap();
    let mut connection = gateway.state.pool.acquire().await.unwrap();
    let (now, facts) = (gateway.state.now(), ServerFacts::default());
    assert_eq!(replace_listing(&mut connection, id, &[], &facts, now).await.unwrap(), None);
    assert!(!mark_failing(&mut connection, id, "x", now).await.unwrap());
    assert!(!claim_refresh(&mut connection, id, id.uuid(), now, now).await.unwrap());
}
