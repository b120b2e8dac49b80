//! What engines are offered, and from when on a change counts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use gatehouse_proto::gateway::v1::{
    self as pb, CallOutcome, DeleteSessionRequest, PermissionMode, RotateTokenRequest, UpdateServerRequest,
    UpdateSessionRequest,
};
use gatehouse_testkit::mcp_server::{Act, FakeServer, Reply};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{
    Engine, Gate, Options,
    admin_grpc::Admin,
    engine::text_of,
    fakes::{initialized, reading_tool, server, writing_tool},
    within,
};

/// Definitions that no engine takes, or that make one drop the whole list.
fn odd_tools() -> Vec<Value> {
    let mut no_type = reading_tool("no_type");
    no_type["inputSchema"] = json!({"properties": {"message": {"type": "string"}}});
    let mut null_description = reading_tool("null_description");
    null_description["description"] = Value::Null;
    let mut bad_annotations = writing_tool("bad_annotations");
    bad_annotations["annotations"] = json!({"readOnlyHint": "yes", "title": 7});
    let mut unmendable = writing_tool("unmendable");
    unmendable["inputSchema"] = json!("a string");
    let dialect = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": {"n": {"type": "number"}}, "properties": {"a": {"$ref": "#/$defs/n"}}, "x-unknown": [1.50]});
    let mut exotic = reading_tool("exotic");
    exotic["inputSchema"] = dialect;
    let long = writing_tool(&"long_".repeat(20));
    let same =
        [writing_tool("get-item"), writing_tool("get.item"), writing_tool("get_item"), writing_tool("caf\u{e9}")];
    [no_type, null_description, bad_annotations, unmendable, exotic, long].into_iter().chain(same).collect()
}

async fn offered(gate: &Gate, admin: &Admin, profile: &str, mode: PermissionMode) -> Vec<Value> {
    let (_, token) = admin.session(profile, mode).await;
    Engine::connect(gate, &token).await.list().await
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().unwrap()
}

