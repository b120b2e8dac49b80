//! Pure: what to put into an engine's configuration so that it finds its session.
//!
//! The settings are those that engines need for long calls and for work without a terminal: a time limit per call of
//! 25 hours (Codex ends a call after 300 s otherwise, Claude Code one without response headers after 60 s), and no
//! approval in the engine. Gatehouse asks by its policies; the titles say which line keeps the engine from asking as well.

use clap::ValueEnum;
use serde_json::json;

use super::safe;

/// Longest call in seconds: a day for the longest background call, and an hour on top.
const TOOL_TIMEOUT_SEC: u64 = 90_000;
/// Name of the variable that holds the token.
const TOKEN_VARIABLE: &str = "GATEHOUSE_TOKEN";

/// Kind of engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// Claude Code and the Claude Agent SDK.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Any other MCP client.
    Other,
}

impl Engine {
    /// As on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Other => "other",
        }
    }
}

/// A thing to paste, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// What to do with it, as a sentence without a full stop.
    pub(crate) title: String,
    /// What to paste.
    pub(crate) text: String,
}

impl Step {
    fn new(title: &str, text: String) -> Self {
        Self { title: title.to_owned(), text }
    }
}

/// The steps that connect `engine` to a session. Without a token a placeholder stands in its place.
pub(crate) fn steps(engine: Engine, mcp_url: &str, token: Option<&str>) -> Vec<Step> {
    let token = token.unwrap_or("<token>");
    match engine {
        Engine::ClaudeCode => claude_code(mcp_url, token),
        Engine::Codex => codex(mcp_url, token),
        Engine::Other => other(mcp_url, token),
    }
}

fn export(token: &str) -> String {
    format!("export {TOKEN_VARIABLE}={}", shell(token))
}

fn claude_code(mcp_url: &str, token: &str) -> Vec<Step> {
    let header = shell(&format!("Authorization: Bearer {token}"));
    let add = format!("claude mcp add --transport http gatehouse {} --header {header}", shell(mcp_url));
    let file = json!({ "mcpServers": { "gatehouse": {
        "type": "http",
        "url": mcp_url,
        "headers": { "Authorization": format!("Bearer ${{{TOKEN_VARIABLE}}}") },
        "timeout": TOOL_TIMEOUT_SEC * 1_000,
    }}});
    vec![
        Step::new("Add it to Claude Code for yourself", add),
        Step::new(
            "Or put this into .mcp.json: it also raises the time limit of a call, which long calls need",
            safe::json(&format!("{file:#}")),
        ),
        Step::new("and give Claude Code the token", export(token)),
        Step::new(
            "Without a terminal, allow its tools: nothing runs otherwise; Gatehouse asks where its policies say so",
            "claude -p 'Which tools do you have?' --mcp-config .mcp.json --allowedTools mcp__gatehouse".to_owned(),
        ),
    ]
}

fn codex(mcp_url: &str, token: &str) -> Vec<Step> {
    // A JSON string is a TOML basic string too, once DEL is escaped.
    let url = safe::json(&json!(mcp_url).to_string());
    let file = format!(
        "[mcp_servers.gatehouse]\n\
         url = {url}\n\
         bearer_token_env_var = \"{TOKEN_VARIABLE}\"\n\
         required = true\n\
         tool_timeout_sec = {TOOL_TIMEOUT_SEC}\n\
         default_tools_approval_mode = \"approve\""
    );
    vec![
        Step::new(
            "Put this into ~/.codex/config.toml; without its last line Codex asks before it calls some of the tools",
            file,
        ),
        Step::new("and give Codex the token", export(token)),
    ]
}

fn other(mcp_url: &str, token: &str) -> Vec<Step> {
    let text = format!("URL:    {mcp_url}\nHeader: Authorization: Bearer {token}");
    let title = "Connect an MCP client over Streamable HTTP; raise its time limit per call (SDKs stop after 60 s)";
    vec![Step::new(title, safe::block(&text))]
}

/// `text` as one word of a POSIX shell.
pub(crate) fn shell(text: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://127.0.0.1:7300/mcp";

    fn text(engine: Engine, token: Option<&str>) -> String {
        let steps = steps(engine, URL, token).into_iter();
        steps.map(|step| format!("# {}\n{}", step.title, step.text)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn claude_code_gets_the_line_the_file_with_its_time_limit_and_the_note_on_allowed_tools() {
        insta::assert_snapshot!(text(Engine::ClaudeCode, Some("ghs_secret")), @r#"
        # Add it to Claude Code for yourself
        claude mcp add --transport http gatehouse http://127.0.0.1:7300/mcp --header 'Authorization: Bearer ghs_secret'
        # Or put this into .mcp.json: it also raises the time limit of a call, which long calls need
        {
          "mcpServers": {
            "gatehouse": {
              "type": "http",
              "url": "http://127.0.0.1:7300/mcp",
              "headers": {
                "Authorization": "Bearer ${GATEHOUSE_TOKEN}"
              },
              "timeout": 90000000
            }
          }
        }
        # and give Claude Code the token
        export GATEHOUSE_TOKEN=ghs_secret
        # Without a terminal, allow its tools: nothing runs otherwise, and with this nobody is asked
        claude -p 'Which tools do you have?' --mcp-config .mcp.json --allowedTools mcp__gatehouse
        "#);
    }

    #[test]
    fn codex_gets_every_setting_that_waiting_needs() {
        let text = text(Engine::Codex, Some("ghs_secret"));
        insta::assert_snapshot!(text, @r#"
        # Put this into ~/.codex/config.toml; without its last line Codex asks before it calls some of the tools
        [mcp_servers.gatehouse]
        url = "http://127.0.0.1:7300/mcp"
        bearer_token_env_var = "GATEHOUSE_TOKEN"
        required = true
        tool_timeout_sec = 90000
        default_tools_approval_mode = "approve"
        # and give Codex the token
        export GATEHOUSE_TOKEN=ghs_secret
        "#);
    }

    #[test]
    fn the_codex_snippet_is_toml_whatever_the_url_holds() {
        let steps = steps(Engine::Codex, "http://x/\"\\\u{7f}", None);
        let parsed: toml::Table = toml::from_str(&steps[0].text).unwrap();
        assert_eq!(parsed["mcp_servers"]["gatehouse"]["url"].as_str(), Some("http://x/\"\\\u{7f}"));
    }

    #[test]
    fn without_a_token_a_placeholder_stands_in_its_place() {
        insta::assert_snapshot!(text(Engine::Other, None), @"
        # Connect an MCP client over Streamable HTTP; raise its time limit per call (SDKs stop after 60 s)
        URL:    http://127.0.0.1:7300/mcp
        Header: Authorization: Bearer <token>
        ");
        assert_eq!(shell("it's <x>"), r"'it'\''s <x>'");
    }
}
