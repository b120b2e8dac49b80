//! Pure. Registered servers and the rules for their fields.

use std::time::Duration;

use gatehouse_types::ServerId;
use time::OffsetDateTime;
use url::Url;

use crate::error::Error;

use super::{digest::Digest, header::Headers, stdio::Stdio};

/// Most characters of a name.
pub const NAME_CHARS: usize = 32;
/// Most bytes of a URL.
pub const URL_BYTES: usize = 2_048;
/// Connect timeout when the request names none.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Request timeout when the request names none.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_mins(10);
/// Concurrency when the request names none.
pub const DEFAULT_CONCURRENCY: u32 = 256;
/// Shortest timeout.
pub const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest connect timeout.
pub const LONGEST_CONNECT_TIMEOUT: Duration = Duration::from_mins(2);
/// Longest request timeout.
pub const LONGEST_REQUEST_TIMEOUT: Duration = Duration::from_hours(24);
/// Highest concurrency.
pub const MOST_CONCURRENCY: u32 = 10_000;

/// A registered server, without the values of its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its id.
    pub id: ServerId,
    /// Its name.
    pub name: String,
    /// Text for people.
    pub description: String,
    /// Whether it offers tools and gets calls.
    pub enabled: bool,
    /// The MCP endpoint; empty for a program.
    pub url: String,
    /// The program, when it is one.
    pub stdio: Option<Stdio>,
    /// Names of its fixed headers, or of the variables of its environment.
    pub header_names: Vec<String>,
    /// Time for connecting and `initialize`.
    pub connect_timeout: Duration,
    /// Time for one request without progress.
    pub request_timeout: Duration,
    /// Requests in flight at once from one replica.
    pub max_concurrency: u32,
    /// What the last contact showed.
    pub status: Status,
    /// Tools that the server lists.
    pub tool_count: u32,
    /// When tools or capabilities last changed.
    pub tools_updated_at: Option<OffsetDateTime>,
    /// What is masked in the audit and on cards: texts of `audit::mask::MaskRule`s.
    pub mask_rules: Vec<String>,
    /// When it was registered.
    pub created_at: OffsetDateTime,
    /// When its configuration last changed.
    pub updated_at: OffsetDateTime,
}

/// What the last contact with a server showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The state.
    pub state: ServerState,
    /// What is wrong; empty when nothing is known to be.
    pub message: String,
    /// When the state began.
    pub since: Option<OffsetDateTime>,
    /// When the server was last asked.
    pub checked_at: Option<OffsetDateTime>,
    /// Negotiated MCP revision.
    pub protocol_version: String,
    /// `serverInfo.name`.
    pub server_name: String,
    /// `serverInfo.version`.
    pub server_version: String,
    /// Capabilities: the JSON text as it was sent.
    pub capabilities: String,
}

/// State of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// Not asked yet.
    Unknown,
    /// Answered when last asked.
    Healthy,
    /// Did not answer, or not as an MCP server does.
    Failing,
}

impl ServerState {
    /// The state that is stored under this word.
    pub fn from_stored(word: &str) -> Option<Self> {
        match word {
            "unknown" => Some(Self::Unknown),
            "healthy" => Some(Self::Healthy),
            "failing" => Some(Self::Failing),
            _ => None,
        }
    }
}

/// A server to register. Every field is checked.
#[derive(Debug, Clone)]
pub struct NewServer {
    /// Makes the request idempotent.
    pub request_id: Option<String>,
    /// See [`name`].
    pub name: String,
    /// Text for people.
    pub description: String,
    /// See [`url()`]; empty for a program.
    pub url: String,
    /// The program, when it is one.
    pub stdio: Option<Stdio>,
    /// Fixed headers, or the environment.
    pub headers: Headers,
    /// See [`Server::connect_timeout`].
    pub connect_timeout: Duration,
    /// See [`Server::request_timeout`].
    pub request_timeout: Duration,
    /// See [`Server::max_concurrency`].
    pub max_concurrency: u32,
    /// See [`Server::enabled`].
    pub enabled: bool,
    /// See [`Server::mask_rules`].
    pub mask_rules: Vec<String>,
}

