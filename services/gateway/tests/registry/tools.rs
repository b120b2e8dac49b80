//! `ToolService`.

use gatehouse_gateway::{
    catalog::hex,
    registry::tool::{ListedTool, ServerFacts},
    store::listing::replace_listing,
};
use gatehouse_proto::gateway::v1::{self, ToolHints};
use gatehouse_store::api_keys::hash;
use tonic::Code;

use crate::harness::{Gateway, refused, wrong_fields};

/// A tool as its server lists it.
pub(crate) fn listed(name: &str, more: &str) -> ListedTool {
    let definition = format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}{more}}}"#);
    ListedTool { name: name.to_owned(), fingerprint: hex(&hash(&definition)), definition }
}

/// Stores a listing as the upstream side does.
pub(crate) async fn store(gateway: &Gateway, server: &v1::Server, tools: &[ListedTool]) {
    let mut transaction = gatehouse_store::begin(&gateway.state.pool).await.unwrap();
    let id = server.id.parse().unwrap();
    let now = gateway.state.now();
    replace_listing(&mut transaction, id, tools, &ServerFacts::default(), now).await.unwrap().unwrap();
    transaction.commit().await.unwrap();
}

async fn list(
    gateway: &Gateway,
    server: &str,
    page_size: i32,
    token: &str,
) -> Result<tonic::Response<v1::ListToolsResponse>, tonic::Status> {
    let request =
        v1::ListToolsRequest { server: server.to_owned(), page_size, page_token: token.to_owned(), risky_only: false };
    gateway.tools().list_tools(request).await
}

async fn update(
    gateway: &Gateway,
    tool: &str,
    set: ToolHints,
    clear: &[&str],
) -> Result<tonic::Response<v1::UpdateToolResponse>, tonic::Status> {
    let clear = clear.iter().map(|name| (*name).to_owned()).collect();
    let request =
        v1::UpdateToolRequest { server: "a".to_owned(), tool: tool.to_owned(), set: Some(set), clear, policy: 0 };
    gateway.tools().update_tool(request).await
}

#[tokio::test]
async fn tools_are_listed_by_server_and_name_with_what_their_definitions_say() {
    let gateway = Gateway::start().await;
    let (b, a) = (gateway.server("b").await, gateway.server("a").await);
    let rich = r#","title":"T","description":"d","outputSchema":{"x": 1.0},"annotations":{"readOnlyHint":true},
        "execution":{"taskSupport":"optional"}"#;
    store(&gateway, &a, &[listed("z", rich), listed("m", "")]).await;
    let broken = r#"{"name":"n"}"#.to_owned();
    let broken = ListedTool { name: "n".to_owned(), fingerprint: "f".to_owned(), definition: broken };
    store(&gateway, &b, &[broken]).await;
    let first = list(&gateway, "", 2, "").await.unwrap().into_inner();
    let second = list(&gateway, "", 2, &first.next_page_token).await.unwrap().into_inner();
    let all: Vec<_> = first.tools.iter().chain(&second.tools).collect();
    let names: Vec<_> = all.iter().map(|tool| tool.exposed_name.as_str()).collect();
    assert_eq!((names, second.next_page_token.as_str()), (vec!["a__m", "a__z", "b__n"], ""));
    let tool = all[1];
    assert_eq!((tool.server.as_str(), tool.name.as_str(), tool.problem.as_str()), ("a", "z", ""));
    assert_eq!((tool.title.as_str(), tool.description.as_str(), tool.task_support.as_str()), ("T", "d", "optional"));
    assert_eq!(tool.output_schema_json, r#"{"x": 1.0}"#);
    assert_eq!(tool.declared, Some(ToolHints { read_only: Some(true), ..Default::default() }));
    assert_eq!(tool.overrides, Some(ToolHints::default()));
    let effective =
        ToolHints { read_only: Some(true), destructive: Some(false), idempotent: Some(false), open_world: Some(true) };
    assert_eq!(tool.effective, Some(effective));
    assert!(tool.fingerprint.len() == 64 && tool.changed_at.is_some());
    assert!(!all[2].problem.is_empty(), "no input schema: engines cannot take it");
    let only = list(&gateway, &b.id, 0, "").await.unwrap().into_inner().tools;
    assert_eq!(only.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["n"]);
    assert_eq!(refused(list(&gateway, "nobody", 0, "").await), Code::NotFound);
    assert_eq!(wrong_fields(list(&gateway, "b", 0, &first.next_page_token).await), ["page_token"]);
}

#[tokio::test]
async fn a_page_of_large_definitions_ends_early_and_the_next_goes_on() {
    let gateway = Gateway::start().await;
    let a = gateway.server("a").await;
    let large = format!(r#","description":"{}""#, "x".repeat(600_000));
    let tools: Vec<_> = (0..4).map(|number| listed(&format!("t{number}"), &large)).collect();
    store(&gateway, &a, &tools).await;
    let (mut token, mut names, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let page = list(&gateway, "", 100, &token).await.unwrap().into_inner();
        names.extend(page.tools.into_iter().map(|tool| tool.name));
        pages += 1;
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!((names.join(" "), pages), ("t0 t1 t2 t3".to_owned(), 4));
}

#[tokio::test]
async fn an_override_decides_the_effective_hint_until_it_is_cleared() {
    let gateway = Gateway::start().await;
    let a = gateway.server("a").await;
    store(&gateway, &a, &[listed("t", r#","annotations":{"readOnlyHint":true}"#)]).await;
    let before = gateway.epoch().await.catalog;
    let set = ToolHints { read_only: Some(false), destructive: Some(true), ..Default::default() };
    let tool = update(&gateway, "t", set, &[]).await.unwrap().into_inner().tool.unwrap();
    let effective = tool.effective.unwrap();
    assert_eq!((effective.read_only, effective.destructive), (Some(false), Some(true)));
    assert_eq!(tool.overrides, Some(set));
    assert_eq!(gateway.epoch().await.catalog, before + 1);
    update(&gateway, "t", set, &[]).await.unwrap();
    assert_eq!(gateway.epoch().await.catalog, before + 1, "the same again changes nothing");
    let tool = update(&gateway, "t", ToolHints::default(), &["read_only"]).await.unwrap().into_inner().tool.unwrap();
    assert_eq!(tool.overrides, Some(ToolHints { destructive: Some(true), ..Default::default() }));
    assert_eq!(tool.effective.unwrap().read_only, Some(true));

    let wrong = ToolHints { read_only: Some(true), open_world: Some(false), ..Default::default() };
    let named = wrong_fields(update(&gateway, "", wrong, &["read_only", "title"]).await);
    assert_eq!(named, ["tool", "set.open_world", "clear[0]", "clear[1]"]);
    assert_eq!(refused(update(&gateway, "nobody", ToolHints::default(), &[]).await), Code::NotFound);
}
