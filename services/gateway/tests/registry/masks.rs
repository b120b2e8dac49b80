//! Mask rules of servers, from the registry to the record of a call.

use gatehouse_proto::gateway::v1::{self, CreateServerRequest, UpdateServerRequest};
use gatehouse_testkit::{eventually, mcp_server::FakeServer};
use tonic::Code;

use crate::harness::{Gateway, refused, wrong_fields};

fn texts(rules: &[&str]) -> Vec<String> {
    rules.iter().map(|rule| (*rule).to_owned()).collect()
}

fn new(url: &str, rules: &[&str]) -> CreateServerRequest {
    let (name, url) = ("fake".to_owned(), url.to_owned());
    CreateServerRequest { name, url, mask_rules: texts(rules), ..Default::default() }
}

async fn change(gateway: &Gateway, add: &[&str], remove: &[&str]) -> Vec<String> {
    let request = UpdateServerRequest {
        server: "fake".to_owned(),
        add_mask_rules: texts(add),
        remove_mask_rules: texts(remove),
        ..Default::default()
    };
    gateway.servers().update_server(request).await.unwrap().into_inner().server.unwrap().mask_rules
}

/// The arguments in the record of a call of `tool`.
async fn recorded(gateway: &Gateway, tool: &str, arguments: &str) -> String {
    let call = v1::CallToolRequest {
        session: "e".to_owned(),
        tool: tool.to_owned(),
        arguments_json: arguments.to_owned(),
        ..Default::default()
    };
    let mut stream = gateway.calls().call_tool(call).await.unwrap().into_inner();
    let mut id = None;
    while let Some(answer) = stream.message().await.unwrap() {
        if let Some(v1::call_tool_response::Event::Result(result)) = answer.event {
            id = Some(result.call_id);
        }
    }
    let call_id = id.unwrap();
    eventually("the call is in the record", async || {
        let request = v1::GetCallRequest { call_id: call_id.clone() };
        Some(gateway.audit().get_call(request).await.ok()?.into_inner().call?.arguments_json)
    })
    .await
}

#[tokio::test]
async fn what_a_rule_points_at_is_not_in_the_record_of_a_call_from_the_next_call_on() {
    let fake = FakeServer::ordinary().await.unwrap();
    let gateway = Gateway::listing().await;
    gateway.servers().create_server(new(&fake.url(), &["/pin", "other:/memo"])).await.unwrap();
    gateway.servers().refresh_server(v1::RefreshServerRequest { server: "fake".to_owned() }).await.unwrap();
    gateway.profile("p", &["fake"]).await;
    let (profile, external_id) = ("p".to_owned(), "e".to_owned());
    let session = v1::CreateSessionRequest { profile, external_id, ..Default::default() };
    gateway.sessions().create_session(session).await.unwrap();
    let arguments = r#"{"message":"m","pin":1234,"memo":"5678"}"#;
    let kept = recorded(&gateway, "fake__echo", arguments).await;
    assert!(!kept.contains("1234") && kept.contains("5678"), "{kept}");
    // Which tool was meant is not known: every rule of every server counts.
    let kept = recorded(&gateway, "fake__gone", arguments).await;
    assert!(!kept.contains("1234") && !kept.contains("5678"), "{kept}");
    change(&gateway, &["echo:"], &["/pin"]).await;
    eventually("the change counts", async || {
        (recorded(&gateway, "fake__echo", arguments).await == "\"•••\"").then_some(())
    })
    .await;
}

#[tokio::test]
async fn rules_are_added_and_removed_and_a_wrong_one_is_named() {
    let gateway = Gateway::start().await;
    let wrong = new("http://127.0.0.1:1/mcp", &["/a", "a", "/~"]);
    assert_eq!(wrong_fields(gateway.servers().create_server(wrong).await), ["mask_rules[1]", "mask_rules[2]"]);
    let created = gateway.servers().create_server(new("http://127.0.0.1:1/mcp", &["/a", "/b", "/a"])).await.unwrap();
    assert_eq!(created.into_inner().server.unwrap().mask_rules, ["/a", "/b"]);
    let before = gateway.epoch().await.catalog;
    assert_eq!(change(&gateway, &["t:/c/*"], &["/a", "/none"]).await, ["/b", "t:/c/*"]);
    assert_eq!(gateway.epoch().await.catalog, before + 1);
    let listed = gateway.servers().list_servers(v1::ListServersRequest::default()).await.unwrap().into_inner();
    assert_eq!(listed.servers[0].mask_rules, ["/b", "t:/c/*"]);
    let many: Vec<String> = (0..100).map(|number| format!("/{number}")).collect();
    let request = UpdateServerRequest { server: "fake".to_owned(), add_mask_rules: many, ..Default::default() };
    assert_eq!(wrong_fields(gateway.servers().update_server(request).await), ["add_mask_rules"]);
    let request =
        UpdateServerRequest { server: "none".to_owned(), add_mask_rules: texts(&["/a"]), ..Default::default() };
    assert_eq!(refused(gateway.servers().update_server(request).await), Code::NotFound);
}
