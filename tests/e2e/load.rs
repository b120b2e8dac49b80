//! Many sessions at once: nobody reads another's answer, and nothing is left behind.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use gatehouse_proto::gateway::v1::{DeleteSessionRequest, PermissionMode};
use gatehouse_testkit::mcp_server::{Act, FakeServer, Reply};
use serde_json::json;
use tokio::sync::watch;

use crate::support::{
    Engine, Gate, Options,
    admin_grpc::Admin,
    engine::text_of,
    fakes::{initialized, reading_tool, server, writing_tool},
    within,
};

const SESSIONS: usize = 200;
const ROUNDS: usize = 3;
const SERVERS: [&str; 3] = ["one", "two", "three"];
/// How much more memory than at the start may be in use when all sessions have ended.
const KEPT: u64 = 20 << 20;
/// Connections of the gate itself: the database, the admin, what a pool keeps for the next call.
const FILES: usize = 60;

/// A server that lists its tools only when `open`, has a GET stream, and answers calls with their own message.
async fn held_back(open: watch::Receiver<bool>) -> FakeServer {
    let sessions = AtomicU32::new(0);
    let tools = json!([reading_tool("echo"), writing_tool("change")]);
    FakeServer::start(move |request| match (request.method.as_str(), request.rpc().as_str()) {
        ("POST", "initialize") => {
            let id = format!("session-{}", sessions.fetch_add(1, Ordering::Relaxed));
            Some(initialized(request, false).with_header("mcp-session-id", &id))
        }
        ("POST", "tools/list") => {
            let body = json!({"jsonrpc": "2.0", "id": request.id(), "result": {"tools": tools}}).to_string();
            let told = Arc::new(tokio::sync::Notify::new());
            let (mut open, tell) = (open.clone(), Arc::clone(&told));
            tokio::spawn(async move {
                // Gone with the test.
                let _ = open.wait_for(|open| *open).await;
                tell.notify_one();
            });
            Some(Reply::acts(200, "application/json", vec![Act::Until(told), Act::Write(body.into())]))
        }
        ("GET", _) => Some(Reply::acts(200, "text/event-stream", vec![Act::Pushed])),
        _ => None,
    })
    .await
    .unwrap()
}

fn lists(fakes: &[FakeServer]) -> Vec<usize> {
    fakes.iter().map(|fake| fake.requests_of("tools/list").len()).collect()
}

/// Every session calls every server at once, several times; each answer must be its own.
async fn storm(engines: &[Engine]) {
    let calls = engines.iter().enumerate().flat_map(|(number, engine)| {
        SERVERS.iter().map(move |server| async move {
            for round in 0..ROUNDS {
                let message = format!("session {number} server {server} round {round}");
                let tool = if round == 0 { "change" } else { "echo" };
                let result = engine.call(&format!("{server}__{tool}"), json!({"message": message})).await;
                assert_eq!(text_of(&result), message);
            }
        })
    });
    join_all(calls).await;
}

/// At each server, each MCP session belongs to one session of ours, and to no other.
fn assert_no_cross_talk(fakes: &[FakeServer]) {
    for fake in fakes {
        let mut owners: HashMap<String, HashSet<String>> = HashMap::new();
        for call in fake.requests_of("tools/call") {
            let message = call.json()["params"]["arguments"]["message"].as_str().unwrap().to_owned();
            let owner = message.split(" server").next().unwrap().to_owned();
            owners.entry(call.header("mcp-session-id").unwrap().to_owned()).or_default().insert(owner);
        }
        assert_eq!(owners.len(), SESSIONS);
        let owned: HashSet<_> = owners.values().flatten().collect();
        assert!(owners.values().all(|owners| owners.len() == 1) && owned.len() == SESSIONS);
        assert_eq!(fake.requests_of("tools/call").len(), SESSIONS * ROUNDS);
    }
}

/// All sessions begin together while their servers have not been listed yet: each server is listed once.
async fn begin_together(
    gate: &Gate,
    fakes: &[FakeServer],
    tokens: &[(String, String)],
    open: &watch::Sender<bool>,
) -> Vec<Engine> {
    let engines = join_all(tokens.iter().map(async |(_, token)| {
        let engine = Engine::connect(gate, token).await;
        engine.list().await;
        engine
    }))
    .await;
    for fake in fakes {
        fake.wait_for("tools/list", 1).await.unwrap();
    }
    assert_eq!(lists(fakes), [1, 1, 1], "while a listing is under way, no other begins");
    open.send_replace(true);
    join_all(engines.iter().map(async |engine| {
        within(Duration::from_secs(30), "every session is offered all tools", async || {
            (engine.list().await.len() == 2 * SERVERS.len()).then_some(())
        })
        .await;
    }))
    .await;
    assert_eq!(lists(fakes), [1, 1, 1], "two hundred sessions that begin together cost one listing");
    engines
}

