//! A database that goes silent, and servers that come and go.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gatehouse_proto::gateway::v1::{CallOutcome, ListCallsRequest, PermissionMode, UpdateServerRequest};
use gatehouse_testkit::{Database, eventually};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::support::{
    Engine, Gate, Options,
    engine::text_of,
    fakes::{reading_tool, server, writing_tool},
};

/// What makes the way to the database swallow a connection.
const SWALLOW: &[u8] = b"swallow this connection";

/// A way to a database that swallows, without a word, the first connection over which [`SWALLOW`] goes.
struct Way {
    url: String,
    swallowed: Arc<AtomicBool>,
}

impl Way {
    async fn to(database: &Database) -> Self {
        let url = database.url();
        let (before, rest) = url.split_once('@').unwrap();
        let (host, name) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = format!("{before}@{}/{name}", listener.local_addr().unwrap());
        let (host, swallowed) = (host.to_owned(), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&swallowed);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(client, TcpStream::connect(host.clone()).await.unwrap(), Arc::clone(&seen)));
            }
        });
        Self { url: way, swallowed }
    }
}

async fn pass_on(mut client: TcpStream, mut database: TcpStream, swallowed: Arc<AtomicBool>) {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => match read {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    let asks_for_it = asked[..count].windows(SWALLOW.len()).any(|window| window == SWALLOW);
                    if asks_for_it && !swallowed.swap(true, Ordering::Relaxed) {
                        // Both sides stay open, and nothing goes through any more.
                        return std::future::pending().await;
                    }
                    database.write_all(&asked[..count]).await.unwrap();
                }
            },
            read = database.read(&mut answered) => match read {
                Ok(0) | Err(_) => return,
                Ok(count) => if client.write_all(&answered[..count]).await.is_err() { return },
            },
        }
    }
}

#[tokio::test]
async fn a_database_connection_that_goes_silent_costs_the_calls_of_ten_seconds_and_no_more() {
    let database = Database::new().await;
    let way = Way::to(&database).await;
    let mut gate = Gate::start(Options { variables: vec![("DATABASE_URL", way.url.clone())] }).await;
    let admin = gate.admin();
    let fake = server(vec![reading_tool("echo"), writing_tool("change")], |_, _| None).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    engine.call("s__change", json!({"message": "fine"})).await;
    let began = Instant::now();
    let refused = engine.call("s__change", json!({"message": std::str::from_utf8(SWALLOW).unwrap()})).await;
    assert!(way.swallowed.load(Ordering::Relaxed));
    assert!(text_of(&refused).contains("so the call was not sent. Nothing was carried out"), "{refused}");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    engine.call("s__change", json!({"message": "fine again"})).await;
    assert_eq!(text_of(&engine.call("s__echo", json!({"message": "fine again"})).await), "fine again");
    assert_eq!(fake.requests_of("tools/call").len(), 3, "what was refused did not reach the server");
    gate.stop().await;
}

#[tokio::test]
async fn a_server_that_was_set_right_is_used_by_the_next_call() {
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let fake = server(vec![writing_tool("change")], |_, _| None).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    let moved = async |url: String| {
        let change = UpdateServerRequest { server: "s".into(), url: Some(url), ..Default::default() };
        admin.servers().update_server(change).await.unwrap();
    };
    moved("http://127.0.0.1:1/mcp".to_owned()).await;
    let refused = engine.call("s__change", json!({})).await;
    assert!(text_of(&refused).contains("the connection was refused. Nothing was carried out"), "{refused}");
    moved(fake.url()).await;
    let result = engine.call("s__change", json!({})).await;
    assert!(result.get("isError").is_none(), "{result}");
    let call = admin.ended_call("change").await;
    assert_eq!(call.outcome(), CallOutcome::Ok);
    gate.stop().await;
}

#[tokio::test]
async fn a_call_that_was_refused_for_the_databases_sake_is_in_the_audit_as_not_sent() {
    let database = Database::new().await;
    let mut gate = Gate::start(Options { variables: vec![("DATABASE_URL", database.url())] }).await;
    let admin = gate.admin();
    let fake = server(vec![writing_tool("change")], |_, _| None).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (_, token) = admin.session("all", PermissionMode::Auto).await;
    let engine = Engine::connect(&gate, &token).await;
    engine.call("s__change", json!({})).await;
    // Like a slow disk: the row waits, longer than the call does.
    let lock = database.lock("calls").await.unwrap();
    let refused = engine.call("s__change", json!({})).await;
    assert!(text_of(&refused).contains("so the call was not sent. Nothing was carried out"), "{refused}");
    lock.rollback().await.unwrap();
    let calls = eventually("the refused call is recorded", async || {
        let calls = admin.calls(ListCallsRequest::default()).await;
        (calls.len() == 2 && calls.iter().all(|call| call.outcome() != CallOutcome::Running)).then_some(calls)
    })
    .await;
    assert_eq!(calls[0].outcome(), CallOutcome::NotSent, "{calls:?}");
    assert_eq!(fake.requests_of("tools/call").len(), 1);
    gate.stop().await;
}
