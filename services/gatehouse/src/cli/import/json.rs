//! Pure: the JSON formats: Claude Code, Claude Desktop, Cursor, VS Code.

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::{BOUNDS_REQUEST, Entry, Environment, Found, SSE, Unreadable, expand::expand, jsonc, seconds, stdio};

pub(super) fn parse(text: &str, environment: Environment<'_>) -> Result<Vec<Entry>, Unreadable> {
    let root: Value = serde_json::from_str(&jsonc::plain(text)).map_err(|error| {
        // serde_json's own words can quote the file; the place is enough.
        Unreadable(format!("it is not JSON (line {}, column {})", error.line(), error.column()))
    })?;
    let Value::Object(root) = root else { return Err(Unreadable("it is not a JSON object".to_owned())) };
    let mut entries = Vec::new();
    let mut known = false;
    let lists = [root.get("mcpServers"), root.get("servers"), root.get("mcp").and_then(|mcp| mcp.get("servers"))];
    for list in lists.into_iter().flatten().filter_map(Value::as_object) {
        known = true;
        entries.extend(list.iter().map(|(name, server)| entry(name, "", server, environment)));
    }
    for (folder, project) in root.get("projects").and_then(Value::as_object).into_iter().flatten() {
        let Some(list) = project.get("mcpServers").and_then(Value::as_object) else { continue };
        known = true;
        entries.extend(list.iter().map(|(name, server)| entry(name, folder, server, environment)));
    }
    if !known {
        let message = "it has no `mcpServers` (Claude Code, Claude Desktop, Cursor) and no `servers` (VS Code)";
        return Err(Unreadable(message.to_owned()));
    }
    Ok(entries)
}

fn entry(name: &str, place: &str, server: &Value, environment: Environment<'_>) -> Entry {
    let outcome = match server {
        Value::Object(server) => found(server, environment),
        _ => Err("its value is not a JSON object".to_owned()),
    };
    Entry { name: name.to_owned(), place: place.to_owned(), outcome }
}

fn found(server: &Map<String, Value>, environment: Environment<'_>) -> Result<Found, String> {
    let text = |key: &str| server.get(key).and_then(Value::as_str);
    let url = text("url").or_else(|| text("serverUrl")).or_else(|| text("httpUrl"));
    let kind = text("type").or_else(|| text("transport")).unwrap_or_default().to_ascii_lowercase();
    match kind.as_str() {
        "sse" => return Err(SSE.to_owned()),
        "" | "stdio" if url.is_none() => return Err(stdio(&words(server))),
        "stdio" => return Err(stdio(&words(server))),
        "" | "http" | "streamable-http" | "streamablehttp" | "streamable_http" => {}
        "ws" | "websocket" => return Err("WebSocket servers are not supported".to_owned()),
        _ => return Err("its type is not one that this version knows".to_owned()),
    }
    let url = url.ok_or("it has no `url`")?;
    let fill = |value: &str| expand(value, environment).map_err(|missing| missing.words());
    let mut headers = Vec::new();
    for (name, value) in server.get("headers").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().ok_or_else(|| format!("the value of header `{name}` is not text"))?;
        headers.push((name.clone(), SecretString::from(fill(value)?)));
    }
    let millis = server.get("timeout").and_then(Value::as_f64);
    let is = |key: &str, value: bool| server.get(key).and_then(Value::as_bool) == Some(value);
    Ok(Found {
        url: SecretString::from(fill(url)?),
        headers,
        connect_timeout: None,
        request_timeout: millis.and_then(|millis| seconds(millis / 1_000.0, BOUNDS_REQUEST)),
        disabled: is("disabled", true) || is("enabled", false),
        notes: notes(server),
    })
}

fn words(server: &Map<String, Value>) -> Vec<&str> {
    let command = server.get("command").and_then(Value::as_str);
    let arguments = server.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    command.into_iter().chain(arguments).collect()
}

fn notes(server: &Map<String, Value>) -> Vec<String> {
    let has = |key: &str| server.get(key).is_some_and(|value| !value.is_null());
    let mut notes = Vec::new();
    if has("headersHelper") {
        notes.push("`headersHelper` is not run; add the headers with `server update --header-env`".to_owned());
    }
    if has("oauth") || has("auth") {
        notes.push("signing in with OAuth is not part of this version; give it a token as a header".to_owned());
    }
    if ["disabledTools", "enabledTools", "includeTools", "excludeTools", "alwaysAllow", "autoApprove"]
        .into_iter()
        .any(has)
    {
        notes.push("its choice of tools is not taken over; a profile says which tools a session may use".to_owned());
    }
    notes
}
