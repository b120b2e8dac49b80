//! Pure: which requests are let in, by their headers (MCP 2025-11-25, basic/transports, security warning: DNS rebinding).

use std::net::IpAddr;

use http::{HeaderMap, Uri, header};

/// Hosts that the endpoint answers to, and origins that browsers may call it from.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Host names without port, in lower case; `*` is any.
    hosts: Vec<String>,
    /// Origins, in lower case.
    origins: Vec<String>,
}

impl Access {
    /// The loopback names, the host of the public URL, and what the operator lists.
    pub fn new(public_host: Option<&str>, hosts: &[String], origins: &[String]) -> Self {
        let lower = |text: &String| text.to_ascii_lowercase();
        let mut all: Vec<String> = hosts.iter().map(lower).collect();
        all.extend(public_host.map(str::to_ascii_lowercase));
        Self { hosts: all, origins: origins.iter().map(lower).collect() }
    }

    /// Lets a request in, or says why not. The words are for whoever configures the client.
    pub(super) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), &'static str> {
        // HTTP/2 has the host in the URI.
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok())
            .or_else(|| uri.authority().map(http::uri::Authority::as_str));
        let Some(host) = host else { return Err("the request names no host") };
        if !self.knows(host_name(host)) {
            return Err("this host name is not served here; an operator adds it to GATEHOUSE_EDGE_ALLOWED_HOSTS");
        }
        match headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default().to_ascii_lowercase()) {
            None => Ok(()),
            Some(origin) if self.origins.contains(&origin) || is_loopback_origin(&origin) => Ok(()),
            Some(_) => {
                Err("this origin may not call the endpoint; an operator adds it to GATEHOUSE_EDGE_ALLOWED_ORIGINS")
            }
        }
    }

    fn knows(&self, name: &str) -> bool {
        is_loopback(name) || self.hosts.iter().any(|host| host == "*" || host.eq_ignore_ascii_case(name))
    }
}

/// The host without its port.
fn host_name(host: &str) -> &str {
    if let Some(end) = host.strip_prefix('[').and_then(|rest| rest.find(']')) {
        return &host[1..=end];
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A page on the same machine, such as a local inspector.
fn is_loopback_origin(origin: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(|host| !host.contains(['/', '@']) && is_loopback(host_name(host)))
}

/// The bearer token of a request.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether a body is declared as JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// What kinds of answer a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    /// `application/json`.
    pub(super) json: bool,
    /// `text/event-stream`.
    pub(super) events: bool,
}

/// Reads `Accept`. No header at all takes everything.
pub(super) fn accepts(headers: &HeaderMap) -> Accepts {
    let mut found = Accepts { json: false, events: false };
    let mut any = false;
    for range in headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
    {
        any = true;
        match range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "*/*" => found = Accepts { json: true, events: true },
            "application/json" | "application/*" => found.json = true,
            "text/event-stream" | "text/*" => found.events = true,
            _ => {}
        }
    }
    if any { found } else { Accepts { json: true, events: true } }
}

/// The W3C trace id of a request in hexadecimal, or empty.
pub(super) fn trace_id(headers: &HeaderMap) -> String {
    let parent = headers.get("traceparent").and_then(|parent| parent.to_str().ok()).unwrap_or_default();
    let id = parent.split('-').nth(1).unwrap_or_default();
    let good = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) && id.bytes().any(|byte| byte != b'0');
    if good { id.to_ascii_lowercase() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_known_hosts_are_served() {
        let access = Access::new(Some("mcp.example.com"), &["Gate.internal".to_owned()], &[]);
        for (host, good) in [
            ("localhost:7300", true),
            ("127.0.0.1:7300", true),
            ("[::1]:7300", true),
            ("mcp.example.com", true),
            ("MCP.example.com:443", true),
            ("gate.internal", true),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            let checked = access.check(&headers(&[(header::HOST, host)]), &Uri::from_static("/mcp"));
            assert_eq!(checked.is_ok(), good, "{host}");
        }
        assert!(access.check(&HeaderMap::new(), &Uri::from_static("/mcp")).is_err());
        assert!(
            Access::new(None, &["*".to_owned()], &[])
                .check(&headers(&[(header::HOST, "x.y")]), &Uri::from_static("/mcp"))
                .is_ok()
        );
    }

    #[test]
    fn only_known_origins_may_call() {
        let access = Access::new(None, &[], &["https://app.example.com".to_owned()]);
        for (origin, good) in [
            ("https://app.example.com", true),
            ("http://localhost:6274", true),
            ("http://127.0.0.1:1", true),
            ("http://[::1]", true),
            ("https://evil.example", false),
            ("null", false),
            ("http://localhost.evil.example", false),
            ("http://localhost@evil.example", false),
            ("file://localhost", false),
            ("https://app.example.com.evil", false),
        ] {
            let checked = access
                .check(&headers(&[(header::HOST, "localhost"), (header::ORIGIN, origin)]), &Uri::from_static("/mcp"));
            assert_eq!(checked.is_ok(), good, "{origin}");
        }
    }

    #[test]
    fn a_bearer_token_is_read_whatever_the_case_of_the_scheme() {
        for (value, token) in
            [("Bearer a", Some("a")), ("bearer  a ", Some("a")), ("Basic a", None), ("Bearer ", None), ("a", None)]
        {
            assert_eq!(bearer(&headers(&[(header::AUTHORIZATION, value)])), token, "{value}");
        }
    }

    #[test]
    fn accept_is_read_as_engines_send_it() {
        for (value, json, events) in [
            ("application/json, text/event-stream", true, true),
            ("text/event-stream, application/json", true, true),
            ("text/event-stream", false, true),
            ("application/json;q=0.9", true, false),
            ("*/*", true, true),
            ("text/html", false, false),
        ] {
            assert_eq!(accepts(&headers(&[(header::ACCEPT, value)])), Accepts { json, events }, "{value}");
        }
        assert_eq!(accepts(&HeaderMap::new()), Accepts { json: true, events: true });
    }

    #[test]
    fn a_trace_id_is_taken_only_when_it_is_one() {
        let name = HeaderName::from_static("traceparent");
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(trace_id(&headers(&[(name.clone(), good)])), "4bf92f3577b34da6a3ce929d0e0e4736");
        for bad in ["", "00-xyz", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"] {
            assert_eq!(trace_id(&headers(&[(name.clone(), bad)])), "");
        }
    }
}
