//! Policies of tools, and the hints that engines get.

use gatehouse_proto::gateway::v1::{self, HintSource, Policy, ToolHints, UpdateToolRequest};
use serde_json::Value;
use tonic::Code;

use crate::{
    harness::{Gateway, refused, wrong_fields},
    tools::{listed, store},
};

fn request(tool: &str) -> UpdateToolRequest {
    UpdateToolRequest { server: "a".to_owned(), tool: tool.to_owned(), ..Default::default() }
}

async fn update(gateway: &Gateway, request: UpdateToolRequest) -> v1::Tool {
    gateway.tools().update_tool(request).await.unwrap().into_inner().tool.unwrap()
}

/// Chosen, default and effective policy.
fn policies(tool: &v1::Tool) -> (Policy, Policy, Policy) {
    (tool.policy(), tool.default_policy(), tool.effective_policy())
}

async fn events(gateway: &Gateway, kind: &str) -> Vec<Value> {
    let query = "SELECT payload FROM events WHERE kind = $1 AND session_id IS NULL ORDER BY id";
    let payloads: Vec<String> = sqlx::query_scalar(query).bind(kind).fetch_all(&gateway.state.pool).await.unwrap();
    payloads.iter().map(|payload| serde_json::from_str(payload).unwrap()).collect()
}

#[tokio::test]
async fn a_policy_follows_from_the_effective_hints_until_an_admin_chooses_one() {
    let gateway = Gateway::start().await;
    let a = gateway.server("a").await;
    let annotated = |hints: &str| format!(r#","annotations":{{{hints}}}"#);
    let tools = [
        listed("plain", ""),
        listed("reads", &annotated(r#""readOnlyHint":true"#)),
        listed("destroys", &annotated(r#""readOnlyHint":true,"destructiveHint":true"#)),
    ];
    store(&gateway, &a, &tools).await;
    for (tool, default) in [("plain", Policy::Ask), ("reads", Policy::Allow), ("destroys", Policy::Confirm)] {
        let now = update(&gateway, request(tool)).await;
        assert_eq!(policies(&now), (Policy::Unspecified, default, default), "{tool}");
    }
    // An override of a hint moves the default; a chosen policy stands whatever the hints say.
    let destructive = Some(ToolHints { destructive: Some(true), ..Default::default() });
    let now = update(&gateway, UpdateToolRequest { set: destructive, ..request("reads") }).await;
    assert_eq!(policies(&now), (Policy::Unspecified, Policy::Confirm, Policy::Confirm));
    let deny = UpdateToolRequest { policy: Policy::Deny.into(), ..request("reads") };
    assert_eq!(policies(&update(&gateway, deny).await), (Policy::Deny, Policy::Confirm, Policy::Deny));
    let hints = UpdateToolRequest { clear: vec!["destructive".to_owned()], ..request("reads") };
    assert_eq!(policies(&update(&gateway, hints).await), (Policy::Deny, Policy::Allow, Policy::Deny));
    let cleared = UpdateToolRequest { clear: vec!["policy".to_owned()], ..request("reads") };
    assert_eq!(policies(&update(&gateway, cleared).await), (Policy::Unspecified, Policy::Allow, Policy::Allow));
}

#[tokio::test]
async fn hints_and_policy_change_together_or_not_at_all_and_the_author_is_recorded() {
    let gateway = Gateway::start().await;
    let a = gateway.server("a").await;
    store(&gateway, &a, &[listed("t", "")]).await;
    let before = gateway.epoch().await.catalog;
    let set = Some(ToolHints { read_only: Some(true), ..Default::default() });
    let both = UpdateToolRequest { set, policy: Policy::Confirm.into(), ..request("t") };
    update(&gateway, both.clone()).await;
    assert_eq!(gateway.epoch().await.catalog, before + 1);
    update(&gateway, both.clone()).await;
    assert_eq!(gateway.epoch().await.catalog, before + 1, "the same again changes nothing");
    let wrong = UpdateToolRequest { policy: 17, clear: vec!["read_only".to_owned()], ..both.clone() };
    assert_eq!(wrong_fields(gateway.tools().update_tool(wrong).await), ["policy", "clear[0]"]);
    let twice = UpdateToolRequest { clear: vec!["policy".to_owned()], ..both };
    assert_eq!(wrong_fields(gateway.tools().update_tool(twice).await), ["clear[0]"]);
    assert_eq!(policies(&update(&gateway, request("t")).await).0, Policy::Confirm);
    let recorded = events(&gateway, "tools.overridden").await;
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    let event = &recorded[0];
    assert_eq!((&event["server"], &event["tool"], &event["by"]), (&"a".into(), &"t".into(), &"key-admin".into()));
    assert_eq!((&event["policy"], &event["readOnly"]), (&"confirm".into(), &true.into()));
}

#[tokio::test]
async fn a_policy_outlives_a_refresh_and_the_absence_of_its_tool() {
    let gateway = Gateway::start().await;
    let a = gateway.server("a").await;
    store(&gateway, &a, &[listed("t", "")]).await;
    update(&gateway, UpdateToolRequest { policy: Policy::Deny.into(), ..request("t") }).await;
    store(&gateway, &a, &[listed("t", r#","title":"new""#)]).await;
    assert_eq!(policies(&update(&gateway, request("t")).await).0, Policy::Deny);
    store(&gateway, &a, &[]).await;
    store(&gateway, &a, &[listed("t", r#","title":"again""#)]).await;
    let back = update(&gateway, request("t")).await;
    assert_eq!((back.title.as_str(), back.effective_policy()), ("again", Policy::Deny));
    // With the last thing that an admin said of it, an absent tool is forgotten.
    store(&gateway, &a, &[]).await;
    update(&gateway, UpdateToolRequest { clear: vec!["policy".to_owned()], ..request("t") }).await;
    assert_eq!(refused(gateway.tools().update_tool(request("t")).await), Code::NotFound);
}

#[tokio::test]
async fn each_effective_hint_says_where_it_comes_from_and_engines_get_it_as_an_annotation() {
    let gateway = Gateway::start().await;
    let a = gateway.server("a").await;
    store(&gateway, &a, &[listed("t", r#","annotations":{"readOnlyHint":false,"idempotentHint":true}"#)]).await;
    let set = Some(ToolHints { read_only: Some(true), destructive: Some(false), ..Default::default() });
    let sources = update(&gateway, UpdateToolRequest { set, ..request("t") }).await.sources.unwrap();
    assert_eq!((sources.read_only(), sources.destructive()), (HintSource::Admin, HintSource::Admin));
    assert_eq!((sources.idempotent(), sources.open_world()), (HintSource::Server, HintSource::Default));
    gateway.profile("p", &["a"]).await;
    let session = gateway.session("p").await.session.unwrap().id;
    let offered = v1::ListOfferedToolsRequest { session };
    let offered = gateway.calls().list_offered_tools(offered).await.unwrap().into_inner().tools;
    let definition: Value = serde_json::from_str(&offered[0].definition_json).unwrap();
    let annotations = &definition["annotations"];
    assert_eq!((&annotations["readOnlyHint"], &annotations["destructiveHint"]), (&true.into(), &false.into()));
    assert_eq!((&annotations["idempotentHint"], &annotations["openWorldHint"]), (&true.into(), &true.into()));
}
