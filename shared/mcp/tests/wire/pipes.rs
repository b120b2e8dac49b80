//! The stdio transport: a process whose pipes the test holds.

use std::sync::Arc;

use gatehouse_mcp::{Connection, Inbound, OpenError, Options, Reply, RequestError, RequestOptions};
use gatehouse_testkit::mcp_server::initialize_result;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio_util::sync::CancellationToken;

use crate::common::{HI, Recorder, call, call_with, options};

/// Bytes that a pipe holds.
const PIPE: usize = 64 << 10;

/// The process's side of its pipes.
struct Process {
    input: Lines<BufReader<DuplexStream>>,
    output: DuplexStream,
}

impl Process {
    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.input.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn say(&mut self, text: &str) {
        self.output.write_all(text.as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, id: &Value) {
        self.say(&format!("{{\"result\":{HI},\"jsonrpc\":\"2.0\",\"id\":{id}}}\n")).await;
    }
}

async fn start_with(options: Options, inbound: Arc<dyn Inbound>) -> (Result<Connection, OpenError>, Process) {
    let ((ours, theirs), (output, read)) = (duplex(PIPE), duplex(PIPE));
    let mut process = Process { input: BufReader::new(theirs).lines(), output };
    let serving = async {
        let request = process.next().await;
        assert_eq!(
            (request["method"].as_str(), request["params"]["protocolVersion"].as_str()),
            (Some("initialize"), Some("2025-11-25"))
        );
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": initialize_result()});
        process.say(&format!("{answer}\n")).await;
        assert_eq!(process.next().await, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        process
    };
    tokio::join!(Connection::open_pipes(read, ours, options, inbound), serving)
}

async fn start(inbound: Arc<dyn Inbound>) -> (Connection, Process) {
    let (opened, process) = start_with(options(), inbound).await;
    (opened.unwrap(), process)
}

#[tokio::test]
async fn many_calls_share_a_process_and_one_that_hangs_holds_up_no_other() {
    let (connection, mut process) = start(Arc::new(())).await;
    assert_eq!(connection.stored_session().mcp_session_id, None);
    let stop = CancellationToken::new();
    let reports = std::sync::Mutex::new(Vec::new());
    let on_progress =
        |report: gatehouse_mcp::Progress<'_>| reports.lock().unwrap().push(report.progress.get().to_owned());
    let options = RequestOptions { cancel: Some(&stop), on_progress: Some(&on_progress), ..RequestOptions::default() };
    let stuck = call_with(&connection, options);
    let serving = async {
        let hanging = process.next().await;
        let token = &hanging["params"]["_meta"]["progressToken"];
        process.say(&format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":1.50}}}}\n")).await;
        for _ in 0..3 {
            let (answer, request) = tokio::join!(call(&connection), async {
                let request = process.next().await;
                process.answer(&request["id"]).await;
                request
            });
            assert_eq!(answer.unwrap().result_str(), HI);
            assert_ne!(request["id"], hanging["id"]);
        }
        stop.cancel();
        let told = process.next().await;
        assert_eq!(
            (&told["method"], &told["params"]["requestId"]),
            (&json!("notifications/cancelled"), &hanging["id"])
        );
        // Too late: nobody waits for it.
        process.answer(&hanging["id"]).await;
    };
    let (ended, ()) = tokio::join!(stuck, serving);
    assert!(matches!(ended, Err(RequestError::Cancelled)), "{ended:?}");
    assert_eq!(*reports.lock().unwrap(), ["1.50"]);
}

#[tokio::test]
async fn what_is_no_message_is_skipped_and_odd_lines_are_read() {
    let recorder = Arc::new(Recorder::default());
    let (connection, mut process) = start(recorder.clone()).await;
    let serving = async {
        let id = process.next().await["id"].clone();
        process.say("Listening on stdio…\n\n  \r\n{\"broken\": \n\u{feff}").await;
        process.say("[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/a\"}, {\"jsonrpc\":\"2.0\",\"method\":\"notifications/b\"}]\r\n").await;
        process.say("npm warn deprecated\n").await;
        process.say(&format!("  {{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{HI}}}  \r\n")).await;
    };
    let (answer, ()) = tokio::join!(call(&connection), serving);
    assert_eq!(answer.unwrap().result_str(), HI);
    assert_eq!(recorder.wait_for(2).await, ["notifications/a  listen", "notifications/b  listen"]);
    assert_eq!(*recorder.stray.lock().unwrap(), ["Listening on stdio…", "{\"broken\":", "npm warn deprecated"]);
}

#[tokio::test]
async fn a_line_that_is_too_long_fails_its_own_call_and_no_other() {
    let options = Options { most_message_bytes: 4_096, ..options() };
    let (connection, mut process) = start_with(options, Arc::new(())).await;
    let connection = connection.unwrap();
    let serving = async {
        let (first, second) = (process.next().await["id"].clone(), process.next().await["id"].clone());
        process.say(&format!("{{\"result\":\"{}\",\"jsonrpc\":\"2.0\",\"id\":{first}}}\n", "x".repeat(40_000))).await;
        process.answer(&second).await;
    };
    let (first, second, ()) = tokio::join!(call(&connection), call(&connection), serving);
    assert!(matches!(first, Err(RequestError::TooLarge { most: 4_096 })), "{first:?}");
    assert_eq!(second.unwrap().result_str(), HI);
}

#[tokio::test]
async fn the_end_of_a_process_fails_what_waits_and_nothing_is_sent_to_it_any_more() {
    let (connection, mut process) = start(Arc::new(())).await;
    assert!(!connection.has_ended());
    let serving = async {
        let (first, _second) = (process.next().await, process.next().await);
        process.answer(&first["id"]).await;
        drop(process);
    };
    let (first, second, ()) = tokio::join!(call(&connection), call(&connection), serving);
    assert_eq!(first.unwrap().result_str(), HI, "it answered before it ended");
    let second = second.unwrap_err();
    assert!(matches!(second, RequestError::Lost(_)) && !second.certainly_not_carried_out(), "{second:?}");
    connection.ended().await;
    assert!(connection.has_ended());
    let late = call(&connection).await.unwrap_err();
    assert!(late.certainly_not_carried_out() && late.needs_new_connection(), "{late:?}");
}

#[tokio::test]
async fn a_process_that_does_not_speak_or_ends_at_once_is_not_opened() {
    let silent = Options { connect_timeout: std::time::Duration::from_millis(50), ..options() };
    let ((ours, _theirs), (_output, read)) = (duplex(PIPE), duplex(PIPE));
    let opened = Connection::open_pipes(read, ours, silent, Arc::new(())).await;
    assert!(matches!(opened, Err(OpenError::Request(RequestError::TimedOut))), "{opened:?}");
    let ((ours, _theirs), (output, read)) = (duplex(PIPE), duplex(PIPE));
    drop(output);
    let opened = Connection::open_pipes(read, ours, options(), Arc::new(())).await;
    assert!(matches!(opened, Err(OpenError::Request(RequestError::Lost(_) | RequestError::SessionGone))), "{opened:?}");
}

#[tokio::test]
async fn requests_of_a_process_are_answered_and_closing_closes_its_input() {
    let reply = || -> futures_util::future::BoxFuture<'static, Reply> {
        Box::pin(async { Reply::Result("{\"action\":\"decline\"}".to_owned()) })
    };
    let recorder = Arc::new(Recorder { reply: Some(reply), ..Recorder::default() });
    let (connection, mut process) = start(recorder).await;
    process.say("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\n").await;
    assert_eq!(process.next().await, json!({"jsonrpc": "2.0", "id": "a", "result": {}}));
    process.say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{}}\n").await;
    assert_eq!(process.next().await, json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}}));
    connection.close().await;
    assert_eq!(process.input.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_no_half_of_a_line() {
    let (connection, mut process) = start(Arc::new(())).await;
    // More than the pipe holds: the line cannot be written at once.
    let long = json!("x".repeat(PIPE * 3)).to_string();
    let members = [("name", gatehouse_mcp::Piece::Json(&long))];
    let params = gatehouse_mcp::Params::new(&members);
    let dropped = tokio::time::timeout(
        std::time::Duration::from_millis(50),
        connection.request("tools/call", &params, RequestOptions::default()),
    );
    assert!(dropped.await.is_err());
    let serving = async {
        assert_eq!(process.next().await["params"]["name"].as_str().unwrap().len(), PIPE * 3);
        let id = process.next().await["id"].clone();
        process.answer(&id).await;
    };
    let (answer, ()) = tokio::join!(call(&connection), serving);
    assert_eq!(answer.unwrap().result_str(), HI);
}
