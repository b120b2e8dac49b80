//! Secrets are planted everywhere they can be, the usual things are done at log level trace, and nothing shows them.

use std::{collections::HashMap, fs, time::Duration};

use gatehouse_proto::gateway::v1 as pb;
use gatehouse_testkit::mcp_server::{FakeServer, Reply, Request};
use prost::Message;
use serde_json::json;
use tonic::Status;

use crate::support::{
    Engine, Gate, Options,
    admin_grpc::Admin,
    engine::fetch_with,
    fakes::{initialized, reading_tool, server, text_result, writing_tool},
    within,
};

const HEADER: &str = "planted-header-5d1c9a7e";
const OTHER_HEADER: &str = "planted-header-of-a-test-77aa01";
const MCP_SESSION: &str = "planted-mcp-session-0b6f2d3c";
const PASSWORD: &str = "planted-password-9e4b1f60";
const REFUSED: &str = "planted-refused-2ac84f19";

/// What is looked for: what it is, and its text.
type Needles = Vec<(&'static str, String)>;
/// Where it is looked for: what it is, and its bytes as text.
type Hay = Vec<(String, String)>;

/// A server that wants the header, and whose tools fail in several ways.
async fn guarded() -> FakeServer {
    let tools = json!([reading_tool("echo"), writing_tool("fail"), writing_tool("drop"), writing_tool("refuse")]);
    FakeServer::start(move |request| {
        if request.header("x-api-key") != Some(HEADER) {
            return Some(Reply::json(401, "{}").with_header("www-authenticate", "Bearer realm=\"x\""));
        }
        let body = request.json();
        match (request.rpc().as_str(), body["params"]["name"].as_str().unwrap_or_default()) {
            ("initialize", _) => Some(initialized(request, false).with_header("mcp-session-id", MCP_SESSION)),
            ("tools/list", _) => Some(Reply::result(request, &json!({ "tools": tools }))),
            ("tools/call", "fail") => {
                Some(Reply::result(request, &json!({"content": [{"type": "text", "text": "no"}], "isError": true})))
            }
            ("tools/call", "drop") => Some(Reply::raw(Vec::new())),
            ("tools/call", "refuse") => Some(Reply::error(200, &request.id(), -32_000, "refused")),
            ("tools/call", _) => Some(text_result(request, "fine")),
            _ => None,
        }
    })
    .await
    .unwrap()
}

/// Keeps an answer, or the error in its place, as it went over the wire.
fn keep<T: Message>(hay: &mut Hay, name: &str, answer: Result<tonic::Response<T>, Status>) {
    let bytes = match answer {
        Ok(answer) => answer.into_inner().encode_to_vec(),
        Err(status) => format!("{} {}", status.message(), String::from_utf8_lossy(status.details())).into_bytes(),
    };
    hay.push((name.to_owned(), String::from_utf8_lossy(&bytes).into_owned()));
}

async fn engine_does_the_usual(gate: &Gate, token: &str, hay: &mut Hay) {
    let mut engine = Engine::new(gate, token);
    hay.push(("initialize".into(), engine.initialize().await.to_string()));
    hay.push(("tools/list".into(), json!(engine.list().await).to_string()));
    let arguments =
        json!({"message": "x", "password": PASSWORD, "nested": {"api_key": PASSWORD, "list": [{"token": PASSWORD}]}});
    for tool in ["echo", "fail", "drop", "refuse", "no_such_tool"] {
        hay.push((
            format!("call {tool}"),
            engine.call(&format!("guarded__{tool}"), arguments.clone()).await.to_string(),
        ));
    }
    hay.push(("call away".into(), engine.call("away__echo", arguments).await.to_string()));
    for (name, token, session) in [("wrong token", REFUSED, engine.session.as_str()), ("wrong session", token, REFUSED)]
    {
        let headers = [("authorization", format!("Bearer {token}")), ("mcp-session-id", session.to_owned())];
        hay.push((name.into(), fetch_with(&gate.mcp_url(), &headers).await));
    }
}

async fn admin_does_the_usual(admin: &Admin, session: &str, hay: &mut Hay) {
    let server = || "guarded".to_owned();
    let session = || session.to_owned();
    let secret = |value: &str| HashMap::from([("X-Api-Key".to_owned(), value.to_owned())]);
    let mut servers = admin.servers();
    keep(hay, "GetServer", servers.get_server(pb::GetServerRequest { server: server() }).await);
    keep(hay, "ListServers", servers.list_servers(pb::ListServersRequest::default()).await);
    keep(hay, "RefreshServer", servers.refresh_server(pb::RefreshServerRequest { server: server() }).await);
    let test = |server: &str, url: &str| pb::TestServerRequest {
        server: server.into(),
        url: url.into(),
        headers: if url.is_empty() { HashMap::new() } else { secret(OTHER_HEADER) },
        stdio: None,
    };
    let url = match admin.show("guarded").await.transport.unwrap() {
        pb::server::Transport::StreamableHttp(http) => http.url,
        pb::server::Transport::Stdio(stdio) => panic!("{stdio:?}"),
    };
    keep(hay, "TestServer", servers.test_server(test("guarded", "")).await);
    keep(hay, "TestServer refused", servers.test_server(test("", &url)).await);
    let update =
        |value: &str| pb::UpdateServerRequest { server: server(), set_headers: secret(value), ..Default::default() };
    keep(hay, "UpdateServer", servers.update_server(update(HEADER)).await);
    keep(hay, "UpdateServer refused", servers.update_server(update(&format!("{REFUSED}\r\nx: y"))).await);
    keep(hay, "ListProfiles", admin.profiles().list_profiles(pb::ListProfilesRequest::default()).await);
    let mut sessions = admin.sessions();
    keep(hay, "GetSession", sessions.get_session(pb::GetSessionRequest { session: session() }).await);
    keep(hay, "ListSessions", sessions.list_sessions(pb::ListSessionsRequest::default()).await);
    keep(hay, "ListTokens", sessions.list_tokens(pb::ListTokensRequest { session: session() }).await);
    keep(hay, "ListTools", admin.tools().list_tools(pb::ListToolsRequest::default()).await);
    let offered = pb::ListOfferedToolsRequest { session: session() };
    keep(hay, "ListOfferedTools", admin.call_service().list_offered_tools(offered).await);
    let arguments_json = json!({"message": "x", "password": PASSWORD}).to_string();
    let call =
        pb::CallToolRequest { session: session(), tool: "guarded__fail".into(), arguments_json, ..Default::default() };
    let mut events = admin.call_service().call_tool(call).await.unwrap().into_inner();
    while let Some(event) = events.message().await.unwrap() {
        keep(hay, "CallTool", Ok(tonic::Response::new(event)));
    }
    keep(hay, "ListSettings", admin.settings().list_settings(pb::ListSettingsRequest {}).await);
    keep(hay, "ListApiKeys", admin.keys().list_api_keys(pb::ListApiKeysRequest::default()).await);
    within(Duration::from_secs(10), "every call has ended in the audit", async || {
        let calls = admin.calls(pb::ListCallsRequest::default()).await;
        (calls.len() == 7 && calls.iter().all(|call| call.outcome() != pb::CallOutcome::Running)).then_some(())
    })
    .await;
    keep(hay, "ListCalls", admin.audit().list_calls(pb::ListCallsRequest::default()).await);
    for call in admin.calls(pb::ListCallsRequest::default()).await {
        keep(hay, "GetCall", admin.audit().get_call(pb::GetCallRequest { call_id: call.id }).await);
    }
}

/// Every row of every table as text; bytes are in hexadecimal.
async fn rows(gate: &Gate, hay: &mut Hay) {
    let pool = gate.database.pool();
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert!(tables.len() > 8, "{tables:?}");
    for table in tables {
        let query = sqlx::AssertSqlSafe(format!("SELECT coalesce(string_agg(t::text, E'\\n'), '') FROM {table} t"));
        hay.push((format!("table {table}"), sqlx::query_scalar(query).fetch_one(&pool).await.unwrap()));
    }
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

#[tokio::test]
async fn no_planted_secret_is_in_any_log_line_answer_row_error_or_metric() {
    let mut gate = Gate::start(Options { variables: vec![("GATEHOUSE_LOG", "trace".into())] }).await;
    let admin = gate.admin();
    let (fake, away) = (guarded().await, guarded().await);
    admin.listed_server("guarded", &fake.url(), &[("X-Api-Key", HEADER)]).await;
    admin.listed_server("away", &away.url(), &[("X-Api-Key", HEADER)]).await;
    admin.profile("all", &["guarded", "away"]).await;
    drop(away);
    let (session, token) = admin.session("all", pb::PermissionMode::Auto).await;
    let key = pb::CreateApiKeyRequest { name: "chat".into(), scope: pb::ApiKeyScope::Sessions.into() };
    let key = admin.keys().create_api_key(key).await.unwrap().into_inner().secret;

    let mut hay = Hay::new();
    engine_does_the_usual(&gate, &token, &mut hay).await;
    admin_does_the_usual(&admin, &session, &mut hay).await;
    let small = Admin::with(&gate, &key);
    keep(&mut hay, "with a small key", small.servers().list_servers(pb::ListServersRequest::default()).await);
    let unknown = Admin::with(&gate, REFUSED);
    keep(&mut hay, "with an unknown key", unknown.servers().list_servers(pb::ListServersRequest::default()).await);
    hay.push(("metrics".into(), gate.metrics().await));
    rows(&gate, &mut hay).await;
    let file = |name: &str| fs::read_to_string(gate.data(name)).unwrap().trim().to_owned();
    let needles: Needles = vec![
        ("header of a server", HEADER.into()),
        ("header of a test", OTHER_HEADER.into()),
        ("MCP session id of a server", MCP_SESSION.into()),
        ("password in arguments", PASSWORD.into()),
        ("refused credential", REFUSED.into()),
        ("session token", token),
        ("API key", key),
        ("admin key", file("admin.key")),
        ("service token", file("service-token")),
        ("keyring", file("keyring").split_once(':').unwrap().1.to_owned()),
    ];
    gate.stop().await;
    let printed = gate.printed();
    assert!(printed.lines().count() > 1_000 && printed.contains("TRACE"), "it logs at trace");
    hay.extend(printed.lines().map(|line| ("log".to_owned(), line.to_owned())));

    let found = hay.iter().flat_map(|(place, text)| {
        let shown =
            |needle: &String| text.contains(needle) || place.starts_with("table") && text.contains(&hex(needle));
        needles
            .iter()
            .filter(move |(_, needle)| shown(needle))
            .map(move |(what, _)| format!("{what} in {place}: {text:.600}"))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{} finds\n{}", found.len(), found.join("\n"));
    // What was looked through does hold what happened, and the secrets were where they belong.
    let holds = |place: &str, text: &str| hay.iter().any(|(at, hay)| at == place && hay.contains(text));
    assert!(holds("GetCall", "\u{2022}\u{2022}\u{2022}") && holds("GetCall", "refused"));
    assert!(holds("log", "guarded") && holds("table servers", "guarded") && holds("metrics", "guarded"));
    assert!(fake.requests().iter().any(|request| request.header("mcp-session-id") == Some(MCP_SESSION)));
    assert!(fake.requests_of("tools/call").iter().all(|call| String::from_utf8_lossy(&call.body).contains(PASSWORD)));
}

/// A server's own words are for the model; what of them looks like a credential does not stay in the record.
#[tokio::test]
async fn what_looks_like_a_credential_in_a_servers_error_is_not_kept_in_the_audit() {
    const KEY: &str = "sk-live-planted-0123456789abcdef";
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let on_call = |request: &Request, tool: &str| match tool {
        "refuse" => {
            Some(Reply::error(200, &request.id(), -32_000, &format!("upstream said: bad key {KEY}, try again")))
        }
        _ => {
            let block = json!({"type": "text", "text": format!("failed with password={KEY} at step 2")});
            Some(Reply::result(request, &json!({"content": [block], "isError": true})))
        }
    };
    let fake = server(vec![reading_tool("refuse"), reading_tool("fail")], on_call).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (_, token) = admin.session("all", pb::PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    for (tool, kept) in [("refuse", "bad key •••, try again"), ("fail", "failed with password=••• at step 2")]
    {
        let told = engine.call(&format!("s__{tool}"), json!({})).await.to_string();
        assert!(told.contains(KEY), "the model reads the server's words: {told}");
        let call = admin.ended_call(tool).await;
        let request = pb::GetCallRequest { call_id: call.id };
        let whole = admin.audit().get_call(request).await.unwrap().into_inner().call.unwrap();
        assert!(whole.error.contains(kept) && !format!("{whole:?}").contains(KEY), "{whole:?}");
    }
    gate.stop().await;
    assert!(!gate.printed().contains(KEY), "{}", gate.printed());
}
