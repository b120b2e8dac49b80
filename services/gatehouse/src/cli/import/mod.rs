//! Pure: reading the MCP server lists that people have already.
//!
//! `.mcp.json` and `~/.claude.json` of Claude Code, Claude Desktop, Cursor and VS Code (JSON, also with comments), and
//! `config.toml` of Codex. What comes out is a list of [`Entry`]: servers to register, and those that this version
//! cannot take, each with the reason. Nothing here prints; values of headers cannot be printed.

mod codex;
mod expand;
mod json;
mod jsonc;
mod names;

use std::{fmt, time::Duration};

use secrecy::SecretString;

pub(crate) use names::{Named, assign, same};

/// A server found in a file.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its name there.
    pub(crate) name: String,
    /// Where in the file, when that says something: the folder of a project in `~/.claude.json`; else empty.
    pub(crate) place: String,
    /// What to register, or why not.
    pub(crate) outcome: Result<Found, String>,
}

/// A Streamable HTTP server.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Its URL; may hold a secret in its query, so it is shown only through [`shown_url`].
    pub(crate) url: SecretString,
    /// Fixed headers.
    pub(crate) headers: Vec<(String, SecretString)>,
    /// Time for connecting, when the file says.
    pub(crate) connect_timeout: Option<Duration>,
    /// Time for a request, when the file says.
    pub(crate) request_timeout: Option<Duration>,
    /// Whether the file has it switched off.
    pub(crate) disabled: bool,
    /// What the file says and this version does not do, for people.
    pub(crate) notes: Vec<String>,
}

/// Why a file cannot be read as a list of servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable(pub String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Looks up an environment variable.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The servers in a file, in its order (TOML: by name). `name` is the file's name: `.toml` is read as Codex's.
pub(crate) fn parse(name: &str, text: &str, environment: Environment<'_>) -> Result<Vec<Entry>, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_toml = std::path::Path::new(name).extension().is_some_and(|found| found.eq_ignore_ascii_case("toml"));
    if is_toml { codex::parse(text, environment) } else { json::parse(text, environment) }
}

/// A URL without what may be secret in it: no user, no password, no query, no fragment.
pub(crate) fn shown_url(url: &str) -> String {
    let Ok(mut url) = url::Url::parse(url) else { return "(not a URL)".to_owned() };
    let hidden = url.query().is_some() || url.fragment().is_some() || url.has_authority() && url.username() != "";
    // A URL without a host has no user to take away either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    if hidden { format!("{url} (rest hidden)") } else { url.to_string() }
}

const BOUNDS_CONNECT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(2));
const BOUNDS_REQUEST: (Duration, Duration) = (Duration::from_secs(1), Duration::from_hours(24));

/// A number of seconds as a time within what the gateway takes. Not a sensible number: none.
fn seconds(value: f64, (min, max): (Duration, Duration)) -> Option<Duration> {
    let duration = Duration::try_from_secs_f64(value).ok()?;
    Some(duration.clamp(min, max))
}

/// Why a server that is started as a process cannot be taken, with a hint when it only bridges to a URL.
fn stdio(words: &[&str]) -> String {
    let bridged = words.iter().any(|word| word.starts_with("mcp-remote") || word.contains("/mcp-remote"));
    let url = words.iter().find(|word| word.starts_with("https://") || word.starts_with("http://"));
    let reason = "stdio servers (started as a process) are not imported: say what each may use, with `gatehouse server add NAME --stdio -- PROGRAM`";
    match url {
        Some(url) if bridged => {
            format!("it only bridges to {}: register that with `gatehouse server add NAME URL`", shown_url(url))
        }
        _ => reason.to_owned(),
    }
}

const SSE: &str = "HTTP+SSE servers (the transport of 2024-11-05) are not supported in this version; \
                   if the server has a Streamable HTTP endpoint, often `/mcp`, register that with `server add`";

#[cfg(test)]
mod tests;
