//! What the tests over the wire share.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use gatehouse_mcp::{
    Answer, Connection, Endpoint, Inbound, OpenError, Options, Params, Piece, Reply, RequestError, RequestOptions,
    ServerNotification, ServerRequest,
};
use gatehouse_outbound::{ClientConfig, Guard, HttpClient, Target};
use gatehouse_testkit::mcp_server::FakeServer;
use http::HeaderMap;
use tokio::sync::watch;

pub(crate) fn http() -> HttpClient {
    let guard = Guard::new(["127.0.0.0/8"]).unwrap();
    HttpClient::new(ClientConfig { guard, ..ClientConfig::default() }).unwrap()
}

pub(crate) fn endpoint(server: &FakeServer) -> Endpoint {
    let headers = HeaderMap::from_iter([("x-api-key".parse().unwrap(), "k".parse().unwrap())]);
    Endpoint { target: Target::parse(&server.url()).unwrap(), headers }
}

pub(crate) fn options() -> Options {
    Options { id_base: 1_000, listen: false, request_timeout: Duration::from_secs(20), ..Options::default() }
}

pub(crate) async fn open(server: &FakeServer) -> Connection {
    try_open(server, options(), Arc::new(())).await.unwrap()
}

pub(crate) async fn try_open(
    server: &FakeServer,
    options: Options,
    inbound: Arc<dyn Inbound>,
) -> Result<Connection, OpenError> {
    Connection::open(http(), endpoint(server), options, inbound).await
}

pub(crate) async fn call(connection: &Connection) -> Result<Answer, RequestError> {
    call_with(connection, RequestOptions::default()).await
}

pub(crate) async fn call_with(connection: &Connection, options: RequestOptions<'_>) -> Result<Answer, RequestError> {
    let members = [("name", Piece::Text("echo")), ("arguments", Piece::Json(r#"{"message":"hi"}"#))];
    connection.request("tools/call", &Params::new(&members), options).await
}

pub(crate) const HI: &str = r#"{"content":[{"type":"text","text":"hi"}]}"#;

/// Notes what the server sends; answers `test/*` requests with `reply`.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) notifications: watch::Sender<Vec<String>>,
    pub(crate) requests: Mutex<Vec<ServerRequest>>,
    pub(crate) stray: Mutex<Vec<String>>,
    pub(crate) reply: Option<fn() -> BoxFuture<'static, Reply>>,
}

impl Recorder {
    /// Waits for this many notifications.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<String> {
        let mut seen = self.notifications.subscribe();
        let enough = seen.wait_for(|seen| seen.len() >= count);
        tokio::time::timeout(Duration::from_secs(10), enough).await.expect("too few notifications").unwrap().clone()
    }
}

impl Inbound for Recorder {
    fn notification(&self, notification: ServerNotification<'_>) {
        let params = notification.params.map_or("", |params| params.get());
        let origin = if notification.origin.request_id.is_some() { "request" } else { "listen" };
        let line = format!("{} {params} {origin}", notification.method);
        self.notifications.send_modify(|seen| seen.push(line));
    }

    fn request(&self, request: ServerRequest) -> Option<BoxFuture<'static, Reply>> {
        self.requests.lock().unwrap().push(request);
        self.reply.map(|reply| reply())
    }

    fn stray_line(&self, line: &str) {
        self.stray.lock().unwrap().push(line.to_owned());
    }
}
