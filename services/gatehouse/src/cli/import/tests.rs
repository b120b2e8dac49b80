use proptest::prelude::*;
use secrecy::ExposeSecret as _;

use super::*;

fn environment(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| "t0p".to_owned())
}

/// Enough of a sentence to know it by.
fn beginning(text: &str) -> &str {
    text.get(..60).unwrap_or(text)
}

/// One line an entry, with its secrets: only tests see them.
fn read(name: &str, text: &str) -> String {
    let entries = match parse(name, text, &environment) {
        Ok(entries) => entries,
        Err(unreadable) => return unreadable.0,
    };
    let line = |entry: &Entry| match &entry.outcome {
        Err(reason) => format!("{}{}: {}", entry.place, entry.name, beginning(reason)),
        Ok(found) => {
            let header = |(name, value): &(String, SecretString)| format!(" {name}={}", value.expose_secret());
            let headers: String = found.headers.iter().map(header).collect();
            let times = format!("{:?} {:?}", found.connect_timeout, found.request_timeout);
            let url = found.url.expose_secret();
            let notes: Vec<&str> = found.notes.iter().map(String::as_str).map(|note| &note[..20]).collect();
            format!("{}{}: {url}{headers} {times} off={} {notes:?}", entry.place, entry.name, found.disabled)
        }
    };
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn claude_code_files_are_read_with_variables_and_projects() {
    let text = r#"{
      "mcpServers": {
        "orders": {
          "type": "http", "url": "https://o.example/mcp", "timeout": 90000,
          "headers": { "Authorization": "Bearer ${TOKEN}" }
        },
        "plain": { "url": "${BASE:-https://p.example}/mcp", "disabled": true, "headersHelper": "x" },
        "files": { "command": "npx", "args": ["-y", "server-filesystem", "/"] },
        "old": { "type": "sse", "url": "https://s.example/sse" },
        "needs": { "type": "http", "url": "https://n.example/${MISSING}" }
      },
      "projects": {
        "/projects/shop": { "mcpServers": { "orders": { "type": "http", "url": "https://shop.example/mcp" } } },
        "/x": {}
      }
    }"#;
    insta::assert_snapshot!(read(".claude.json", text), @r#"
    orders: https://o.example/mcp Authorization=Bearer t0p None Some(90s) off=false []
    plain: https://p.example/mcp None None off=true ["`headersHelper` is n"]
    files: stdio servers (started as a process) are not imported: say w
    old: HTTP+SSE servers (the transport of 2024-11-05) are not suppo
    needs: needs the environment variable MISSING, which is not set; se
    /projects/shoporders: https://shop.example/mcp None None off=false []
    "#);
}

#[test]
fn vs_code_and_cursor_files_may_hold_comments_and_inputs() {
    let text = r#"{
      // servers of the team
      "inputs": [{ "id": "key" }],
      "servers": {
        "docs": { "type": "http", "url": "https://d.example/mcp", "headers": { "X-Key": "${env:TOKEN}" }, },
        "asks": { "type": "http", "url": "https://a.example/mcp", "headers": { "X-Key": "${input:key}" } },
        "bridge": { "command": "npx", "args": ["mcp-remote@latest", "https://b.example/mcp?key=hidden"] },
      },
    }"#;
    insta::assert_snapshot!(read("mcp.json", text), @"
    docs: https://d.example/mcp X-Key=t0p None None off=false []
    asks: needs the input `key`, which the editor asks for; use `serve
    bridge: it only bridges to https://b.example/mcp (rest hidden): regi
    ");
}

#[test]
fn codex_files_are_read_with_their_tokens_from_the_environment() {
    let text = r#"
      model = "x"
      [mcp_servers.orders]
      url = "https://o.example/mcp"
      bearer_token_env_var = "TOKEN"
      http_headers = { X-Team = "shop" }
      startup_timeout_sec = 500
      tool_timeout_sec = 90.5
      enabled_tools = ["a"]
      [mcp_servers.off]
      url = "https://f.example/mcp"
      enabled = false
      env_http_headers = { X-Key = "NOT_SET" }
      [mcp_servers.local]
      command = "docs-server"
    "#;
    insta::assert_snapshot!(read("config.toml", text), @r#"
    local: stdio servers (started as a process) are not imported: say w
    off: needs the environment variable NOT_SET, which is not set; se
    orders: https://o.example/mcp X-Team=shop Authorization=Bearer t0p Some(120s) Some(90.5s) off=false ["its choice of tools "]
    "#);
}

#[test]
fn a_file_that_cannot_be_read_says_where_without_quoting_it() {
    assert_eq!(read("a.json", "{\n \"token\": secret"), "it is not JSON (line 2, column 11)");
    assert_eq!(read("a.toml", "ok = 1\ntoken = secret"), "it is not TOML (line 2)");
    assert_eq!(read("a.json", "[]"), "it is not a JSON object");
    assert!(read("a.json", "{}").starts_with("it has no `mcpServers`"));
    assert_eq!(read("a.toml", ""), "it has no `[mcp_servers.…]`");
}

#[test]
fn secrets_of_an_entry_cannot_be_printed() {
    let text = r#"{"mcpServers":{"a":{"url":"https://u:pass@x/?k=hidden","headers":{"A":"hidden"}}}}"#;
    let entries = parse("x.json", text, &environment).unwrap();
    assert!(!format!("{entries:?}").contains("hidden"));
    assert_eq!(shown_url("https://u:pass@x.example/mcp?k=hidden#f"), "https://x.example/mcp (rest hidden)");
    assert_eq!(shown_url("https://x.example/mcp"), "https://x.example/mcp");
    assert_eq!(shown_url("hidden"), "(not a URL)");
    let bridge = stdio(&["npx", "mcp-remote@latest", "https://b.example/mcp?key=hidden", "--header", "hidden"]);
    assert!(bridge.contains("https://b.example/mcp") && !bridge.contains("key=") && !bridge.contains("--header"));
}

/// JSON of any shape, with the keys that mean something often.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let key = prop_oneof![
        Just("mcpServers".to_owned()),
        Just("projects".to_owned()),
        Just("url".to_owned()),
        Just("headers".to_owned()),
        Just("timeout".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<f64>().prop_map(serde_json::Value::from),
        any::<String>().prop_map(serde_json::Value::from),
        "(\\$\\{)?[A-Z:}-]{0,8}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(5, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(serde_json::Value::from),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_file_makes_the_reader_panic(text in any::<String>(), json in any_json()) {
        let _ = parse("x.json", &text, &environment);
        let _ = parse("x.toml", &text, &environment);
        let projects = serde_json::json!({ "p": { "mcpServers": { "s": json.clone() } } });
        let wrapped = serde_json::json!({ "mcpServers": json, "projects": projects });
        let _ = parse("x.json", &wrapped.to_string(), &environment);
        let server = format!("{{ url = {text:?}, http_headers = {{ a = {text:?} }}, enabled = 1 }}");
        let inline = format!("mcp_servers = {{ s = {server} }}");
        let _ = parse("x.toml", &inline, &environment);
        let _ = shown_url(&text);
    }
}
