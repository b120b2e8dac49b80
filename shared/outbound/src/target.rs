//! Pure
//!
//! A URL that can be called.

use std::fmt;

use http::{HeaderValue, Uri};
use url::Url;

/// A parsed `http` or `https` URL, ready to be sent to. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    uri: Uri,
    host_header: HeaderValue,
}

/// Why a URL cannot be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// Not a URL at all.
    #[error("it is not an absolute URL")]
    NotAUrl,
    /// Neither `http` nor `https`.
    #[error("its scheme is neither http nor https")]
    Scheme,
    /// A URL without a host.
    #[error("it names no host")]
    NoHost,
    /// A user name or password in the URL, where it would be shown and logged.
    #[error("it holds a user name or password: give credentials as headers")]
    Credentials,
    /// Longer than 8,192 bytes.
    #[error("it is longer than 8,192 bytes")]
    TooLong,
}

const MOST_BYTES: usize = 8_192;

impl Target {
    /// Reads a URL. Odd spellings of an IPv4 host (`0x7f.1`, `2130706433`) become the address they mean; a fragment is
    /// dropped; credentials in the URL are refused.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        if text.len() > MOST_BYTES {
            return Err(BadUrl::TooLong);
        }
        Self::from_url(Url::parse(text).map_err(|_| BadUrl::NotAUrl)?)
    }

    /// The same from a URL that is parsed already.
    pub fn from_url(mut url: Url) -> Result<Self, BadUrl> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadUrl::Scheme);
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(BadUrl::NoHost);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadUrl::Credentials);
        }
        url.set_fragment(None);
        let uri = Uri::try_from(url.as_str()).map_err(|_| BadUrl::NotAUrl)?;
        let authority = uri.authority().ok_or(BadUrl::NoHost)?;
        let host_header = HeaderValue::from_str(authority.as_str()).map_err(|_| BadUrl::NotAUrl)?;
        Ok(Self { uri, host_header })
    }

    /// Another URL relative to this one, as a redirect names it.
    pub fn join(&self, reference: &str) -> Result<Self, BadUrl> {
        let base = Url::parse(&self.uri.to_string()).map_err(|_| BadUrl::NotAUrl)?;
        Self::from_url(base.join(reference).map_err(|_| BadUrl::NotAUrl)?)
    }

    /// The URL as the HTTP client takes it.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The value of the `host` header.
    pub fn host_header(&self) -> &HeaderValue {
        &self.host_header
    }

    /// The host as it stands in the URL; an IPv6 address keeps its brackets.
    pub fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }

    /// The port, the scheme's own when the URL names none.
    pub fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(if self.is_https() { 443 } else { 80 })
    }

    /// Whether it is called over TLS.
    pub fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Whether scheme, host and port are the same.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.is_https() == other.is_https() && self.port() == other.port() && self.host() == other.host()
    }
}

/// Shows scheme, host and port only: a query may hold what must not be logged.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https() { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host(), self.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Guard;

    #[test]
    fn odd_spellings_of_an_address_are_judged_as_the_address() {
        for odd in [
            "http://0x7f.1/",
            "http://2130706433/",
            "http://017700000001/",
            "http://127.1:8080/mcp",
            "http://[::ffff:127.0.0.1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://\u{ff11}27.0.0.1/",
            "http://127.0.0.1./",
        ] {
            let target = Target::parse(odd).unwrap();
            assert!(
                Guard::default().check_host(target.host().trim_end_matches('.')).is_err(),
                "{odd} passed as {target:?}"
            );
        }
    }

    #[test]
    fn only_http_urls_with_a_host_and_without_credentials_can_be_called() {
        assert_eq!(Target::parse("mcp.example"), Err(BadUrl::NotAUrl));
        assert_eq!(Target::parse("file:///etc/passwd"), Err(BadUrl::Scheme));
        assert_eq!(Target::parse("https://a:b@mcp.example/"), Err(BadUrl::Credentials));
        assert_eq!(Target::parse("https://token@mcp.example/"), Err(BadUrl::Credentials));
        assert_eq!(Target::parse("https://"), Err(BadUrl::NotAUrl));
        assert_eq!(Target::parse(&format!("https://mcp.example/{}", "a".repeat(9_000))), Err(BadUrl::TooLong));
        assert_eq!(Target::parse("https://mcp.example/a?b#c").unwrap().uri(), "https://mcp.example/a?b");
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let here = Target::parse("https://mcp.example/mcp").unwrap();
        assert!(here.same_origin(&here.join("/other?x=1").unwrap()));
        assert!(here.same_origin(&here.join("https://MCP.example:443/").unwrap()));
        assert!(!here.same_origin(&here.join("http://mcp.example/mcp").unwrap()));
        assert!(!here.same_origin(&here.join("https://mcp.example:8443/mcp").unwrap()));
        assert!(!here.same_origin(&here.join("//evil.example/mcp").unwrap()));
    }

    #[test]
    fn the_query_is_not_shown() {
        let target = Target::parse("https://mcp.example/mcp?key=secret").unwrap();
        assert_eq!(format!("{target:?}"), "https://mcp.example:443");
    }
}
