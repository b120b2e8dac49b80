//! An engine: raw MCP over HTTP, with nothing hidden.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};

use super::Gate;

/// The revision that an engine asks for.
pub(crate) const VERSION: &str = "2025-11-25";
const SESSION_ID: &str = "mcp-session-id";

/// An engine with a token, and an MCP session once it has initialised.
pub(crate) struct Engine {
    http: Client<HttpConnector, Full<Bytes>>,
    url: String,
    token: String,
    /// `Mcp-Session-Id`; empty before `initialize`.
    pub(crate) session: String,
    next_id: AtomicU64,
}

/// An HTTP answer whose head has arrived.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
}

/// A server-sent event.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    /// `null` for an event without data.
    pub(crate) data: Value,
}

/// An event stream.
pub(crate) struct Events {
    body: Incoming,
    buffer: BytesMut,
    /// Comments that came so far.
    pub(crate) comments: usize,
}

impl Engine {
    /// Before `initialize`.
    pub(crate) fn new(gate: &Gate, token: &str) -> Self {
        Self::at(&gate.mcp_url(), token)
    }

    /// Of any endpoint, before `initialize`.
    pub(crate) fn at(url: &str, token: &str) -> Self {
        Self {
            http: Client::builder(TokioExecutor::new()).build_http(),
            url: url.to_owned(),
            token: token.to_owned(),
            session: String::new(),
            next_id: AtomicU64::new(1),
        }
    }

    /// With an MCP session.
    pub(crate) async fn connect(gate: &Gate, token: &str) -> Self {
        let mut engine = Self::new(gate, token);
        engine.initialize().await;
        engine
    }

    /// Sends `initialize` and `notifications/initialized`.
    pub(crate) async fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": {"name": "e2e", "version": "1"},
        });
        let answer = self.request("initialize", &params).await;
        assert_eq!(answer.status, StatusCode::OK);
        answer.headers[SESSION_ID].to_str().unwrap().clone_into(&mut self.session);
        let result = answer.message().await["result"].take();
        let noted = self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(noted.status, StatusCode::ACCEPTED);
        result
    }

    /// The tools, all pages.
    pub(crate) async fn list(&self) -> Vec<Value> {
        let answer = self.request("tools/list", &json!({})).await;
        assert_eq!(answer.status, StatusCode::OK);
        let message = answer.message().await;
        assert!(message["result"].get("nextCursor").is_none(), "all tools come on one page");
        message["result"]["tools"].as_array().unwrap().clone()
    }

    /// The names of the tools.
    pub(crate) async fn names(&self) -> Vec<String> {
        self.list().await.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Calls a tool and waits for its result.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let mut message = self.start_call(tool, arguments).await.message().await;
        assert!(message.get("result").is_some(), "{message}");
        message["result"].take()
    }

    /// Calls a tool and gives the answer as soon as its head is there.
    pub(crate) async fn start_call(&self, tool: &str, arguments: Value) -> Answer {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments})).await
    }

    /// Calls a tool with a progress token.
    pub(crate) async fn call_with_progress(&self, tool: &str, arguments: Value, token: Value) -> Answer {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
        self.request("tools/call", &params).await
    }

    /// Sends a request under the next id.
    pub(crate) async fn request(&self, method: &str, params: &Value) -> Answer {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await
    }

    /// Posts a message.
    pub(crate) async fn post(&self, message: &Value) -> Answer {
        self.send(Method::POST, Some(message), None).await
    }

    /// Opens the stream of notifications, or resumes one.
    pub(crate) async fn get(&self, last_event_id: Option<&str>) -> Answer {
        self.send(Method::GET, None, last_event_id).await
    }

    /// Ends the MCP session.
    pub(crate) async fn delete(&self) -> StatusCode {
        self.send(Method::DELETE, None, None).await.status
    }

    /// Goes on with another token.
    pub(crate) fn set_token(&mut self, token: &str) {
        token.clone_into(&mut self.token);
    }

    async fn send(&self, method: Method, message: Option<&Value>, last_event_id: Option<&str>) -> Answer {
        let accept = if method == Method::GET { "text/event-stream" } else { "application/json, text/event-stream" };
        let mut request = Request::builder().method(method).uri(&self.url).header(header::ACCEPT, accept);
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        if !self.session.is_empty() {
            request = request.header(SESSION_ID, &self.session).header("mcp-protocol-version", VERSION);
        }
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let body = message.map(|message| Bytes::from(message.to_string())).unwrap_or_default();
        let request = request.header(header::CONTENT_TYPE, "application/json").body(Full::new(body)).unwrap();
        let (head, body) = self.http.request(request).await.unwrap().into_parts();
        Answer { status: head.status, headers: head.headers, body }
    }
}

impl Answer {
    /// Whether it is an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.content_type() == "text/event-stream"
    }

    /// The content type.
    pub(crate) fn content_type(&self) -> &str {
        self.headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The events of a stream.
    pub(crate) fn events(self) -> Events {
        assert!(self.is_stream(), "{} {:?}", self.status, self.headers);
        Events { body: self.body, buffer: BytesMut::new(), comments: 0 }
    }

    /// The body as text.
    pub(crate) async fn text(self) -> String {
        String::from_utf8(self.body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    /// The message that answers the request: the JSON body, or the last event with an id of a request.
    pub(crate) async fn message(self) -> Value {
        if self.is_stream() {
            return self.events().answer().await;
        }
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

impl Events {
    /// The next event; comments are passed over. `None` at the end of the stream, however it ends.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block = self.buffer.split_to(end + 2);
                if let Some(event) = Event::parse(&block) {
                    return Some(event);
                }
                self.comments += 1;
                continue;
            }
            let frame = self.body.frame().await?.ok()?;
            self.buffer.extend_from_slice(frame.data_ref()?);
        }
    }

    /// The next event with data.
    pub(crate) async fn message(&mut self) -> Option<Event> {
        loop {
            let event = self.next().await?;
            if !event.data.is_null() {
                return Some(event);
            }
        }
    }

    /// Reads to the answer of the request and gives it.
    pub(crate) async fn answer(mut self) -> Value {
        while let Some(event) = self.message().await {
            if event.data.get("method").is_none() {
                return event.data;
            }
        }
        panic!("the stream ended without an answer")
    }
}

impl Event {
    fn parse(block: &[u8]) -> Option<Self> {
        let mut event = Self::default();
        let (mut data, mut any) = (String::new(), false);
        for line in std::str::from_utf8(block).unwrap().lines() {
            if let Some(id) = line.strip_prefix("id:") {
                (event.id, any) = (Some(id.trim().to_owned()), true);
            } else if let Some(more) = line.strip_prefix("data:") {
                data.push_str(more.trim_start());
                any = true;
            }
        }
        if !data.is_empty() {
            event.data = serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}"));
        }
        any.then_some(event)
    }
}

/// The text of a result's first content block.
pub(crate) fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// The text of all content blocks of a result.
pub(crate) fn whole_text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap_or_else(|| panic!("no content: {result}"));
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The body of a GET.
pub(crate) async fn fetch(url: &str) -> String {
    fetch_with(url, &[]).await
}

/// The body of a GET with headers.
pub(crate) async fn fetch_with(url: &str, headers: &[(&str, String)]) -> String {
    let http: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let request = headers.iter().fold(Request::get(url), |request, (name, value)| request.header(*name, value));
    let response: Response<Incoming> = http.request(request.body(Full::default()).unwrap()).await.unwrap();
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}
