//! MCP revision 2026-07-28: no sessions, every request describes itself.

use std::{borrow::Cow, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use gatehouse_mcp::{
    encode,
    message::{self, INVALID_PARAMS, METHOD_NOT_FOUND, MOST_DEPTH},
};
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};

use super::{
    Edge, Post,
    access::{self, Accepts},
    body::{self, Body},
    legacy::{answer, malformed},
    notices,
    tool_calls::{Era, ToolCall},
};
use crate::raw::RawObject;

/// The revision.
pub(super) const VERSION: &str = "2026-07-28";
/// Where a request says its revision.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Where a request says what its client can do.
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Where a notification says which subscription it belongs to.
const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Headers and message disagree.
const HEADER_MISMATCH: i64 = -32_020;
/// The revision is not spoken.
const UNSUPPORTED_VERSION: i64 = -32_022;
/// How long an engine may use a list without asking again; a subscription says so earlier.
const LIST_EXTRAS: &str = r#","resultType":"complete","ttlMs":30000,"cacheScope":"private""#;

/// Whether the headers name this revision or a later one. Revisions are dates and sort as text.
pub(super) fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= VERSION)
}

/// Whether a POST is of this era: by its header, or by the envelope in its message.
pub(super) fn speaks(headers: &HeaderMap, body: &[u8]) -> bool {
    is_modern(headers) || headers.get("mcp-session-id").is_none() && has_envelope(body)
}

fn has_envelope(body: &[u8]) -> bool {
    let Ok(parsed) = message::parse(body, MOST_DEPTH) else { return false };
    let (message::Message::Request { params, .. } | message::Message::Notification { params, .. }) = parsed.message
    else {
        return false;
    };
    let params = params.and_then(|raw| RawObject::parse(raw.get()));
    params.and_then(|params| params.object("_meta")).is_some_and(|meta| meta.get(META_VERSION).is_some())
}

/// Name and version of Gatehouse.
pub(super) fn server_info() -> Value {
    json!({"name": "gatehouse", "title": "Gatehouse", "version": env!("CARGO_PKG_VERSION")})
}

/// A result of this era: the same with `resultType`.
pub(super) fn complete(mut pieces: Vec<Bytes>) -> Vec<Bytes> {
    if let Some(first) = pieces.first_mut() {
        // Every result is an object.
        let rest = first.slice(1..);
        *first = Bytes::from_static(b"{\"resultType\":\"complete\",");
        pieces.insert(1, rest);
    }
    pieces
}

/// An answer that refuses: HTTP status, code, words, data.
struct Refusal(StatusCode, i64, String, Option<Value>);

impl Edge {
    /// Answers a POST.
    pub(super) async fn modern(self: &Arc<Self>, post: Post) -> Response<Body> {
        let accepts = access::accepts(&post.headers);
        if !accepts.json && !accepts.events {
            return body::plain(StatusCode::NOT_ACCEPTABLE, "accept application/json and text/event-stream");
        }
        let parsed = match message::parse(&post.body, MOST_DEPTH) {
            Ok(parsed) => parsed,
            Err(wrong) => return malformed(&wrong),
        };
        let message::Message::Request { id, method, params } = parsed.message else { return body::accepted() };
        let params = params.and_then(|raw| RawObject::parse(raw.get())).unwrap_or_default();
        let id = id.as_json();
        match check(&post.headers, &method, &params) {
            Ok(()) => self.modern_request(&post, id, &method, &params, accepts).await,
            Err(refusal) => refuse(id, &refusal),
        }
    }

    async fn modern_request(
        self: &Arc<Self>,
        post: &Post,
        id: &str,
        method: &str,
        params: &RawObject<'_>,
        accepts: Accepts,
    ) -> Response<Body> {
        match method {
            "server/discover" => {
                let result = json!({
                    "resultType": "complete",
                    "supportedVersions": [VERSION],
                    "capabilities": {"tools": {"listChanged": true}},
                    "ttlMs": 3_600_000,
                    "cacheScope": "private",
                    "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
                });
                answer(accepts, body::result(id, [Bytes::from(result.to_string())]))
            }
            "tools/list" => {
                answer(accepts, body::result(id, self.tools_list(&post.principal, Some(LIST_EXTRAS)).await))
            }
            "tools/call" => match ToolCall::read(id, params, &post.body, &post.headers) {
                Ok(call) => self.tools_call(&post.principal, call, Era::Modern, accepts).await,
                Err(words) => answer(accepts, vec![encode::error(Some(id), INVALID_PARAMS, words, None)]),
            },
            "subscriptions/listen" => self.listen(post, id, params),
            _ => {
                let words = format!("there is no method `{}`", gatehouse_types::shown::line(method, 100));
                refuse(id, &Refusal(StatusCode::NOT_FOUND, METHOD_NOT_FOUND, words, None))
            }
        }
    }