impl NewServer {
    /// What the request asks for, without the values of headers: a digest of a short secret could be guessed.
    pub fn digest(&self) -> [u8; 32] {
        let digest = Digest::new("server").text(&self.name).text(&self.description).text(&self.url);
        let digest = self.stdio.iter().fold(digest, |digest, stdio| digest.text(&stdio.to_stored()));
        let digest = digest.number(self.connect_timeout.as_millis()).number(self.request_timeout.as_millis());
        let digest = digest.number(self.max_concurrency.into()).number(self.enabled.into());
        // No name of a header is a rule.
        let names = self.headers.names().chain(self.mask_rules.iter().map(String::as_str));
        names.fold(digest, Digest::text).finish()
    }
}

/// A change to a server. Every field is checked; `None` leaves what is there.
#[derive(Debug, Clone, Default)]
pub struct ServerChange {
    /// See [`name`].
    pub name: Option<String>,
    /// Text for people.
    pub description: Option<String>,
    /// See [`url()`].
    pub url: Option<String>,
    /// The program in place of the one before.
    pub stdio: Option<Stdio>,
    /// Whether the headers below are variables of an environment.
    pub variables: bool,
    /// Headers, or variables, to add or replace.
    pub set_headers: Headers,
    /// Names of headers to remove; names that the server does not have are no error.
    pub remove_headers: Vec<String>,
    /// See [`Server::connect_timeout`].
    pub connect_timeout: Option<Duration>,
    /// See [`Server::request_timeout`].
    pub request_timeout: Option<Duration>,
    /// See [`Server::max_concurrency`].
    pub max_concurrency: Option<u32>,
    /// See [`Server::enabled`].
    pub enabled: Option<bool>,
    /// Mask rules to add.
    pub add_mask_rules: Vec<String>,
    /// Mask rules to remove; those that the server does not have are no error.
    pub remove_mask_rules: Vec<String>,
}

impl ServerChange {
    /// Whether the change is one for a server of this kind; a server cannot change its kind.
    pub fn fits(&self, is_program: bool) -> Result<(), Error> {
        let other = match (is_program, &self.url, &self.stdio) {
            (true, Some(_), _) => {
                ("url", "is for servers with an endpoint; this one is a program: remove it and add another")
            }
            (false, _, Some(_)) => {
                ("stdio", "is for servers that are programs; this one has a URL: remove it and add another")
            }
            _ if self.changes_headers() && self.variables != is_program => match self.variables {
                true => ("set_env", "is for servers that are programs; this one takes `set_headers`"),
                false => ("set_headers", "is for servers with an endpoint; this one is a program and takes `set_env`"),
            },
            _ => return Ok(()),
        };
        Err(Error::field(other.0, other.1))
    }

    /// Whether headers are set or removed.
    pub fn changes_headers(&self) -> bool {
        !self.set_headers.is_empty() || !self.remove_headers.is_empty()
    }

    /// Those of the present headers that stay as they are.
    pub fn keeps<'a>(&self, names: &'a [String]) -> Vec<&'a str> {
        let gone = |name: &str| {
            let given = self.remove_headers.iter().map(String::as_str).chain(self.set_headers.names());
            given.into_iter().any(|other| other.eq_ignore_ascii_case(name))
        };
        names.iter().map(String::as_str).filter(|name| !gone(name)).collect()
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.description.is_none()
            && self.url.is_none()
            && self.stdio.is_none()
            && !self.changes_headers()
            && self.connect_timeout.is_none()
            && self.request_timeout.is_none()
            && self.max_concurrency.is_none()
            && self.enabled.is_none()
            && !self.changes_mask_rules()
    }

    /// Whether mask rules are added or removed.
    pub fn changes_mask_rules(&self) -> bool {
        !self.add_mask_rules.is_empty() || !self.remove_mask_rules.is_empty()
    }

    /// The mask rules after the change.
    pub fn mask_rules(&self, now: &[String]) -> Vec<String> {
        let mut after: Vec<String> =
            now.iter().filter(|rule| !self.remove_mask_rules.contains(rule)).cloned().collect();
        for rule in &self.add_mask_rules {
            if !after.contains(rule) {
                after.push(rule.clone());
            }
        }
        after
    }
}

