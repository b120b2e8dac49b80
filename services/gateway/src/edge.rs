//! The edge: the MCP endpoint that engines connect to.
//!
//! One request's way: `serve` (sockets) → here (Host, Origin, bearer token) → `legacy` (revisions up to 2025-11-25) or
//! `modern` (2026-07-28), which read the message → `tool_calls` → [`crate::call`]. Nothing here waits for a server: lists come
//! from the snapshot, and a call that takes longer than [`QUICK`] is answered as an event stream.

mod access;
mod body;
mod exchange;
mod fate;
mod legacy;
mod modern;
mod notices;
mod progress;
mod serve;
pub mod session_id;
mod streams;
mod tool_calls;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gatehouse_types::Clock;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{access::Access, body::Body, session_id::Signer, streams::Streams};
use crate::{
    call::Calls,
    snapshot::{Principal, Snapshot},
    store::{ANSWER_WITHIN, within},
    upstream::refresh::Refresher,
};

pub use self::{access::Access as EdgeAccess, serve::serve};

/// Path of the endpoint.
pub const PATH: &str = "/mcp";
/// A call that answers within this time is answered as plain JSON. Below the second within which the head must be sent.
pub const QUICK: Duration = Duration::from_millis(900);
/// How long a request's body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_mins(1);
/// What a message may hold besides a call's arguments, in bytes.
const ENVELOPE: usize = 64 << 10;

/// The endpoint.
pub struct Edge {
    snapshot: Arc<Snapshot>,
    calls: Arc<Calls>,
    refresher: Arc<Refresher>,
    clock: Arc<dyn Clock>,
    access: Access,
    signer: Signer,
    streams: Streams,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

/// A request whose sender is known, with its body.
struct Post {
    principal: Arc<Principal>,
    headers: HeaderMap,
    body: Bytes,
}

impl Edge {
    /// An endpoint over these calls. `tasks` are waited for when the process ends.
    pub fn new(
        calls: Arc<Calls>,
        refresher: Arc<Refresher>,
        access: Access,
        signer: Signer,
        tasks: TaskTracker,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            snapshot: Arc::clone(&calls.snapshot),
            clock: Arc::clone(&calls.clock),
            calls,
            refresher,
            access,
            signer,
            streams: Streams::default(),
            tasks,
            shutdown,
        }
    }

    /// Forgets exchanges that nobody resumes, until `shutdown`.
    pub async fn sweep(&self) {
        self.streams.sweep(&self.shutdown).await;
    }

    /// Answers one HTTP request.
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() != PATH {
            return body::plain(StatusCode::NOT_FOUND, "not found: the MCP endpoint is at /mcp");
        }
        if let Err(refusal) = self.access.check(request.headers(), request.uri()) {
            return body::plain(StatusCode::FORBIDDEN, refusal);
        }
        let principal = match self.principal(request.headers()).await {
            Ok(principal) => principal,
            Err(response) => return response,
        };
        match *request.method() {
            Method::POST => self.post(principal, request).await,
            Method::GET => self.get(&principal, request.headers()),
            Method::DELETE => self.delete(&principal, request.headers()).await,
            _ => {
                let mut response = body::plain(StatusCode::METHOD_NOT_ALLOWED, "use POST, GET or DELETE");
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
                response
            }
        }
    }

    async fn post(self: &Arc<Self>, principal: Arc<Principal>, request: Request<Incoming>) -> Response<Body> {
        let (parts, incoming) = request.into_parts();
        if !access::is_json(&parts.headers) {
            return body::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send content-type: application/json");
        }
        let most = self.snapshot.catalog().settings.max_arguments_bytes as usize + ENVELOPE;
        let collected = timeout(BODY_WITHIN, Limited::new(incoming, most).collect()).await;
        let body = match collected {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                return body::plain(StatusCode::PAYLOAD_TOO_LARGE, &format!("the message is larger than {most} bytes"));
            }
            Ok(Err(_)) => return body::plain(StatusCode::BAD_REQUEST, "the message did not arrive whole"),
            Err(_) => return body::plain(StatusCode::REQUEST_TIMEOUT, "the message took too long to arrive"),
        };
        let incoming = Post { principal, headers: parts.headers, body };
        if modern::speaks(&incoming.headers, &incoming.body) {
            self.modern(incoming).await
        } else {
            self.legacy(incoming).await
        }
    }

    /// Who sends a request, by its bearer token.
    async fn principal(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Response<Body>> {
        let Some(token) = access::bearer(headers) else {
            return Err(unauthorized("send the session's token as `Authorization: Bearer ghs_…`"));
        };
        let found = self.snapshot.sessions.principal(token, self.clock.now());
        match within(ANSWER_WITHIN, found).await {
            Ok(Some(principal)) => Ok(principal),
            Ok(None) => Err(unauthorized(
                "this token is not known: it may have been rotated, or its session deleted. Get a new one with `gatehouse session token issue`",
            )),
            Err(error) => {
                tracing::warn!(error.message = %error, "a token cannot be checked: the database does not answer");
                Err(body::plain(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "Gatehouse cannot reach its database; try again in a moment",
                ))
            }
        }
    }
}

fn unauthorized(words: &str) -> Response<Body> {
    let mut response = body::plain(StatusCode::UNAUTHORIZED, words);
    let challenge = HeaderValue::from_static("Bearer realm=\"gatehouse\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}
