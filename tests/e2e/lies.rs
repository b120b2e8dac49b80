//! Servers that break every rule: each hurts its own calls, and nobody else's.

use std::time::Duration;

use gatehouse_proto::gateway::v1::{
    CallOutcome, CreateServerRequest, ListCallsRequest, PermissionMode, ServerState, UpdateServerRequest,
};
use gatehouse_testkit::{
    eventually,
    mcp_server::{Act, FakeServer, Reply, Request, event, initialize_result},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{
    Engine, Gate, Options,
    admin_grpc::Admin,
    engine::text_of,
    fakes::{reading_tool, server, text_result, writing_tool},
    within,
};

/// How long the liar's calls may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest answer that is taken, in bytes.
const MOST_RESULT: u64 = 1 << 20;

/// A lie: the tool that tells it, a part of the words that the model gets, and the outcome in the audit.
type Lie = (&'static str, &'static str, CallOutcome);

const LIES: [Lie; 18] = [
    ("hang", "did not answer within 5 s", CallOutcome::TimedOut),
    ("hang_after_head", "did not answer within 5 s", CallOutcome::TimedOut),
    ("drip_comments", "did not answer within 5 s", CallOutcome::TimedOut),
    ("html", "did not answer as an MCP server does", CallOutcome::ToolError),
    ("html_500", "HTTP status 500", CallOutcome::ToolError),
    ("drop", "was lost", CallOutcome::Unknown),
    ("drop_after_head", "was lost", CallOutcome::Unknown),
    ("close_mid_body", "was lost", CallOutcome::Unknown),
    ("close_mid_event", "was lost", CallOutcome::Unknown),
    ("too_long_length", "was lost", CallOutcome::Unknown),
    ("too_short_length", "did not answer as an MCP server does", CallOutcome::ToolError),
    ("endless_json", "is larger than 1048576 bytes", CallOutcome::ToolError),
    ("endless_event", "is larger than 1048576 bytes", CallOutcome::ToolError),
    ("endless_events", "is larger than", CallOutcome::ToolError),
    ("other_id", "did not answer as an MCP server does", CallOutcome::ToolError),
    ("other_ids_streamed", "was lost", CallOutcome::Unknown),
    ("malformed_events", "was lost", CallOutcome::Unknown),
    ("not_a_result", "not as a tool does", CallOutcome::ToolError),
];

fn stream(acts: Vec<Act>) -> Reply {
    Reply::acts(200, "text/event-stream", acts)
}

fn head(length: usize) -> Act {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    Act::Write(head.into())
}

fn lie(request: &Request, tool: &str) -> Option<Reply> {
    let answer = json!({"jsonrpc": "2.0", "id": request.id(), "result": {"content": [{"type": "text", "text": "x"}]}});
    let answer = answer.to_string();
    let other = |id: u64| json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}).to_string();
    let large = "x".repeat(256 << 10);
    Some(match tool {
        "hang" => Reply::raw(vec![Act::Hang]),
        "hang_after_head" => stream(vec![Act::Hang]),
        "drip_comments" => {
            let drop = [Act::Write(": nothing\n\n".into()), Act::Pause(Duration::from_millis(100))];
            stream(drop.into_iter().cycle().take(1_000).collect())
        }
        "html" => Reply::new(200, "text/html", "<html><body>Welcome!</body></html>"),
        "html_500" => Reply::new(500, "text/html", "<html><body>Oops</body></html>"),
        "drop" => Reply::raw(Vec::new()),
        "drop_after_head" => Reply::raw(vec![head(100)]),
        "close_mid_body" => {
            Reply::raw(vec![head(answer.len()), Act::Write(answer[..answer.len() / 2].to_owned().into())])
        }
        "close_mid_event" => stream(vec![Act::Write(format!("data: {}", &answer[..20]).into())]),
        "too_long_length" => Reply::raw(vec![head(answer.len() + 10), Act::Write(answer.into())]),
        // What follows the length must not be read as the answer to another call.
        "too_short_length" => Reply::raw(vec![head(10), Act::Write(format!("{answer}{answer}").into()), Act::Hang]),
        "endless_json" => Reply::acts(200, "application/json", vec![Act::Forever(large.into())]),
        "endless_event" => stream(vec![Act::Write("data: ".into()), Act::Forever(large.into())]),
        "endless_events" => {
            let notice = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": large}});
            stream(vec![Act::Forever(event(None, &notice.to_string()).into())])
        }
        "other_id" => Reply::json(200, other(999_999_999)),
        "other_ids_streamed" => Reply::stream([event(None, &other(1)), event(None, &other(u64::MAX))]),
        "malformed_events" => Reply::stream(["data: {not json\n\n", "data: []\n\n", "\u{0}\n\n"]),
        "not_a_result" => Reply::result(request, &json!([1, 2])),
        _ => return None,
    })
}

