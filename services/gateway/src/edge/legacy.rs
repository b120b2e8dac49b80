//! MCP revisions up to 2025-11-25: `initialize`, sessions, a stream for notifications.

use std::sync::Arc;

use bytes::Bytes;
use gatehouse_mcp::{
    encode,
    message::{self, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MOST_DEPTH, Malformed},
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{json, value::RawValue};
use time::Duration as TimeSpan;

use super::{
    Edge, Post,
    access::{self, Accepts},
    body::{self, Body},
    exchange::{LastEvent, Message},
    fate, modern, notices,
    session_id::{EdgeSession, LEGACY_VERSIONS, actor_hash},
    tool_calls::{Era, ToolCall},
};
use crate::{raw::RawObject, snapshot::Principal};

/// Header of the engine's MCP session.
const SESSION_ID: &str = "mcp-session-id";
/// Header of the negotiated revision.
const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// An MCP session that is not known, as the official SDKs say it.
const SESSION_NOT_FOUND: i64 = -32_001;

impl Edge {
    /// Answers a POST.
    pub(super) async fn legacy(self: &Arc<Self>, post: Post) -> Response<Body> {
        let accepts = access::accepts(&post.headers);
        if !accepts.json && !accepts.events {
            return body::plain(StatusCode::NOT_ACCEPTABLE, "accept application/json and text/event-stream");
        }
        let parsed = match message::parse(&post.body, MOST_DEPTH) {
            Ok(parsed) => parsed,
            Err(wrong) => return malformed(&wrong),
        };
        match parsed.message {
            message::Message::Request { id, method, params } if method == "initialize" => {
                self.initialize(&post.principal, id.as_json(), params, accepts)
            }
            message::Message::Request { id, method, params } => {
                let session = match self.session(&post.principal, &post.headers, Some(id.as_json())) {
                    Ok(session) => session,
                    Err(refusal) => return *refusal,
                };
                self.request(&post, session, id.as_json(), &method, params, accepts).await
            }
            message::Message::Notification { method, params } => {
                let session = match self.session(&post.principal, &post.headers, None) {
                    Ok(session) => session,
                    Err(refusal) => return *refusal,
                };
                if method == "notifications/cancelled"
                    && let Some(request) =
                        params.and_then(|raw| RawObject::parse(raw.get())).and_then(|p| p.get("requestId"))
                {
                    self.streams.cancel(session.id, request);
                }
                body::accepted()
            }
            // Nothing is ever asked of an engine, so no answer is waited for.
            message::Message::Result { .. } | message::Message::Error { .. } => {
                match self.session(&post.principal, &post.headers, None) {
                    Ok(_) => body::accepted(),
                    Err(refusal) => *refusal,
                }
            }
        }
    }

    async fn request(
        self: &Arc<Self>,
        post: &Post,
        session: EdgeSession,
        id: &str,
        method: &str,
        params: Option<&RawValue>,
        accepts: Accepts,
    ) -> Response<Body> {
        match method {
            "ping" => answer(accepts, body::result(id, [Bytes::from_static(b"{}")])),
            "tools/list" => answer(accepts, body::result(id, self.tools_list(&post.principal, None).await)),
            "tools/call" => {
                let params = params.and_then(|raw| RawObject::parse(raw.get())).unwrap_or_default();
                match ToolCall::read(id, &params, &post.body, &post.headers) {
                    Ok(call) => self.tools_call(&post.principal, call, Era::Legacy(session), accepts).await,
                    Err(words) => answer(accepts, vec![encode::error(Some(id), INVALID_PARAMS, words, None)]),
                }
            }
            _ => {
                let words = format!("there is no method `{}`", crate::call::words::bounded(method, 100));
                answer(accepts, vec![encode::error(Some(id), METHOD_NOT_FOUND, &words, None)])
            }
        }
    }

    fn initialize(
        &self,
        principal: &Principal,
        id: &str,
        params: Option<&RawValue>,
        accepts: Accepts,
    ) -> Response<Body> {
        let params = params.and_then(|raw| RawObject::parse(raw.get())).unwrap_or_default();
        let Some(asked) = params.string("protocolVersion") else {
            let words = "`protocolVersion` must be the newest revision that you speak";
            return answer(accepts, vec![encode::error(Some(id), INVALID_PARAMS, words, None)]);
        };
        let session = EdgeSession::begin(principal.session.id, &principal.actor, &asked, self.clock.now());
        let result = json!({
            "protocolVersion": session.protocol_version(),
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": modern::server_info(),
        });
        let mut response = answer(accepts, body::result(id, [Bytes::from(result.to_string())]));
        // The id is base64url.
        if let Ok(value) = HeaderValue::from_str(&self.signer.sign(&session)) {
            response.headers_mut().insert(SESSION_ID, value);
        }
        response
    }

    /// The engine's MCP session, or the answer that makes it begin a new one.
    fn session(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        rpc_id: Option<&str>,
    ) -> Result<EdgeSession, Box<Response<Body>>> {
        let refuse = |status, code, words: &str| {
            Box::new(match rpc_id {
                Some(id) => body::json(status, vec![encode::error(Some(id), code, words, None)]),
                None => body::plain(status, words),
            })
        };
        if let Some(version) = headers.get(PROTOCOL_VERSION).and_then(|version| version.to_str().ok())
            && !LEGACY_VERSIONS.contains(&version)
        {
            let words = "this MCP-Protocol-Version is not spoken here";
            return Err(refuse(StatusCode::BAD_REQUEST, INVALID_REQUEST, words));
        }
        let Some(text) = headers.get(SESSION_ID) else {
            let words = "send `initialize` first, and its Mcp-Session-Id with each request";
            return Err(refuse(StatusCode::BAD_REQUEST, INVALID_REQUEST, words));
        };
        let max_age = self.snapshot.catalog().settings.edge_session_max_age_sec;
        let session = text.to_str().ok().and_then(|text| self.signer.verify(text));
        let session = session.filter(|session| {
            session.session == principal.session.id
                && session.actor == actor_hash(&principal.actor)
                && !session.has_expired(self.clock.now(), max_age)
                && !self.snapshot.sessions.has_ended(session.id)
        });
        session.ok_or_else(|| {
            let words = "Session not found. Send `initialize` to begin a new one";
            refuse(StatusCode::NOT_FOUND, SESSION_NOT_FOUND, words)
        })
    }

    /// Answers a GET: the stream of notifications, or a call's stream that is resumed.
    pub(super) fn get(self: &Arc<Self>, principal: &Arc<Principal>, headers: &HeaderMap) -> Response<Body> {
        if modern::is_modern(headers) {
            return body::plain(StatusCode::METHOD_NOT_ALLOWED, "this revision has no GET; use subscriptions/listen");
        }
        if !access::accepts(headers).events {
            return body::plain(StatusCode::NOT_ACCEPTABLE, "accept text/event-stream");
        }
        let session = match self.session(principal, headers, None) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(LastEvent::parse);
        if let Some(last) = last {
            return self.resume(principal, session, &last);
        }
        let notice = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let mut event = Vec::new();
        gatehouse_mcp::sse::encode(&mut event, None, notice.as_bytes());
        let (snapshot, shutdown) = (Arc::clone(&self.snapshot), self.shutdown.clone());
        // A first comment, so that the client sees the stream open.
        let first = Some(Bytes::from_static(b": open\n\n"));
        body::events(notices::watch_tools(snapshot, Arc::clone(principal), shutdown, first, Bytes::from(event), None))
    }

    fn resume(&self, principal: &Principal, session: EdgeSession, last: &LastEvent) -> Response<Body> {
        let exchange = self.streams.find(last.stream);
        let own =
            exchange.filter(|exchange| exchange.session == principal.session.id && exchange.actor == session.actor);
        if let Some(exchange) = own {
            return body::events(notices::replay(exchange, last.index, Some(session.protocol_version()), None));
        }
        if last.rpc_id.is_empty() {
            return body::plain(StatusCode::NOT_FOUND, "this stream is not kept any more");
        }
        body::events(fate::told(Arc::clone(&self.calls), principal, last))
    }

    /// Answers a DELETE: ends the engine's MCP session.
    pub(super) async fn delete(&self, principal: &Principal, headers: &HeaderMap) -> Response<Body> {
        if modern::is_modern(headers) {
            return body::plain(StatusCode::METHOD_NOT_ALLOWED, "this revision has no sessions");
        }
        let session = match self.session(principal, headers, None) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        let max_age = self.snapshot.catalog().settings.edge_session_max_age_sec;
        let expires_at = self.clock.now() + TimeSpan::seconds(i64::from(max_age));
        match self.snapshot.end_edge_session(session.id, session.session, expires_at).await {
            Ok(()) => body::plain(StatusCode::OK, "ended"),
            Err(error) => {
                tracing::warn!(error.message = %error, "the end of an engine's MCP session was not stored");
                body::plain(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "Gatehouse cannot reach its database; try again in a moment",
                )
            }
        }
    }

    /// The result of `tools/list`. Servers whose lists are old are listed in the background.
    pub(super) async fn tools_list(self: &Arc<Self>, principal: &Principal, more: Option<&'static str>) -> Message {
        if let Err(error) = self.snapshot.ensure_trusted().await {
            tracing::warn!(error.message = %error, "tools are listed from a snapshot that cannot be confirmed");
        }
        let catalog = self.snapshot.catalog();
        let facts = principal.session.facts();
        let stale_after = std::time::Duration::from_secs(u64::from(catalog.settings.tools_stale_after_sec));
        for server in catalog.servers_of(facts.profile) {
            self.refresher.asked(server, stale_after);
        }
        let mut pieces = vec![Bytes::from_static(b"{")];
        match catalog.offer(facts.profile, facts.mode) {
            Some(offer) => {
                pieces.push(offer.list.clone());
                if !offer.unavailable.is_empty() {
                    let unavailable =
                        offer.unavailable.iter().map(|(server, why)| json!({"server": server, "reason": why}));
                    let meta = json!({"gatehouse/unavailable": unavailable.collect::<Vec<_>>()});
                    pieces.push(Bytes::from(format!(",\"_meta\":{meta}")));
                }
            }
            None => pieces.push(Bytes::from_static(b"\"tools\":[]")),
        }
        pieces.extend(more.map(|more| Bytes::from_static(more.as_bytes())));
        pieces.push(Bytes::from_static(b"}"));
        pieces
    }
}

/// An answer as the client takes it.
pub(super) fn answer(accepts: Accepts, message: Message) -> Response<Body> {
    if accepts.json { body::json(StatusCode::OK, message) } else { body::events(notices::one(&message)) }
}

/// A message that cannot be read. Without an id the answer is in plain words: an error with `id: null` makes Codex wait for
/// the answer that it takes this not to be.
pub(super) fn malformed(wrong: &Malformed) -> Response<Body> {
    match &wrong.id {
        Some(id) => body::json(StatusCode::BAD_REQUEST, vec![encode::error(Some(id), wrong.code, wrong.words, None)]),
        None => body::plain(StatusCode::BAD_REQUEST, wrong.words),
    }
}
