//! A small MCP server that does what a test tells it to, lies included.
//!
//! It writes HTTP/1.1 by hand, so that every way of breaking it is open: wrong lengths, bodies that stop, bodies that never do.
//! What the test does not decide, it answers like an ordinary server with a session and the tool `echo`.

use std::{collections::HashMap, io, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, broadcast, watch},
    task::{JoinHandle, JoinSet},
};

/// The session id that an ordinary answer to `initialize` gives.
pub const SESSION: &str = "fake-session-1";

/// A request that the server got.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `POST`, `GET` or `DELETE`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, with lower-case names.
    pub headers: HashMap<String, String>,
    /// The body as it came.
    pub body: Bytes,
}

impl Request {
    /// The body as JSON; `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The JSON-RPC method, or the HTTP method of a request without one.
    pub fn rpc(&self) -> String {
        self.json()["method"].as_str().unwrap_or(&self.method).to_owned()
    }

    /// The JSON-RPC id; `null` without one.
    pub fn id(&self) -> Value {
        self.json()["id"].clone()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// A step of writing a body.
#[derive(Debug, Clone)]
pub enum Act {
    /// Writes bytes.
    Write(Bytes),
    /// Waits.
    Pause(Duration),
    /// Waits for the test.
    Until(Arc<Notify>),
    /// Writes whatever [`FakeServer::push`] is given, until the server ends.
    Pushed,
    /// Writes the same bytes over and over, until the client leaves.
    Forever(Bytes),
    /// Writes nothing more and keeps the connection, until the client leaves.
    Hang,
}

/// What the server answers.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    /// Whether the head names the length of the body and the connection stays open.
    whole: bool,
    head: bool,
    acts: Vec<Act>,
}

impl Reply {
    /// A status and a body of some type, correctly framed.
    pub fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, whole: true, head: true, acts: vec![Act::Write(body.into())] }
    }

    /// A JSON body.
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::new(status, "application/json", body)
    }

    /// A JSON-RPC result for a request.
    pub fn result(request: &Request, result: &Value) -> Self {
        Self::json(200, json!({"jsonrpc": "2.0", "id": request.id(), "result": result}).to_string())
    }

    /// A JSON-RPC error for a request.
    pub fn error(status: u16, id: &Value, code: i64, message: &str) -> Self {
        Self::json(status, json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string())
    }

    /// Accepted, without a body.
    pub fn accepted() -> Self {
        Self::json(202, "")
    }

    /// A body that is written step by step and ends with the connection.
    pub fn acts(status: u16, content_type: &str, acts: Vec<Act>) -> Self {
        Self { whole: false, acts, ..Self::new(status, content_type, "") }
    }

    /// An event stream of these blocks, each written as it is, that ends with the connection.
    pub fn stream<B: Into<Bytes>>(blocks: impl IntoIterator<Item = B>) -> Self {
        Self::acts(200, "text/event-stream", blocks.into_iter().map(|block| Act::Write(block.into())).collect())
    }

    /// No answer: the steps are all that is written.
    pub fn raw(acts: Vec<Act>) -> Self {
        Self { head: false, ..Self::acts(0, "", acts) }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a step.
    #[must_use]
    pub fn then(mut self, act: Act) -> Self {
        self.acts.push(act);
        self
    }

    fn encode_head(&self) -> String {
        let lines: Vec<_> = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let framing = if self.whole {
            let length = |act: &Act| if let Act::Write(bytes) = act { bytes.len() } else { 0 };
            format!("content-length: {}", self.acts.iter().map(length).sum::<usize>())
        } else {
            "connection: close".to_owned()
        };
        format!("HTTP/1.1 {} Fake\r\n{}{framing}\r\n\r\n", self.status, lines.concat())
    }
}

/// One `message` event with an optional id.
pub fn event(id: Option<&str>, data: &str) -> String {
    id.map_or_else(|| format!("data: {data}\n\n"), |id| format!("id: {id}\ndata: {data}\n\n"))
}

type Handler = dyn Fn(&Request) -> Option<Reply> + Send + Sync;

struct State {
    handler: Box<Handler>,
    requests: watch::Sender<Vec<Request>>,
    pushed: broadcast::Sender<Bytes>,
    connections: watch::Sender<usize>,
    listening: watch::Sender<usize>,
}