/// A gate with a good server, and a liar whose tools are named after their lies.
async fn gate_and_liar() -> (Gate, FakeServer, FakeServer) {
    let gate = Gate::start(Options::default()).await;
    let good = server(vec![reading_tool("echo")], |_, _| None).await;
    let tools = LIES.iter().map(|(tool, ..)| writing_tool(tool)).chain([reading_tool("echo")]).collect();
    let liar = server(tools, lie).await;
    let admin = gate.admin();
    admin.set(&[("calls.maxResultBytes", MOST_RESULT.into())]).await;
    admin.listed_server("good", &good.url(), &[]).await;
    let request_timeout = Some(prost_types::Duration { seconds: PATIENCE.as_secs().cast_signed(), nanos: 0 });
    let request = CreateServerRequest { name: "liar".into(), url: liar.url(), request_timeout, ..Default::default() };
    admin.servers().create_server(request).await.unwrap();
    admin.healthy("liar").await;
    admin.profile("all", &["good", "liar"]).await;
    (gate, good, liar)
}

/// Calls the good server over and over until `over`, and checks each answer. Gives how many, the slowest, and the largest
/// memory that was seen.
async fn good_calls(gate: &Gate, engine: &Engine, over: impl Fn() -> bool) -> (u32, Duration, u64) {
    let (mut count, mut slowest, mut memory) = (0, Duration::ZERO, 0);
    while !over() {
        count += 1;
        let began = Instant::now();
        let result = engine.call("good__echo", json!({"message": format!("good {count}")})).await;
        slowest = slowest.max(began.elapsed());
        assert_eq!(text_of(&result), format!("good {count}"));
        memory = memory.max(gate.running.memory());
    }
    (count, slowest, memory)
}

