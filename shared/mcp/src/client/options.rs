//! What a connection and a request are told.

use std::{fmt, time::Duration};

use bytes::Bytes;
use gatehouse_outbound::Target;
use http::HeaderMap;
use tokio_util::sync::CancellationToken;

use crate::client::answer::Progress;

/// Where a server is and how to present oneself to it.
#[derive(Clone)]
pub struct Endpoint {
    /// The URL of its one MCP endpoint.
    pub target: Target,
    /// Headers for every request, credentials among them. Mark secret values sensitive; they are never shown here.
    pub headers: HeaderMap,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("target", &self.target).finish_non_exhaustive()
    }
}

/// How messages travel to a server over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// Streamable HTTP; HTTP+SSE when the server refuses `initialize` as the specification says that such servers do.
    #[default]
    Auto,
    /// Streamable HTTP only.
    StreamableHttp,
    /// HTTP+SSE (2024-11-05) only.
    Sse,
}

/// Bounds of a connection.
#[derive(Debug, Clone)]
pub struct Options {
    /// Time for connecting, and again for the answer to `initialize`.
    pub connect_timeout: Duration,
    /// How long a request waits for its answer when it names no time of its own.
    pub request_timeout: Duration,
    /// Most bytes of one message: a JSON body, or one event of a stream.
    pub most_message_bytes: usize,
    /// Most bytes that the event stream of one request may carry in all.
    pub most_stream_bytes: u64,
    /// Deepest nesting of a message.
    pub most_depth: usize,
    /// Most requests of the server that are answered at one time; those beyond are ignored.
    pub most_server_requests: usize,
    /// How to speak to a server over HTTP.
    pub transport: Transport,
    /// Whether to keep a stream open for what the server sends of its own accord.
    pub listen: bool,
    /// The first request id. Ids must be unique among all that post into one MCP session: give each replica and each connection
    /// a random one. Only the low 52 bits count, so that every JSON reader keeps the numbers exact.
    pub id_base: u64,
    /// The version of this program, as the server is told.
    pub client_version: &'static str,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_mins(1),
            most_message_bytes: 32 << 20,
            most_stream_bytes: 256 << 20,
            most_depth: crate::message::MOST_DEPTH,
            most_server_requests: 32,
            transport: Transport::Auto,
            listen: true,
            id_base: 0,
            client_version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// An MCP session that can be taken up again, by this process or another. Holds the session id, which is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// The server's name for the session; `None` for a server that keeps none.
    pub mcp_session_id: Option<String>,
    /// The revision that was agreed on.
    pub protocol_version: String,
    /// The result of `initialize` as the server wrote it.
    pub initialize_result: Bytes,
}

impl fmt::Debug for StoredSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSession").field("protocol_version", &self.protocol_version).finish_non_exhaustive()
    }
}

/// A tag that the caller gives a request, to know it again in [`crate::Origin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call(pub gatehouse_types::CallId);

/// How one request is made.
#[derive(Default, Clone, Copy)]
pub struct RequestOptions<'a> {
    /// How long to wait for the answer; each progress report starts it anew. `None` takes the connection's.
    pub timeout: Option<Duration>,
    /// Ends the wait; the server is told.
    pub cancel: Option<&'a CancellationToken>,
    /// Called with each progress report. Without it the server is not asked for any.
    pub on_progress: Option<&'a (dyn Fn(Progress<'_>) + Send + Sync)>,
    /// The caller's tag for what arrives on this request's stream.
    pub call: Option<Call>,
}

impl fmt::Debug for RequestOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions")
            .field("timeout", &self.timeout)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