/// A server's name: `^[a-z0-9_-]{1,32}$`, without `__` and without `_` at either end, so that `server__tool` has one
/// meaning.
pub fn name(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    if !(1..=NAME_CHARS).contains(&text.len()) || !text.bytes().all(allowed) {
        return Err(format!("takes 1 to {NAME_CHARS} characters of `a-z 0-9 _ -`"));
    }
    if text.starts_with('_') || text.ends_with('_') {
        return Err("takes no `_` at its beginning or end".to_owned());
    }
    if text.contains("__") {
        return Err("takes no `__`: that separates a server from its tool".to_owned());
    }
    Ok(text.to_owned())
}

/// An MCP endpoint: absolute, `http` or `https`, without credentials and fragment. Given back as it will be
/// requested. The words never repeat the text: it may hold a password.
pub fn url(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("is missing".to_owned());
    }
    if text.len() > URL_BYTES {
        return Err(format!("takes at most {URL_BYTES} bytes"));
    }
    let words = || "takes an absolute URL such as `https://mcp.example.com/mcp`".to_owned();
    // A URL parser forgives all of these; an admin who typed one meant something else.
    if text.chars().any(|letter| letter.is_control() || letter.is_whitespace() || letter == '\\') {
        return Err("takes no spaces, control characters or `\\`".to_owned());
    }
    let (scheme, rest) = text.split_once("://").ok_or_else(words)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err("takes a URL with `http` or `https`".to_owned());
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("takes no user name or password; use `headers`".to_owned());
    }
    if text.contains('#') {
        return Err("takes no fragment (`#…`)".to_owned());
    }
    let parsed = Url::parse(text).map_err(|_| words())?;
    if authority.is_empty() || parsed.host_str().is_none_or(str::is_empty) {
        return Err(words());
    }
    if parsed.port() == Some(0) {
        return Err("takes a port from 1 to 65535".to_owned());
    }
    if parsed.as_str().len() > URL_BYTES {
        return Err(format!("takes at most {URL_BYTES} bytes"));
    }
    Ok(parsed.into())
}

/// A timeout in whole milliseconds between two bounds.
fn timeout(value: Duration, longest: Duration) -> Result<Duration, String> {
    let whole = value.subsec_nanos().is_multiple_of(1_000_000);
    if whole && (SHORTEST_TIMEOUT..=longest).contains(&value) {
        return Ok(value);
    }
    let most = longest.as_secs();
    Err(format!("takes {} s to {most} s, in whole milliseconds", SHORTEST_TIMEOUT.as_secs()))
}

/// See [`Server::connect_timeout`].
pub fn connect_timeout(value: Duration) -> Result<Duration, String> {
    timeout(value, LONGEST_CONNECT_TIMEOUT)
}

/// See [`Server::request_timeout`].
pub fn request_timeout(value: Duration) -> Result<Duration, String> {
    timeout(value, LONGEST_REQUEST_TIMEOUT)
}

/// See [`Server::max_concurrency`].
pub fn concurrency(value: i32) -> Result<u32, String> {
    let checked = u32::try_from(value).ok().filter(|number| (1..=MOST_CONCURRENCY).contains(number));
    checked.ok_or_else(|| format!("takes a number from 1 to {MOST_CONCURRENCY}"))
}

#[cfg(test)]
mod tests;