#[tokio::test]
async fn each_lie_of_a_server_costs_its_own_call_and_nothing_else() {
    let (mut gate, _good, liar) = gate_and_liar().await;
    let admin = gate.admin();
    let (session, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    engine.call("good__echo", json!({"message": "warm"})).await;
    let before = gate.running.memory();

    let told = std::cell::Cell::new(0);
    let lies = LIES.iter().map(async |(tool, words, _)| {
        let result = engine.call(&format!("liar__{tool}"), json!({})).await;
        told.set(told.get() + 1);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(text_of(&result).starts_with("Error: ") && text_of(&result).contains(words), "{tool}: {result}");
    });
    let meanwhile = good_calls(&gate, &engine, || told.get() == LIES.len());
    let (_, (count, slowest, memory)) = tokio::join!(futures_util::future::join_all(lies), meanwhile);
    let grown = memory.saturating_sub(before) >> 20;
    eprintln!("{count} good calls meanwhile, the slowest took {slowest:?}; memory grew by at most {grown} MiB");
    assert!(count > 20, "the good server's calls went on: {count}");
    assert!(grown < 100, "three endless answers, each bounded to 1 MiB, or 8 for a stream: {grown} MiB");

    // The liar itself can still be called, in the same session.
    let result = engine.call("liar__echo", json!({"message": "true"})).await;
    assert_eq!(text_of(&result), "true");
    assert_eq!(liar.requests_of("notifications/cancelled").len(), 3, "a server that keeps quiet is told to stop");
    for (tool, words, outcome) in LIES {
        let call = admin.ended_call(tool).await;
        assert_eq!((call.outcome(), call.retries), (outcome, 0), "{tool}: {call:?}");
        assert!(call.error.contains(words), "{tool}: {call:?}");
        assert_eq!(call.session_id, session);
    }
    gate.stop().await;
}

#[tokio::test]
async fn a_lost_call_is_repeated_only_when_it_reads() {
    let gate = Gate::start(Options::default()).await;
    let (reads, writes) = (std::sync::atomic::AtomicU32::new(0), std::sync::atomic::AtomicU32::new(0));
    let fake = server(vec![reading_tool("read"), writing_tool("write")], move |request, tool| {
        let seen = if tool == "read" { &reads } else { &writes };
        let first = seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        Some(if first { Reply::raw(Vec::new()) } else { text_result(request, "second") })
    })
    .await;
    let admin = gate.admin();
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    assert_eq!(text_of(&engine.call("s__read", json!({})).await), "second");
    let lost = engine.call("s__write", json!({})).await;
    assert!(text_of(&lost).contains("may or may not have been carried out. Check before you repeat it"), "{lost}");
    let (read, write) = (admin.ended_call("read").await, admin.ended_call("write").await);
    assert_eq!((read.outcome(), read.retries), (CallOutcome::Ok, 1));
    assert_eq!((write.outcome(), write.retries), (CallOutcome::Unknown, 0));
    assert_eq!(fake.requests_of("tools/call").len(), 3);
}

/// Ten megabytes of tools, on one page or on many.
fn ten_megabytes(request: &Request, pages: usize) -> Reply {
    let at: usize = request.json()["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let each = 1_000 / pages;
    let tools = (at * each..(at + 1) * each).map(|number| {
        let mut tool = writing_tool(&format!("tool_{number}"));
        tool["inputSchema"]["description"] = "x".repeat(10_000).into();
        tool
    });
    let mut result = json!({"tools": tools.collect::<Vec<_>>()});
    if at + 1 < pages {
        result["nextCursor"] = (at + 1).to_string().into();
    }
    Reply::result(request, &result)
}

/// Servers that lie before or while they list their tools, and a part of the words that an admin reads.
const BAD_LISTERS: [(&str, &str); 8] = [
    ("hangs", "no answer within the time allowed"),
    ("html", "does not answer as an MCP server"),
    ("drops", "broke before the answer"),
    ("other_version", "not supported"),
    ("big", "larger than 8388608 bytes"),
    ("big_pages", "more than 8388608 bytes"),
    ("circle", "goes round in circles"),
    ("no_list", "no array"),
];

fn bad_listing(name: &str, request: &Request) -> Option<Reply> {
    match (name, request.rpc().as_str()) {
        ("hangs", _) => Some(Reply::raw(vec![Act::Hang])),
        ("html", _) => Some(Reply::new(200, "text/html", "<html>hello</html>")),
        ("drops", _) => Some(Reply::raw(Vec::new())),
        ("other_version", "initialize") => {
            let mut result = initialize_result();
            result["protocolVersion"] = "2019-01-01".into();
            Some(Reply::result(request, &result))
        }
        ("big", "tools/list") => Some(ten_megabytes(request, 1)),
        ("big_pages", "tools/list") => Some(ten_megabytes(request, 10)),
        ("circle", "tools/list") => Some(Reply::result(request, &json!({"tools": [], "nextCursor": "again"}))),
        ("no_list", "tools/list") => Some(Reply::result(request, &json!({"tools": {"a": 1}}))),
        _ => None,
    }
}

async fn failing(admin: &Admin, name: &str, words: &str) {
    let status = eventually("the server is failing", async || {
        let status = admin.show(name).await.status.unwrap();
        assert!(status.state() != ServerState::Healthy, "{name}: {status:?}");
        (status.state() == ServerState::Failing).then_some(status)
    })
    .await;
    assert!(status.message.contains(words), "{name}: {status:?}");
}

#[tokio::test]
async fn a_server_that_cannot_be_listed_says_why_and_the_others_are_offered() {
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let good = server(vec![reading_tool("echo")], |_, _| None).await;
    admin.listed_server("good", &good.url(), &[]).await;
    let before = gate.running.memory();
    let (mut fakes, mut names) = (Vec::new(), vec!["good"]);
    for (name, _) in BAD_LISTERS {
        let fake = FakeServer::start(move |request| bad_listing(name, request)).await.unwrap();
        let connect_timeout = Some(prost_types::Duration { seconds: 2, nanos: 0 });
        let request = CreateServerRequest { name: name.into(), url: fake.url(), connect_timeout, ..Default::default() };
        admin.servers().create_server(request).await.unwrap();
        fakes.push(fake);
        names.push(name);
    }
    for (name, words) in BAD_LISTERS {
        failing(&admin, name, words).await;
    }
    admin.profile("all", &names).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    let list = engine.request("tools/list", &json!({})).await.message().await;
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 1, "{list}");
    let unavailable: Vec<Value> = list["result"]["_meta"]["gatehouse/unavailable"].as_array().unwrap().clone();
    for (name, words) in BAD_LISTERS {
        let of = unavailable.iter().find(|entry| entry["server"] == name).unwrap();
        assert!(of["reason"].as_str().unwrap().contains(words), "{of}");
    }
    assert_eq!(text_of(&engine.call("good__echo", json!({"message": "fine"})).await), "fine");
    // A list of ten megabytes is good once an admin allows it.
    admin.set(&[("tools.maxListBytes", (16 << 20).into())]).await;
    assert_eq!(admin.refresh("big").await.tool_count, 1_000);
    let tools = within(Duration::from_secs(10), "the big list is offered", async || {
        let tools = engine.list().await;
        (tools.len() > 1).then_some(tools)
    })
    .await;
    assert_eq!(tools.len(), 1_001);
    let grown = gate.running.memory().saturating_sub(before) >> 20;
    eprintln!("memory grew by {grown} MiB");
    assert!(grown < 200, "{grown} MiB");
    // Repaired, it is found again.
    admin
        .servers()
        .update_server(UpdateServerRequest { server: "html".into(), url: Some(good.url()), ..Default::default() })
        .await
        .unwrap();
    admin.refresh("html").await;
    assert_eq!(text_of(&engine.call("html__echo", json!({"message": "fine"})).await), "fine");
    assert!(admin.calls(ListCallsRequest::default()).await.iter().all(|call| call.outcome() == CallOutcome::Ok));
    gate.stop().await;
}
