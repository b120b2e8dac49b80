//! A fast MCP server to put behind a gateway under test.
//!
//! Twenty tools: four that the load generator checks (`echo`, `structured`, `big`,
//! `sleep`) and sixteen that make tools/list as long as a real server's. The tool
//! list is built once and the handlers do next to nothing, so that what is measured
//! is the gateway.
use clap::{Parser, ValueEnum};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::*,
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use std::{borrow::Cow, net::SocketAddr, sync::Arc, time::Duration};

#[global_allocator]
static ALLOC: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Transport {
    /// Streamable HTTP, no sessions, one application/json answer per request
    Json,
    /// Streamable HTTP with Mcp-Session-Id; answers are event streams (rmcp's default)
    Session,
    /// Newline-delimited JSON-RPC on standard input and output
    Stdio,
}

#[derive(Parser)]
struct Args {
    #[arg(long, value_enum, default_value = "json")]
    transport: Transport,
    #[arg(long, default_value = "127.0.0.1:7001")]
    listen: SocketAddr,
    /// Worker threads of the async runtime
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// Stands in for the domain tools of a real server: (name, what it does, string arguments).
const EXTRA: [(&str, &str, &[&str]); 16] = [
    (
        "search_issues",
        "Search issues and pull requests across repositories with a query string, newest first.",
        &["query", "owner", "repo", "state", "sort"],
    ),
    (
        "get_issue",
        "Return one issue with its body, labels, assignees and the most recent comments.",
        &["owner", "repo", "number"],
    ),
    (
        "create_issue",
        "Open a new issue in a repository. The caller must have write access to it.",
        &["owner", "repo", "title", "body", "labels"],
    ),
    ("comment_issue", "Add a comment to an existing issue or pull request.", &["owner", "repo", "number", "body"]),
    (
        "list_branches",
        "List the branches of a repository with the commit each of them points to.",
        &["owner", "repo", "page"],
    ),
    (
        "get_file",
        "Read a file or a folder listing from a repository at a given reference.",
        &["owner", "repo", "path", "ref"],
    ),
    (
        "put_file",
        "Create or update one file in a repository in a single commit.",
        &["owner", "repo", "path", "content", "message", "branch"],
    ),
    (
        "search_code",
        "Search source code by text, path or language, returning excerpts around each match.",
        &["query", "language", "path", "repo"],
    ),
    (
        "query_database",
        "Run one read-only SQL statement and return the rows as JSON, at most a thousand of them.",
        &["database", "sql", "timeout"],
    ),
    (
        "describe_table",
        "Describe a table: its columns with their types, its keys, its indexes and a row estimate.",
        &["database", "schema", "table"],
    ),
    (
        "send_message",
        "Post a message to a channel or a thread, optionally mentioning people.",
        &["channel", "thread", "text"],
    ),
    (
        "read_channel",
        "Read the latest messages of a channel, oldest first, with their reactions.",
        &["channel", "since", "limit"],
    ),
    (
        "list_events",
        "List calendar events between two points in time, expanding the recurring ones.",
        &["calendar", "from", "to", "timezone"],
    ),
    (
        "create_event",
        "Create a calendar event and invite people to it by address.",
        &["calendar", "title", "start", "end", "attendees"],
    ),
    (
        "fetch_page",
        "Fetch a web page and return its readable text with the links it holds.",
        &["url", "format", "max_length"],
    ),
    (
        "run_query",
        "Evaluate a metrics query over a range of time and return the series it yields.",
        &["expression", "start", "end", "step"],
    ),
];

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(map) => Arc::new(map),
        _ => unreachable!("schemas are written as objects"),
    }
}

fn all_tools() -> Vec<Tool> {
    let tool = |name, about, schema| Tool::new(name, about, object(schema));
    let mut tools = vec![
        tool(
            "echo",
            "Return the message unchanged.",
            json!({"type": "object", "properties": {"message": {"type": "string", "description": "Text to return"}}, "required": ["message"]}),
        ),
        tool(
            "structured",
            "Return a small record about a number, as structured content.",
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
        ),
        tool(
            "big",
            "Return a text of the given size in KiB that starts with the tag.",
            json!({"type": "object", "properties": {"kb": {"type": "integer", "minimum": 1, "maximum": 4096}, "tag": {"type": "string"}}, "required": ["kb"]}),
        ),
        tool(
            "sleep",
            "Wait for the given number of milliseconds, then answer.",
            json!({"type": "object", "properties": {"ms": {"type": "integer", "minimum": 0, "maximum": 60000}}, "required": ["ms"]}),
        ),
    ];
    tools[1].output_schema = Some(object(json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"}, "square": {"type": "integer"}, "label": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["n", "square", "label", "tags"]
    })));
    for (name, about, fields) in EXTRA {
        let properties: serde_json::Map<String, Value> = fields
            .iter()
            .map(|field| {
                (
                    field.to_string(),
                    json!({"type": "string", "description": format!("The {field} that the call is about, as text")}),
                )
            })
            .collect();
        tools.push(tool(name, about, json!({"type": "object", "properties": properties, "required": [fields[0]]})));
    }
    tools
}

#[derive(Clone)]
struct Bench {
    tools: Arc<Vec<Tool>>,
    filler: Arc<str>,
}

impl Bench {
    fn new() -> Self {
        Self { tools: Arc::new(all_tools()), filler: "abcdefghijklmno\n".repeat(4096 * 64).into() }
    }
}

impl ServerHandler for Bench {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = call.arguments.unwrap_or_default();
        let number = |key: &str| arguments.get(key).and_then(Value::as_u64);
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        let answer = match &*call.name {
            "echo" => text("message").to_owned(),
            "structured" => {
                let n = number("n").unwrap_or(0);
                let record = json!({"n": n, "square": n.wrapping_mul(n), "label": format!("number {n}"), "tags": ["bench", "structured"]});
                return Ok(CallToolResult::structured(record).into());
            }
            "big" => {
                let size = number("kb").unwrap_or(100).min(4096) as usize * 1024;
                let mut whole = String::with_capacity(size);
                whole.push_str(text("tag"));
                whole.push(':');
                whole.push_str(&self.filler[..size.saturating_sub(whole.len())]);
                whole
            }
            "sleep" => {
                tokio::time::sleep(Duration::from_millis(number("ms").unwrap_or(0).min(60_000))).await;
                "slept".to_owned()
            }
            other if self.tools.iter().any(|tool| tool.name == other) => format!("{other}: ok"),
            other => return Err(ErrorData::invalid_params(Cow::from(format!("unknown tool {other}")), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(answer)]).into())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(args.threads).enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: Args) -> Result<(), Box<dyn std::error::Error>> {
    let bench = Bench::new();
    if args.transport == Transport::Stdio {
        bench.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let sessions = args.transport == Transport::Session;
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(sessions).with_json_response(!sessions);
    let service =
        StreamableHttpService::new(move || Ok(bench.clone()), Arc::new(LocalSessionManager::default()), config);
    let listener = tokio::net::TcpListener::bind(args.listen).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