fn assert_names(tools: &[Value]) {
    let folded: std::collections::HashSet<String> =
        tools.iter().map(|tool| name(tool).replace(['-', '.', '/'], "_")).collect();
    assert_eq!(folded.len(), tools.len(), "distinct also when engines have rewritten them");
    for tool in tools {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(name(tool).len() <= 64 && name(tool).chars().all(good), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
    }
}

#[tokio::test]
async fn a_bad_definition_costs_only_that_tool_and_modes_and_profiles_choose() {
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let odd = server(odd_tools(), |_, _| None).await;
    let plain = server(vec![reading_tool("read"), writing_tool("write")], |_, _| None).await;
    admin.listed_server("odd", &odd.url(), &[]).await;
    admin.listed_server("plain", &plain.url(), &[]).await;
    admin.profile("all", &["odd", "plain"]).await;
    let tools = offered(&gate, &admin, "all", PermissionMode::Auto).await;
    assert_eq!(tools.len(), odd_tools().len() + 2 - 1, "{tools:#?}");
    assert_names(&tools);
    let exotic = tools.iter().find(|tool| name(tool) == "odd__exotic").unwrap();
    assert_eq!(exotic["inputSchema"], odd_tools()[4]["inputSchema"], "schemas pass as they are");
    let listed = admin.tools().list_tools(pb::ListToolsRequest { server: "odd".into(), ..Default::default() }).await;
    let listed = listed.unwrap().into_inner().tools;
    let problems: Vec<_> = listed.iter().filter(|tool| !tool.problem.is_empty()).map(|tool| &tool.name).collect();
    assert_eq!(problems, ["unmendable"]);

    // Every listed name can be called, and reaches the tool that it stands for.
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    for tool in listed.iter().filter(|tool| tool.problem.is_empty()) {
        engine.call(&tool.exposed_name, json!({"message": "x"})).await;
        let called = odd.requests_of("tools/call").pop().unwrap().json();
        assert_eq!(called["params"]["name"], tool.name.as_str());
    }

    let reading = offered(&gate, &admin, "all", PermissionMode::ReadOnly).await;
    let reading: Vec<_> = reading.iter().map(name).collect();
    assert_eq!(reading, ["odd__no_type", "odd__null_description", "odd__exotic", "plain__read"]);
    let subset = pb::ProfileServer { server: "plain".into(), tools: vec!["write".into()], only_tools: true };
    let request = pb::CreateProfileRequest { name: "few".into(), servers: vec![subset], ..Default::default() };
    admin.profiles().create_profile(request).await.unwrap();
    let few = offered(&gate, &admin, "few", PermissionMode::Auto).await;
    assert_eq!(few.iter().map(name).collect::<Vec<_>>(), ["plain__write"]);
    assert!(offered(&gate, &admin, "few", PermissionMode::ReadOnly).await.is_empty());

    // An admin who knows better overrides what the server declares, or does not.
    admin.read_only("plain", "write", true).await;
    let few = offered(&gate, &admin, "few", PermissionMode::ReadOnly).await;
    assert_eq!(few.iter().map(name).collect::<Vec<_>>(), ["plain__write"]);
    assert_eq!(few[0]["annotations"]["readOnlyHint"], true, "engines see what counts");
    admin.read_only("plain", "write", false).await;

    // What is not offered cannot be called either.
    let (_, token) = admin.session("all", PermissionMode::ReadOnly).await;
    let engine = Engine::connect(&gate, &token).await;
    let refused = engine.call("plain__write", json!({})).await;
    assert!(refused["isError"] == true && text_of(&refused).contains("there is no tool `plain__write`"), "{refused}");
    assert!(plain.requests_of("tools/call").is_empty());
    gate.stop().await;
}

/// A server that says when its list changes; `more` tools besides `echo`.
pub(crate) async fn growing(more: &Arc<AtomicUsize>) -> FakeServer {
    let more = Arc::clone(more);
    FakeServer::start(move |request| match (request.method.as_str(), request.rpc().as_str()) {
        ("POST", "initialize") => Some(initialized(request, true).with_header("mcp-session-id", "growing")),
        ("POST", "tools/list") => {
            let extra = (0..more.load(Ordering::Relaxed)).map(|number| writing_tool(&format!("extra_{number}")));
            let tools: Vec<_> = std::iter::once(reading_tool("echo")).chain(extra).collect();
            Some(Reply::result(request, &json!({ "tools": tools })))
        }
        ("GET", _) => Some(Reply::acts(200, "text/event-stream", vec![Act::Pushed])),
        _ => None,
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn many_changes_of_a_list_reach_the_engine_as_one_notice_after_quiet() {
    let mut gate = Gate::start(Options::default()).await;
    let (admin, more) = (gate.admin(), Arc::new(AtomicUsize::new(0)));
    let fake = growing(&more).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    let mut notices = engine.get(None).await.events();
    assert_eq!(text_of(&engine.call("s__echo", json!({"message": "x"})).await), "x");
    fake.wait_for_listeners(1).await.unwrap();
    let notice = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
    let lists = fake.requests_of("tools/list").len();
    for count in 1..=5 {
        more.store(count, Ordering::Relaxed);
        fake.push(notice.repeat(200));
    }
    let event = timeout(Duration::from_secs(30), notices.message()).await.unwrap().unwrap();
    assert_eq!(event.data["method"], "notifications/tools/list_changed");
    assert_eq!(engine.list().await.len(), 6);
    let listings = fake.requests_of("tools/list").len() - lists;
    assert!(listings <= 6, "a thousand notifications cost {listings} listings");
    // A list that is announced but has not changed is no news.
    let version = admin.show("s").await.tools_updated_at;
    let lists = fake.requests_of("tools/list").len();
    fake.push(notice);
    fake.wait_for("tools/list", lists + 2).await.unwrap();
    assert_eq!(admin.show("s").await.tools_updated_at, version);
    // A tool that vanished: what there is now is told by the next listing only.
    more.store(0, Ordering::Relaxed);
    fake.push(notice);
    let event = timeout(Duration::from_secs(30), notices.message()).await.unwrap().unwrap();
    assert_eq!(event.data["method"], "notifications/tools/list_changed");
    let gone = engine.call("s__extra_1", json!({})).await;
    assert!(text_of(&gone).contains("there is no tool `s__extra_1`") && !text_of(&gone).contains("s__echo"), "{gone}");
    assert_eq!(engine.names().await, ["s__echo"]);
    // The next thing on the stream is its end.
    let (rest, ()) = tokio::join!(notices.message(), gate.stop());
    assert_eq!(rest, None, "one notice for all changes");
}

/// Calls until the outcome is as wanted, and gives how long that took.
async fn until(engine: &Engine, tool: &str, refused: bool) -> Duration {
    let began = Instant::now();
    within(Duration::from_secs(10), "the change counts", async || {
        let result = engine.call(tool, json!({"message": "x"})).await;
        ((result["isError"] == true) == refused).then_some(())
    })
    .await;
    began.elapsed()
}

/// With a token that is no longer good: refused by the token, or, within the second that a reading may take to see it, in words.
async fn assert_changes_nothing(engine: &Engine, fake: &FakeServer) {
    let calls = fake.requests_of("tools/call").len();
    let refused = engine.start_call("s__write", json!({"message": "x"})).await;
    assert!(refused.status == StatusCode::UNAUTHORIZED || refused.message().await["result"]["isError"] == true);
    assert_eq!(fake.requests_of("tools/call").len(), calls);
    within(Duration::from_secs(1), "the token is refused", async || {
        let status = engine.request("tools/list", &json!({})).await.status;
        (status == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
}

#[tokio::test]
async fn changes_of_servers_tokens_and_sessions_count_from_the_next_call() {
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let fake = server(vec![reading_tool("read"), writing_tool("write")], |_, _| None).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (session, token) = admin.session("all", PermissionMode::Auto).await;
    let mut engine = Engine::connect(&gate, &token).await;
    let enabled = async |enabled: bool| {
        let request = UpdateServerRequest { server: "s".into(), enabled: Some(enabled), ..Default::default() };
        admin.servers().update_server(request).await.unwrap();
    };
    for round in 0..10 {
        assert_ne!(engine.call("s__write", json!({"message": "x"})).await["isError"], true, "{round}");
        let calls = fake.requests_of("tools/call").len();
        enabled(false).await;
        let refused = engine.call("s__write", json!({"message": "x"})).await;
        assert_eq!(refused["isError"], true, "at once for a call that changes something: {refused}");
        assert_eq!(fake.requests_of("tools/call").len(), calls);
        let late = until(&engine, "s__read", true).await;
        assert!(late < Duration::from_secs(1), "{late:?}");
        enabled(true).await;
        until(&engine, "s__write", false).await;
    }
    assert_eq!(admin.ended_call("write").await.outcome(), CallOutcome::Ok);

    // The same for the mode of a session: from the next call on.
    let mode = async |mode: PermissionMode| {
        let mode = Some(mode.into());
        let request = UpdateSessionRequest { session: session.clone(), permission_mode: mode, ..Default::default() };
        admin.sessions().update_session(request).await.unwrap();
    };
    mode(PermissionMode::ReadOnly).await;
    assert_eq!(engine.call("s__write", json!({"message": "x"})).await["isError"], true);
    mode(PermissionMode::Auto).await;
    until(&engine, "s__write", false).await;

    let rotate = RotateTokenRequest { session: session.clone(), ..Default::default() };
    let fresh = admin.sessions().rotate_token(rotate).await.unwrap().into_inner().token;
    assert_changes_nothing(&engine, &fake).await;
    engine.set_token(&fresh);
    assert_eq!(engine.names().await, ["s__read", "s__write"], "the MCP session goes on with the new token");

    // An engine may end its own MCP session; the session of ours goes on.
    assert_eq!(engine.delete().await, StatusCode::OK);
    assert_eq!(engine.request("tools/list", &json!({})).await.status, StatusCode::NOT_FOUND);
    engine.session.clear();
    engine.initialize().await;

    admin.sessions().delete_session(DeleteSessionRequest { session }).await.unwrap();
    assert_changes_nothing(&engine, &fake).await;
    gate.stop().await;
}
