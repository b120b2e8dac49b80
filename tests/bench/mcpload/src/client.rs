//! One keep-alive HTTP/1.1 connection that posts JSON-RPC messages and reads the
//! answer, whether it comes as application/json or as an event stream.
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::{Duration, Instant};

/// How long an event stream may stay open after the answer before the connection
/// is given up and a fresh one is opened for the next call.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

pub struct Target {
    pub host: String,
    pub path: Uri,
    pub headers: Vec<(http::HeaderName, HeaderValue)>,
}

/// What accompanies one POST: the session it belongs to and the protocol headers.
#[derive(Default, Clone)]
pub struct Tags<'a> {
    pub session: Option<&'a HeaderValue>,
    pub protocol: Option<&'a HeaderValue>,
    pub method: Option<&'a HeaderValue>,
    pub name: Option<&'a HeaderValue>,
}

pub struct Reply {
    /// The JSON-RPC message that answers the request; none for a notification.
    pub message: Option<Bytes>,
    pub session: Option<HeaderValue>,
    /// When the answer was complete (an event stream may stay open a little longer).
    pub done: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fail {
    Connect,
    Transport,
    Timeout,
    Status(u16),
    NoAnswer,
    Malformed,
    RpcError,
    WrongAnswer,
}

/// The top level of a JSON-RPC message, its parts unparsed.
#[derive(Deserialize)]
pub struct Envelope<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

impl Envelope<'_> {
    fn answers(&self, id: u64) -> bool {
        (self.result.is_some() || self.error.is_some()) && self.id.is_some_and(|raw| raw.get().parse() == Ok(id))
    }
}

/// Splits an event stream into the data of its events.
#[derive(Default)]
struct Events {
    buffer: BytesMut,
    scanned: usize,
    data: BytesMut,
}

impl Events {
    fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    fn next(&mut self) -> Option<Bytes> {
        while let Some(at) = self.buffer[self.scanned..].iter().position(|&b| b == b'\n') {
            let mut line = self.buffer.split_to(self.scanned + at);
            self.buffer.advance(1);
            self.scanned = 0;
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if line.is_empty() {
                if !self.data.is_empty() {
                    return Some(self.data.split().freeze());
                }
            } else if line.starts_with(b"data:") {
                line.advance(5);
                if line.first() == Some(&b' ') {
                    line.advance(1);
                }
                if self.data.is_empty() {
                    self.data = line;
                } else {
                    self.data.extend_from_slice(b"\n");
                    self.data.extend_from_slice(&line);
                }
            }
        }
        self.scanned = self.buffer.len();
        None
    }
}

pub struct Connection<'a> {
    target: &'a Target,
    timeout: Duration,
    sender: Option<SendRequest<Full<Bytes>>>,
    /// Connections opened after the first one, so that hidden reconnects show.
    pub reconnects: u64,
}

impl<'a> Connection<'a> {
    pub fn new(target: &'a Target, timeout: Duration) -> Self {
        Self { target, timeout, sender: None, reconnects: 0 }
    }

