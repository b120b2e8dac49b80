//! Fake servers, beyond what the shared one does by itself.

use std::sync::atomic::{AtomicU32, Ordering};

use gatehouse_testkit::mcp_server::{FakeServer, Reply, Request, echo_tool, initialize_result};
use serde_json::{Value, json};

/// A tool that declares nothing: it counts as not read-only.
pub(crate) fn writing_tool(name: &str) -> Value {
    json!({"name": name, "description": "Changes something.", "inputSchema": {"type": "object"}})
}

/// The tool `echo`, under another name.
pub(crate) fn reading_tool(name: &str) -> Value {
    let mut tool = echo_tool();
    tool["name"] = name.into();
    tool
}

/// A server with these tools that gives each client a session of its own. `on_call` answers calls; `None` from it echoes.
/// It says that its list never changes, so that a listing is one request.
pub(crate) async fn server(
    tools: Vec<Value>,
    on_call: impl Fn(&Request, &str) -> Option<Reply> + Send + Sync + 'static,
) -> FakeServer {
    let sessions = AtomicU32::new(0);
    let answer = move |request: &Request| match (request.method.as_str(), request.rpc().as_str()) {
        ("POST", "initialize") => {
            let id = format!("session-{}", sessions.fetch_add(1, Ordering::Relaxed));
            Some(initialized(request, false).with_header("mcp-session-id", &id))
        }
        ("POST", "tools/list") => Some(Reply::result(request, &json!({ "tools": tools }))),
        ("POST", "tools/call") => on_call(request, request.json()["params"]["name"].as_str().unwrap_or_default()),
        _ => None,
    };
    FakeServer::start(answer).await.unwrap()
}

/// The answer to `initialize`.
pub(crate) fn initialized(request: &Request, list_changes: bool) -> Reply {
    let mut result = initialize_result();
    result["capabilities"]["tools"]["listChanged"] = list_changes.into();
    Reply::result(request, &result)
}

/// A result of one text.
pub(crate) fn text_result(request: &Request, text: &str) -> Reply {
    Reply::result(request, &json!({"content": [{"type": "text", "text": text}]}))
}

/// The sessions in which calls came, in order, without repetitions.
pub(crate) fn sessions_of_calls(server: &FakeServer) -> Vec<String> {
    let calls = server.requests_of("tools/call");
    let mut sessions: Vec<_> =
        calls.iter().map(|call| call.header("mcp-session-id").unwrap_or_default().to_owned()).collect();
    sessions.dedup();
    sessions
}
