//! What is asked for on the command line, and the requests that follow from it.
use crate::check::Verify;
use crate::client::{Tags, Target};
use crate::procs::Watch;
use bytes::Bytes;
use clap::{Parser, ValueEnum};
use http::{HeaderName, HeaderValue, Uri};
use serde_json::Value;
use std::{error::Error, sync::atomic::AtomicU64};

/// The first protocol version without sessions: requests carry their own context.
const STATELESS: &str = "2026-07-28";

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Bench {
    /// tools/call
    Call,
    /// tools/list
    List,
    /// initialize, notifications/initialized, DELETE
    Sessions,
}

#[derive(Parser)]
#[command(about = "Closed-loop load generator for MCP over Streamable HTTP")]
pub struct Args {
    /// The MCP endpoint, http only, e.g. http://127.0.0.1:7001/mcp
    #[arg(long)]
    pub url: Uri,
    /// Sent as a bearer token
    #[arg(long)]
    pub token: Option<String>,
    /// A further header, NAME:VALUE; may be repeated
    #[arg(long)]
    pub header: Vec<String>,
    #[arg(long, value_enum, default_value = "call")]
    pub bench: Bench,
    /// Tool to call, by the name that the endpoint lists it under
    #[arg(long, default_value = "echo")]
    pub tool: String,
    /// Arguments as JSON; {{n}} becomes a number that is different in every call
    #[arg(long)]
    pub args: Option<String>,
    /// How answers are checked; by default told from the tool's name
    #[arg(long, value_enum)]
    pub verify: Option<Verify>,
    /// tools/list must name at least this many tools
    #[arg(long, default_value_t = 1)]
    pub min_tools: usize,
    /// Sessions opened up front and shared by the workers in turn
    #[arg(long, default_value_t = 1)]
    pub sessions: usize,
    /// Calls kept in flight
    #[arg(long, default_value_t = 1)]
    pub concurrency: usize,
    /// Start this many calls a second, spread over the workers, rather than the next call
    /// as soon as one ends. A call that had to wait for a worker is timed from when it was due.
    #[arg(long)]
    pub rate: Option<f64>,
    /// Length of the measured window
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Seconds of load before the window opens
    #[arg(long, default_value_t = 1.0)]
    pub warmup: f64,
    #[arg(long, default_value_t = 30_000)]
    pub timeout_ms: u64,
    /// 2026-07-28 sends no initialize and gives each request its own context
    #[arg(long, default_value = "2025-06-18")]
    pub protocol: String,
    /// A process tree whose CPU time and memory are reported, LABEL=PID; may be repeated
    #[arg(long)]
    pub watch: Vec<Watch>,
    /// Count processes of this name inside a watched tree apart from the rest of the tree
    #[arg(long)]
    pub split: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What every worker shares.
pub struct Plan {
    pub args: Args,
    pub target: Target,
    pub verify: Verify,
    pub call_args: String,
    pub protocol: HeaderValue,
    pub method: HeaderValue,
    pub name: Option<HeaderValue>,
    pub counter: AtomicU64,
}

impl Plan {
    pub fn stateless(&self) -> bool {
        self.args.protocol == STATELESS
    }

    pub fn tags<'a>(&'a self, session: Option<&'a HeaderValue>) -> Tags<'a> {
        let stateless = self.stateless();
        Tags {
            session,
            protocol: Some(&self.protocol),
            method: stateless.then_some(&self.method),
            name: self.name.as_ref().filter(|_| stateless),
        }
    }

    /// The body of request `id`, with the arguments that it carries.
    pub fn request(&self, id: u64) -> (Bytes, String) {
        let meta = if self.stateless() {
            format!(
                r#","_meta":{{"io.modelcontextprotocol/protocolVersion":"{STATELESS}","io.modelcontextprotocol/clientInfo":{{"name":"mcpload","version":"0.1.0"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#
            )
        } else {
            String::new()
        };
        if self.args.bench == Bench::List {
            let params = meta.strip_prefix(',').unwrap_or_default();
            return (
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{params}}}}}"#).into(),
                String::new(),
            );
        }
        let arguments = self.call_args.replace("{{n}}", &id.to_string());
        let tool = &self.args.tool;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{meta}}}}}"#
        );
        (body.into(), arguments)
    }
}

/// Checks the arguments and prepares what does not change from call to call.
pub fn plan(args: Args) -> Result<Plan, Box<dyn Error>> {
    if args.url.scheme_str() != Some("http") {
        return Err("the URL must start with http://".into());
    }
    let host = args.url.host().ok_or("the URL names no host")?;
    let port = args.url.port_u16().unwrap_or(80);
    let mut headers = Vec::new();
    if let Some(token) = &args.token {
        headers.push((http::header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}"))?));
    }
    for line in &args.header {
        let (name, value) = line.split_once(':').ok_or("write a header as NAME:VALUE")?;
        headers.push((HeaderName::from_bytes(name.trim().as_bytes())?, HeaderValue::from_str(value.trim())?));
    }
    let verify = args.verify.unwrap_or_else(|| Verify::for_tool(&args.tool));
    let call_args = args.args.clone().unwrap_or_else(|| verify.default_args().to_owned());
    serde_json::from_str::<Value>(&call_args.replace("{{n}}", "0")).map_err(|e| format!("--args is not JSON: {e}"))?;
    let (method, name) = match args.bench {
        Bench::List => ("tools/list", None),
        _ => ("tools/call", Some(HeaderValue::from_str(&args.tool)?)),
    };
    Ok(Plan {
        target: Target {
            host: format!("{host}:{port}"),
            path: args.url.path_and_query().map_or("/", |p| p.as_str()).parse()?,
            headers,
        },
        verify,
        call_args,
        protocol: HeaderValue::from_str(&args.protocol)?,
        method: HeaderValue::from_static(method),
        name,
        counter: AtomicU64::new(1),
        args,
    })
}