    /// A stream that says when the offered tools have changed.
    fn listen(self: &Arc<Self>, post: &Post, id: &str, params: &RawObject<'_>) -> Response<Body> {
        let asked = params.object("notifications").unwrap_or_default();
        let tools = asked.boolean("toolsListChanged") == Some(true);
        let honoured = if tools { "{\"toolsListChanged\":true}" } else { "{}" };
        let meta = format!("\"_meta\":{{\"{META_SUBSCRIPTION}\":{id}}}");
        let event = |text: String| {
            let mut event = Vec::new();
            gatehouse_mcp::sse::encode(&mut event, None, text.as_bytes());
            Bytes::from(event)
        };
        let first = event(format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"notifications\":{honoured},{meta}}}}}"
        ));
        let notice = if tools {
            event(format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{{{meta}}}}}"
            ))
        } else {
            // Asked for nothing that is to be had: the stream stays open and says nothing.
            Bytes::from_static(b": \n\n")
        };
        let last = event(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\"}}}}"));
        let (snapshot, shutdown) = (Arc::clone(&self.snapshot), self.shutdown.clone());
        let principal = Arc::clone(&post.principal);
        body::events(notices::watch_tools(snapshot, principal, shutdown, Some(first), notice, Some(last)))
    }
}

fn refuse(id: &str, Refusal(status, code, words, data): &Refusal) -> Response<Body> {
    let data = data.as_ref().and_then(|data| serde_json::value::to_raw_value(data).ok());
    body::json(*status, vec![encode::error(Some(id), *code, words, data.as_deref())])
}

/// Checks envelope and headers against each other (2026-07-28, basic/transports).
fn check(headers: &HeaderMap, method: &str, params: &RawObject<'_>) -> Result<(), Refusal> {
    let meta = params.object("_meta").unwrap_or_default();
    let invalid = |words: &str| Refusal(StatusCode::BAD_REQUEST, INVALID_PARAMS, words.to_owned(), None);
    let mismatch = |words: &str| Refusal(StatusCode::BAD_REQUEST, HEADER_MISMATCH, words.to_owned(), None);
    // A revision of the future may say itself in another way: its header is enough to refuse it by its name.
    let future = header(headers, "mcp-protocol-version").filter(|version| version != VERSION).map(Cow::Owned);
    let named = meta.string(META_VERSION).or(future);
    let version = named.ok_or_else(|| invalid("`_meta` must name the protocol version"))?;
    if version != VERSION {
        let data = json!({"supported": [VERSION], "requested": version});
        let words = "this protocol version is not spoken here".to_owned();
        return Err(Refusal(StatusCode::BAD_REQUEST, UNSUPPORTED_VERSION, words, Some(data)));
    }
    if meta.object(META_CAPABILITIES).is_none() {
        return Err(invalid("`_meta` must hold the client's capabilities, if only `{}`"));
    }
    if header(headers, "mcp-protocol-version").as_deref() != Some(version.as_ref()) {
        return Err(mismatch("the header MCP-Protocol-Version must be that of `_meta`"));
    }
    if header(headers, "mcp-method").as_deref() != Some(method) {
        return Err(mismatch("the header Mcp-Method must be the method"));
    }
    if method == "tools/call" && header(headers, "mcp-name") != params.string("name").map(Cow::into_owned) {
        return Err(mismatch("the header Mcp-Name must be the name of the tool"));
    }
    Ok(())
}

/// A header's text; `=?base64?…?=` is decoded.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn checked(pairs: &[(&'static str, &str)], params: &str) -> Result<(), i64> {
        check(&headers(pairs), "tools/call", &RawObject::parse(params).unwrap()).map_err(|refusal| refusal.1)
    }

    const GOOD: &str = r#"{"name":"a__b","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;

    #[test]
    fn headers_and_envelope_must_agree() {
        let good = [("mcp-protocol-version", VERSION), ("mcp-method", "tools/call"), ("mcp-name", "a__b")];
        assert_eq!(checked(&good, GOOD), Ok(()));
        assert_eq!(checked(&[good[0], good[1], ("mcp-name", "=?base64?YV9fYg==?=")], GOOD), Ok(()));
        for wrong in [
            vec![good[0], good[1]],
            vec![good[0], good[1], ("mcp-name", "other")],
            vec![good[0], ("mcp-method", "tools/list"), good[2]],
            vec![good[1], good[2]],
            vec![good[0], good[1], ("mcp-name", "=?base64?!?=")],
        ] {
            assert_eq!(checked(&wrong, GOOD), Err(HEADER_MISMATCH), "{wrong:?}");
        }
        assert_eq!(checked(&good, &GOOD.replace("2026-07-28", "2099-01-01")), Err(UNSUPPORTED_VERSION));
        assert_eq!(checked(&[("mcp-protocol-version", "2099-01-01")], "{}"), Err(UNSUPPORTED_VERSION));
        assert_eq!(checked(&good, r#"{"name":"a__b"}"#), Err(INVALID_PARAMS));
        assert_eq!(checked(&good, &GOOD.replace("clientCapabilities", "other")), Err(INVALID_PARAMS));
    }

    #[test]
    fn the_era_is_told_by_header_or_envelope() {
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{GOOD}}}");
        assert!(speaks(&headers(&[]), body.as_bytes()));
        assert!(speaks(&headers(&[("mcp-protocol-version", VERSION)]), b"{}"));
        assert!(!speaks(&headers(&[("mcp-protocol-version", "2025-11-25")]), b"{}"));
    }

    #[test]
    fn a_result_says_that_it_is_complete() {
        let pieces = complete(vec![Bytes::from_static(b"{\"content\":[]}")]);
        assert_eq!(pieces.concat(), b"{\"resultType\":\"complete\",\"content\":[]}");
    }
}