    async fn ready(&mut self) -> Result<SendRequest<Full<Bytes>>, Fail> {
        if let Some(mut sender) = self.sender.take() {
            if sender.ready().await.is_ok() {
                return Ok(sender);
            }
            self.reconnects += 1;
        }
        let stream = tokio::net::TcpStream::connect(&self.target.host).await.map_err(|_| Fail::Connect)?;
        stream.set_nodelay(true).map_err(|_| Fail::Connect)?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|_| Fail::Connect)?;
        tokio::spawn(connection);
        Ok(sender)
    }

    /// Posts `body`; `id` is the request's id, or none for a notification.
    pub async fn post(&mut self, tags: Tags<'_>, id: Option<u64>, body: Bytes) -> Result<Reply, Fail> {
        let timeout = self.timeout;
        let outcome = tokio::time::timeout(timeout, self.exchange(Method::POST, tags, id, body)).await;
        outcome.unwrap_or(Err(Fail::Timeout))
    }

    /// Ends a session; the answer does not matter.
    pub async fn delete(&mut self, tags: Tags<'_>) {
        let timeout = self.timeout;
        let _ = tokio::time::timeout(timeout, self.exchange(Method::DELETE, tags, None, Bytes::new())).await;
    }

    async fn exchange(&mut self, method: Method, tags: Tags<'_>, id: Option<u64>, body: Bytes) -> Result<Reply, Fail> {
        let mut sender = self.ready().await?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.target.path.clone();
        let headers = request.headers_mut();
        headers.insert(header::HOST, HeaderValue::from_str(&self.target.host).map_err(|_| Fail::Transport)?);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let optional = [
            ("mcp-session-id", tags.session),
            ("mcp-protocol-version", tags.protocol),
            ("mcp-method", tags.method),
            ("mcp-name", tags.name),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
        for (name, value) in &self.target.headers {
            headers.insert(name.clone(), value.clone());
        }
        let response = sender.send_request(request).await.map_err(|_| Fail::Transport)?;
        let (parts, mut body) = response.into_parts();
        let session = parts.headers.get("mcp-session-id").cloned();
        if !parts.status.is_success() {
            let _ = body.collect().await;
            self.sender = Some(sender);
            return Err(Fail::Status(parts.status.as_u16()));
        }
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let streamed = kind.starts_with("text/event-stream");
        let (message, done) = match id {
            Some(id) if streamed => {
                let found = find_event(&mut body, id).await?;
                let done = Instant::now();
                let drained = tokio::time::timeout(DRAIN_LIMIT, body.collect()).await;
                if drained.is_ok() {
                    self.sender = Some(sender);
                } else {
                    self.reconnects += 1;
                }
                return Ok(Reply { message: Some(found), session, done });
            }
            Some(_) if parts.status == StatusCode::ACCEPTED => return Err(Fail::NoAnswer),
            Some(_) => (Some(body.collect().await.map_err(|_| Fail::Transport)?.to_bytes()), Instant::now()),
            None => {
                let _ = tokio::time::timeout(DRAIN_LIMIT, body.collect()).await;
                (None, Instant::now())
            }
        };
        self.sender = Some(sender);
        Ok(Reply { message, session, done })
    }
}

/// Reads an event stream up to the message that answers `id`.
async fn find_event(body: &mut Incoming, id: u64) -> Result<Bytes, Fail> {
    let mut events = Events::default();
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(|_| Fail::Transport)?.into_data() else { continue };
        events.push(&chunk);
        while let Some(data) = events.next() {
            if serde_json::from_slice::<Envelope>(&data).is_ok_and(|envelope| envelope.answers(id)) {
                return Ok(data);
            }
        }
    }
    Err(Fail::NoAnswer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` in pieces of `size` bytes and returns the data of the events found.
    fn decode(text: &str, size: usize) -> Vec<Bytes> {
        let mut events = Events::default();
        let mut found = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            events.push(piece);
            found.extend(std::iter::from_fn(|| events.next()));
        }
        found
    }

    #[test]
    fn events_do_not_depend_on_how_the_stream_is_cut() {
        let text =
            ": ping\r\nid: 7\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nretry: 3000\ndata:\n\nevent: message\ndata:second\n\n";
        for size in 1..text.len() {
            assert_eq!(decode(text, size), ["{\"a\":\n1}", "second"], "pieces of {size}");
        }
    }

    #[test]
    fn only_the_response_with_the_id_answers() {
        let answers = |text: &str| serde_json::from_str::<Envelope>(text).unwrap().answers(5);
        assert!(answers(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#));
        assert!(answers(r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":""}}"#));
        assert!(!answers(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#));
        assert!(!answers(r#"{"jsonrpc":"2.0","id":50,"result":{}}"#));
        assert!(!answers(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#));
    }
}