/// The server. Ends, with all its connections, when dropped.
pub struct FakeServer {
    address: SocketAddr,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

impl FakeServer {
    /// Starts a server on a free loopback port. `None` from the handler means the ordinary answer.
    pub async fn start(handler: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port for the fake server")?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            handler: Box::new(handler),
            requests: watch::Sender::default(),
            pushed: broadcast::Sender::new(64),
            connections: watch::Sender::default(),
            listening: watch::Sender::default(),
        });
        let serving = tokio::spawn(accept(listener, state.clone()));
        Ok(Self { address, state, serving })
    }

    /// A server that always gives the ordinary answers.
    pub async fn ordinary() -> anyhow::Result<Self> {
        Self::start(|_| None).await
    }

    /// The URL of its MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.borrow().clone()
    }

    /// The requests so far of one JSON-RPC (or HTTP) method.
    pub fn requests_of(&self, rpc: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.rpc() == rpc).collect()
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        *self.state.connections.borrow()
    }

    /// Writes bytes to every GET stream that is answered with [`Act::Pushed`].
    pub fn push(&self, bytes: impl Into<Bytes>) -> usize {
        self.state.pushed.send(bytes.into()).unwrap_or(0)
    }

    /// Waits until `count` streams take what is pushed; fails after 10 s.
    pub async fn wait_for_listeners(&self, count: usize) -> anyhow::Result<()> {
        wait(self.state.listening.subscribe(), |listening| *listening == count).await
    }

    /// Waits until `count` connections are open; fails after 10 s.
    pub async fn wait_for_connections(&self, count: usize) -> anyhow::Result<()> {
        wait(self.state.connections.subscribe(), |open| *open == count).await
    }

    /// Waits until at least `count` requests of a method have come and gives them; fails after 10 s.
    pub async fn wait_for(&self, rpc: &str, count: usize) -> anyhow::Result<Vec<Request>> {
        let enough = |all: &Vec<Request>| all.iter().filter(|request| request.rpc() == rpc).count() >= count;
        wait(self.state.requests.subscribe(), enough).await.with_context(|| format!("waiting for {count} {rpc}"))?;
        Ok(self.requests_of(rpc))
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn wait<T>(mut changes: watch::Receiver<T>, done: impl Fn(&T) -> bool) -> anyhow::Result<()> {
    tokio::time::timeout(Duration::from_secs(10), changes.wait_for(|value| done(value))).await.context("in vain")??;
    Ok(())
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    // Dropped with this task, it ends every connection.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        connections.spawn(async move {
            state.connections.send_modify(|open| *open += 1);
            let _open = Leaving(&state.connections);
            // A client that leaves is part of many tests.
            let _ = serve(stream, &state).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Counts down when dropped.
struct Leaving<'a>(&'a watch::Sender<usize>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

async fn serve(mut stream: TcpStream, state: &State) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await? {
        let reply = (state.handler)(&request).unwrap_or_else(|| ordinary(&request));
        // The answer to HEAD has the length of a body, and no body (RFC 9110, 9.3.2).
        let acts = if request.method == "HEAD" { &[] } else { reply.acts.as_slice() };
        state.requests.send_modify(|requests| requests.push(request));
        if reply.head {
            stream.write_all(reply.encode_head().as_bytes()).await?;
        }
        for act in acts {
            perform(act, &mut stream, state).await?;
        }
        if !reply.whole {
            stream.shutdown().await?;
            return Ok(());
        }
    }
    Ok(())
}

async fn perform(act: &Act, stream: &mut TcpStream, state: &State) -> anyhow::Result<()> {
    match act {
        Act::Write(bytes) => stream.write_all(bytes).await?,
        Act::Pause(time) => tokio::time::sleep(*time).await,
        Act::Until(told) => told.notified().await,
        Act::Forever(bytes) => loop {
            stream.write_all(bytes).await?;
        },
        Act::Hang => gone(stream).await?,
        Act::Pushed => {
            let mut pushed = state.pushed.subscribe();
            state.listening.send_modify(|count| *count += 1);
            let _listening = Leaving(&state.listening);
            loop {
                tokio::select! {
                    bytes = pushed.recv() => stream.write_all(&bytes?).await?,
                    left = gone(stream) => return left,
                }
            }
        }
    }
    Ok(())
}

/// Waits until the client closes the connection.
async fn gone(stream: &mut TcpStream) -> anyhow::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {}
    bail!("the client left")
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> anyhow::Result<Option<Request>> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8(buffer[..head_end].to_vec())?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default().to_owned(), first.next().unwrap_or_default().to_owned());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(Ok(0), |length| length.parse())?;
    let whole = head_end + 4 + length;
    while buffer.len() < whole {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }
    let body = Bytes::copy_from_slice(&buffer[head_end + 4..whole]);
    buffer.drain(..whole);
    Ok(Some(Request { method, path, headers, body }))
}

/// What an ordinary server answers: a session, no GET stream, one tool `echo`.
pub fn ordinary(request: &Request) -> Reply {
    match (request.method.as_str(), request.rpc().as_str()) {
        ("POST", "initialize") => Reply::result(request, &initialize_result()).with_header("mcp-session-id", SESSION),
        ("POST", "ping") => Reply::result(request, &json!({})),
        ("POST", "tools/list") => Reply::result(request, &json!({"tools": [echo_tool()]})),
        ("POST", "tools/call") => {
            let message = request.json()["params"]["arguments"]["message"].clone();
            Reply::result(request, &json!({"content": [{"type": "text", "text": message}]}))
        }
        ("POST", _) if request.id().is_null() => Reply::accepted(),
        ("POST", method) => Reply::error(200, &request.id(), -32_601, &format!("no method {method}")),
        ("DELETE", _) => Reply::json(200, ""),
        _ => Reply::json(405, ""),
    }
}

/// The result of `initialize` that an ordinary server gives.
pub fn initialize_result() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "fake", "version": "1.0.0"}
    })
}

/// The tool that an ordinary server lists.
pub fn echo_tool() -> Value {
    json!({
        "name": "echo",
        "description": "Returns the message.",
        "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
        "annotations": {"readOnlyHint": true}
    })
}
