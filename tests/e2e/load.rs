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
    fakes::{initialized, reading_tool, writing_tool},
    within,
};

const SESSIONS: usize = 200;
const ROUNDS: usize = 3;
const SERVERS: [&str; 3] = ["one", "two", "three"];
/// How long after the end of the sessions everything must be back where it was in the fresh process.
const BACK_WITHIN: Duration = Duration::from_mins(1);
/// How much more memory than in the fresh process may then be in use, in bytes.
const MEMORY_KEPT: u64 = 20 << 20;
/// How many more files: of its 20 connections to the database a fresh process has not opened all; the rest are of the test itself.
const FILES_KEPT: usize = 25;
/// How many more tasks.
const TASKS_KEPT: usize = 10;

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

/// What a process holds of the machine.
#[derive(Debug, Clone, Copy)]
struct Held {
    memory: u64,
    files: usize,
    tasks: usize,
}

impl Held {
    async fn by(gate: &Gate) -> Self {
        let tasks = gate.metric("gatehouse_tasks").await;
        Self { memory: gate.running.memory(), files: gate.running.open_files(), tasks }
    }

    /// Whether it is back at `start`, but for what the process keeps for its next work.
    fn is_back_at(self, start: Self) -> bool {
        self.memory <= start.memory + MEMORY_KEPT
            && self.files <= start.files + FILES_KEPT
            && self.tasks <= start.tasks + TASKS_KEPT
    }
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
    // No session has been there yet: whatever the first storm leaves behind counts.
    let start = Held::by(&gate).await;
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
    let busy = Held::by(&gate).await;

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
    let left = BACK_WITHIN.saturating_sub(ended.elapsed());
    let back = within(left, "connections, tasks and memory are back at the start", async || {
        let open = gate.metric("gatehouse_upstream_connections").await;
        let sockets: usize = fakes.iter().map(FakeServer::connections).sum();
        let now = Held::by(&gate).await;
        (open == 0 && sockets == 0 && now.is_back_at(start)).then_some(now)
    })
    .await;
    eprintln!(
        "{} calls in {took:?}; start {start:?}, at work {busy:?}, {:.0} s after the end {back:?}",
        SESSIONS * SERVERS.len() * ROUNDS,
        ended.elapsed().as_secs_f64(),
    );
    gate.stop().await;
}