/// This shows that nothing leaks from one storm to the next, not what the first one leaves in a fresh process (not shown yet).
/// Twice as many sessions of another server: the start that counts is that of a process that has worked, with its connections
/// to the database open, its statements prepared, and the memory that its allocator keeps.
async fn warm_up(gate: &Gate, admin: &Admin) {
    let fake = server(vec![reading_tool("echo"), writing_tool("change")], |_, _| None).await;
    admin.listed_server("warm", &fake.url(), &[]).await;
    admin.profile("warm", &["warm"]).await;
    let sessions = join_all((0..SESSIONS * 2).map(async |_| admin.session("warm", PermissionMode::Auto).await)).await;
    join_all(sessions.iter().map(async |(_, token)| {
        let engine = Engine::connect(gate, token).await;
        for tool in engine.names().await {
            assert_eq!(text_of(&engine.call(&tool, json!({"message": "warm"})).await), "warm");
        }
    }))
    .await;
    delete_all(admin, &sessions).await;
    let none = async || (gate.metric("gatehouse_upstream_connections").await == 0).then_some(());
    within(Duration::from_secs(30), "the first sessions have ended", none).await;
    drop(fake);
    let none = async || (gate.running.open_files() < FILES).then_some(());
    within(Duration::from_secs(30), "the first connections are gone", none).await;
}

async fn delete_all(admin: &Admin, sessions: &[(String, String)]) {
    join_all(sessions.iter().map(async |(session, _)| {
        admin.sessions().delete_session(DeleteSessionRequest { session: session.clone() }).await.unwrap();
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_sessions_on_three_servers_share_a_listing_and_nothing_else_and_leave_nothing_behind() {
    let mut gate = Gate::start(Options::default()).await;
    let (admin, open) = (gate.admin(), watch::Sender::new(false));
    let mut fakes = Vec::new();
    for name in SERVERS {
        let fake = held_back(open.subscribe()).await;
        admin.server(name, &fake.url(), &[]).await;
        fakes.push(fake);
    }
    admin.profile("all", &SERVERS).await;
    let fresh = gate.running.memory();
    warm_up(&gate, &admin).await;
    let (memory, files) = (gate.running.memory(), gate.running.open_files());
    let sessions = join_all((0..SESSIONS).map(async |_| admin.session("all", PermissionMode::Auto).await)).await;

    let engines = begin_together(&gate, &fakes, &sessions, &open).await;
    let began = Instant::now();
    storm(&engines).await;
    let took = began.elapsed();
    assert_no_cross_talk(&fakes);
    // A new connection has its server listed again when that was not done in the last ten seconds.
    let most = 2 + usize::try_from(took.as_secs() / 10).unwrap();
    assert!(lists(&fakes).iter().all(|lists| *lists <= most), "{:?} in {took:?}", lists(&fakes));
    let all = SESSIONS * SERVERS.len();
    within(Duration::from_secs(10), "the metric counts the connections", async || {
        (gate.metric("gatehouse_upstream_connections").await == all).then_some(())
    })
    .await;
    let busy = gate.running.memory();

    drop(engines);
    delete_all(&admin, &sessions).await;
    let ended = Instant::now();
    for fake in &fakes {
        within(Duration::from_secs(30), "each MCP session is ended at the server", async || {
            let of_calls: HashSet<_> = fake
                .requests_of("tools/call")
                .iter()
                .map(|call| call.header("mcp-session-id").unwrap().to_owned())
                .collect();
            let ended: HashSet<_> =
                fake.requests_of("DELETE").iter().map(|end| end.header("mcp-session-id").unwrap().to_owned()).collect();
            of_calls.is_subset(&ended).then_some(())
        })
        .await;
    }
    // The pool of connections to servers is looked through every twenty seconds.
    let back = within(Duration::from_mins(1), "connections and memory are back at the start", async || {
        let open = gate.metric("gatehouse_upstream_connections").await;
        let now = (gate.running.memory(), gate.running.open_files());
        let sockets: usize = fakes.iter().map(FakeServer::connections).sum();
        (open == 0 && sockets == 0 && now.0 < memory + KEPT && now.1 < files + FILES).then_some(now)
    })
    .await;
    eprintln!(
        "{} calls in {took:?}; memory {} MiB when fresh, {} at the start, {} at work, {} MiB {:.0} s after the end; {} files of {files}",
        SESSIONS * SERVERS.len() * ROUNDS,
        fresh >> 20,
        memory >> 20,
        busy >> 20,
        back.0 >> 20,
        ended.elapsed().as_secs_f64(),
        back.1,
    );
    gate.stop().await;
}
