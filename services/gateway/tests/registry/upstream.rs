//! What needs servers: tests, refreshes, offers and calls, with a fake server at the other end.

use gatehouse_proto::gateway::v1::{self, ServerState, call_tool_response::Event};
use gatehouse_testkit::{eventually, mcp_server::FakeServer};
use tonic::Code;

use crate::harness::{Gateway, refused, wrong_fields};

/// A gateway with a fake server `fake`, whose tool `echo` is listed, and a session `e` that may use it.
async fn with_fake() -> (Gateway, FakeServer, v1::Server) {
    let fake = FakeServer::ordinary().await.unwrap();
    let gateway = Gateway::listing().await;
    let request = v1::CreateServerRequest { name: "fake".to_owned(), url: fake.url(), ..Default::default() };
    gateway.servers().create_server(request).await.unwrap();
    let request = v1::RefreshServerRequest { server: "fake".to_owned() };
    let server = gateway.servers().refresh_server(request).await.unwrap().into_inner().server.unwrap();
    gateway.profile("p", &["fake"]).await;
    let session =
        v1::CreateSessionRequest { profile: "p".to_owned(), external_id: "e".to_owned(), ..Default::default() };
    gateway.sessions().create_session(session).await.unwrap();
    (gateway, fake, server)
}

#[tokio::test]
async fn a_server_that_answers_is_tested_listed_offered_and_called() {
    let (gateway, fake, server) = with_fake().await;
    assert_eq!((server.status.unwrap().state(), server.tool_count), (ServerState::Healthy, 1));
    let by_url = v1::TestServerRequest { url: fake.url(), ..Default::default() };
    let by_name = v1::TestServerRequest { server: "fake".to_owned(), ..Default::default() };
    for request in [by_url, by_name] {
        let report = gateway.servers().test_server(request).await.unwrap().into_inner();
        assert!(report.ok && report.steps.iter().all(|step| step.ok), "{report:?}");
        assert_eq!((report.tools, report.tls.as_str()), (Some(1), ""));
    }
    let again = v1::RefreshServerRequest { server: "fake".to_owned() };
    assert!(!gateway.servers().refresh_server(again).await.unwrap().into_inner().changed);

    let session = || "e".to_owned();
    let offered = v1::ListOfferedToolsRequest { session: session() };
    let offered = gateway.calls().list_offered_tools(offered).await.unwrap().into_inner();
    assert_eq!(offered.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["fake__echo"]);
    let version = v1::GetToolsVersionRequest { session: session() };
    let version = gateway.sessions().get_tools_version(version).await.unwrap().into_inner();
    assert_eq!((version.tool_count, version.version.is_empty()), (1, false));

    let call = v1::CallToolRequest {
        session: session(),
        tool: "fake__echo".to_owned(),
        arguments_json: r#"{"text":"hello"}"#.to_owned(),
        ..Default::default()
    };
    let mut stream = gateway.calls().call_tool(call).await.unwrap().into_inner();
    let mut result = None;
    while let Some(answer) = stream.message().await.unwrap() {
        if let Some(Event::Result(last)) = answer.event {
            result = Some(last);
        }
    }
    let result = result.unwrap();
    assert!(!result.is_error && result.content_json.starts_with('['), "{result:?}");
    // The row of a read-only call is written with others, a little later.
    let recorded = eventually("the call is in the record", async || {
        let request = v1::GetCallRequest { call_id: result.call_id.clone() };
        gateway.audit().get_call(request).await.ok()?.into_inner().call
    })
    .await;
    assert_eq!((recorded.server.as_str(), recorded.tool.as_str()), ("fake", "echo"));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_a_report_and_a_refusal_to_list() {
    let (gateway, fake, _) = with_fake().await;
    drop(fake);
    let test = v1::TestServerRequest { server: "fake".to_owned(), ..Default::default() };
    let report = gateway.servers().test_server(test).await.unwrap().into_inner();
    let last = report.steps.last().unwrap();
    assert!(!report.ok && !last.ok && !last.reason.is_empty() && !last.message.is_empty(), "{report:?}");
    let refresh = v1::RefreshServerRequest { server: "fake".to_owned() };
    assert_eq!(refused(gateway.servers().refresh_server(refresh).await), Code::FailedPrecondition);
    let get = v1::GetServerRequest { server: "fake".to_owned() };
    let server = gateway.servers().get_server(get).await.unwrap().into_inner().server.unwrap();
    assert_eq!((server.status.unwrap().state(), server.tool_count), (ServerState::Failing, 1));
}

#[tokio::test]
async fn a_test_takes_a_registered_server_or_a_url_and_not_both() {
    let gateway = Gateway::start().await;
    let test = async |server: &str, url: &str, header: &str| {
        let headers = if header.is_empty() {
            std::collections::HashMap::new()
        } else {
            [(header.to_owned(), "x".to_owned())].into()
        };
        let request = v1::TestServerRequest { server: server.to_owned(), url: url.to_owned(), headers, stdio: None };
        gateway.servers().test_server(request).await
    };
    assert_eq!(wrong_fields(test("", "", "").await), ["server"]);
    assert_eq!(wrong_fields(test("a", "http://a", "").await), ["server"]);
    assert_eq!(wrong_fields(test("a", "", "X-A").await), ["headers"]);
    assert_eq!(wrong_fields(test("", "nope", "Host").await), ["url", "headers[\"Host\"]"]);
    assert_eq!(refused(test("nobody", "", "").await), Code::NotFound);
}

#[tokio::test]
async fn a_refresh_of_an_unknown_server_is_not_found() {
    let gateway = Gateway::start().await;
    let refresh = async |server: &str| {
        gateway.servers().refresh_server(v1::RefreshServerRequest { server: server.to_owned() }).await
    };
    assert_eq!(refused(refresh("nobody").await), Code::NotFound);
    assert_eq!(wrong_fields(refresh("").await), ["server"]);
}

#[tokio::test]
async fn a_tools_version_of_an_unknown_session_is_not_found() {
    let gateway = Gateway::start().await;
    let version = async |session: &str| {
        gateway.sessions().get_tools_version(v1::GetToolsVersionRequest { session: session.to_owned() }).await
    };
    assert_eq!(refused(version("nobody").await), Code::NotFound);
    assert_eq!(wrong_fields(version("").await), ["session"]);
}

#[tokio::test]
async fn offered_tools_of_an_unknown_session_are_not_found() {
    let gateway = Gateway::start().await;
    let offered = async |session: &str| {
        gateway.calls().list_offered_tools(v1::ListOfferedToolsRequest { session: session.to_owned() }).await
    };
    assert_eq!(refused(offered("nobody").await), Code::NotFound);
    assert_eq!(wrong_fields(offered("").await), ["session"]);
}

#[tokio::test]
async fn a_call_names_each_wrong_field_before_anything_is_sent() {
    let gateway = Gateway::start().await;
    let call = async |session: &str, actor: &str, tool: &str, arguments: &str| {
        let request = v1::CallToolRequest {
            session: session.to_owned(),
            actor: actor.to_owned(),
            tool: tool.to_owned(),
            arguments_json: arguments.to_owned(),
        };
        gateway.calls().call_tool(request).await
    };
    assert_eq!(wrong_fields(call("", "no spaces", "", "{").await), ["arguments_json", "session", "actor", "tool"]);
    for not_an_object in ["[]", "1", "null", "{} {}"] {
        assert_eq!(wrong_fields(call("e", "", "s__t", not_an_object).await), ["arguments_json"]);
    }
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(4 << 20));
    assert_eq!(wrong_fields(call("e", "", "s__t", &large).await), ["arguments_json"]);
    assert_eq!(refused(call("nobody", "", "s__t", "").await), Code::NotFound);
}
