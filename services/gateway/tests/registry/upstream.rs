//! What is checked before a server is asked. What servers answer has tests beside the upstream side.

use gatehouse_proto::gateway::v1;
use tonic::Code;

use crate::harness::{Gateway, refused, wrong_fields};

#[tokio::test]
async fn a_test_takes_a_registered_server_or_a_url_and_not_both() {
    let gateway = Gateway::start().await;
    let test = async |server: &str, url: &str, header: &str| {
        let headers = if header.is_empty() {
            std::collections::HashMap::new()
        } else {
            [(header.to_owned(), "x".to_owned())].into()
        };
        let request = v1::TestServerRequest { server: server.to_owned(), url: url.to_owned(), headers };
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
