//! Pure: `config.toml` of Codex.

use secrecy::SecretString;
use toml::{Table, Value};

use super::{BOUNDS_CONNECT, BOUNDS_REQUEST, Entry, Environment, Found, Unreadable, expand::Missing, seconds, stdio};

pub(super) fn parse(text: &str, environment: Environment<'_>) -> Result<Vec<Entry>, Unreadable> {
    let root: Table = toml::from_str(text).map_err(|error: toml::de::Error| {
        // The parser's own words quote the line, which may hold a secret.
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        Unreadable(format!("it is not TOML (line {})", before.matches('\n').count() + 1))
    })?;
    let Some(servers) = root.get("mcp_servers").and_then(Value::as_table) else {
        return Err(Unreadable("it has no `[mcp_servers.…]`".to_owned()));
    };
    let entry = |(name, server): (&String, &Value)| {
        let outcome = server.as_table().ok_or_else(|| "its value is not a table".to_owned());
        let outcome = outcome.and_then(|server| found(server, environment));
        Entry { name: name.clone(), place: String::new(), outcome }
    };
    Ok(servers.iter().map(entry).collect())
}

fn found(server: &Table, environment: Environment<'_>) -> Result<Found, String> {
    let Some(url) = server.get("url").and_then(Value::as_str) else {
        let command = server.get("command").and_then(Value::as_str);
        let arguments = server.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        return Err(stdio(&command.into_iter().chain(arguments).collect::<Vec<_>>()));
    };
    let variable = |name: &str| environment(name).ok_or_else(|| Missing::Variable(name.to_owned()).words());
    let mut headers = Vec::new();
    for (name, value) in table(server, "http_headers") {
        let value = value.as_str().ok_or_else(|| format!("the value of header `{name}` is not text"))?;
        headers.push((name.clone(), SecretString::from(value)));
    }
    for (name, value) in table(server, "env_http_headers") {
        let value = value.as_str().ok_or_else(|| format!("the variable for header `{name}` is not text"))?;
        headers.push((name.clone(), SecretString::from(variable(value)?)));
    }
    if let Some(name) = server.get("bearer_token_env_var").and_then(Value::as_str) {
        headers.push(("Authorization".to_owned(), SecretString::from(format!("Bearer {}", variable(name)?))));
    }
    let time = |key: &str, bounds| server.get(key).and_then(number).and_then(|value| seconds(value, bounds));
    Ok(Found {
        url: SecretString::from(url),
        headers,
        connect_timeout: time("startup_timeout_sec", BOUNDS_CONNECT),
        request_timeout: time("tool_timeout_sec", BOUNDS_REQUEST),
        disabled: server.get("enabled").and_then(Value::as_bool) == Some(false),
        notes: notes(server),
    })
}

fn table<'a>(server: &'a Table, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    server.get(key).and_then(Value::as_table).into_iter().flatten()
}

fn number(value: &Value) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "seconds; the bounds are far below 2^52")]
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

fn notes(server: &Table) -> Vec<String> {
    let mut notes = Vec::new();
    if server.contains_key("http_headers_helper") {
        notes.push("`http_headers_helper` is not run; add the headers with `server update --header-env`".to_owned());
    }
    if server.contains_key("enabled_tools") || server.contains_key("disabled_tools") {
        notes.push("its choice of tools is not taken over; a profile says which tools a session may use".to_owned());
    }
    notes
}
