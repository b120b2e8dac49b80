//! Pure. What the upstream side tells the registry: reports of connection tests, offered tools, events of a call.

use std::time::Duration;

use gatehouse_types::{CallId, ServerId};

use super::{header::Headers, stdio::Stdio};

/// What a connection test goes to.
#[derive(Debug, Clone)]
pub enum TestTarget {
    /// A registered server, as it is registered.
    Registered(ServerId),
    /// A URL that is not registered.
    Url {
        /// The MCP endpoint; checked.
        url: String,
        /// Headers to send; checked.
        headers: Headers,
    },
    /// A program that is not registered.
    Program {
        /// The program; checked.
        stdio: Stdio,
        /// Its environment; checked.
        env: Headers,
    },
}

/// What a connection test found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestReport {
    /// The steps in the order they were taken; the first that failed is the last.
    pub steps: Vec<TestStep>,
    /// Negotiated MCP revision.
    pub protocol_version: String,
    /// `serverInfo.name`.
    pub server_name: String,
    /// `serverInfo.version`.
    pub server_version: String,
    /// Capabilities: the JSON text as it was sent.
    pub capabilities: String,
    /// Number of tools; `None` when the server declares none.
    pub tools: Option<u32>,
    /// Number of resources; `None` when the server declares none.
    pub resources: Option<u32>,
    /// Number of prompts; `None` when the server declares none.
    pub prompts: Option<u32>,
    /// TLS version and cipher suite; empty for plain http.
    pub tls: String,
}

impl TestReport {
    /// Whether every step worked.
    pub fn ok(&self) -> bool {
        !self.steps.is_empty() && self.steps.iter().all(|step| step.failure.is_none())
    }
}

/// One step of a connection test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestStep {
    /// `address`, `connect`, `tls`, `process`, `initialize`, `initialized`, `tools`, `resources` or `prompts`.
    pub name: &'static str,
    /// How long it took.
    pub took: Duration,
    /// What was found, or what is wrong and what to do about it.
    pub message: String,
    /// Reason of a failure as in the docs on errors; `None` when the step worked.
    pub failure: Option<&'static str>,
}

/// The tools that an engine of a session is offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// The tools, in the order in which engines get them.
    pub tools: Vec<OfferedTool>,
    /// Servers of the profile that offer nothing now, and why.
    pub unavailable: Vec<(String, String)>,
}

/// A tool as engines get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// Name to call it by.
    pub name: String,
    /// Name of its server.
    pub server: String,
    /// The definition as engines get it: a JSON object.
    pub definition: String,
}

/// What a session would be offered, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolsVersion {
    /// Hash of names, definitions and order, in hexadecimal.
    pub version: String,
    /// How many tools.
    pub tool_count: u32,
}

/// How engines see a tool of the cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exposed {
    /// The name that engines see.
    pub name: String,
    /// Why engines are not offered it; empty when they are.
    pub problem: String,
}

/// A call that an API caller makes on behalf of a session. Checked, except that session and tool exist.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// Id or external id of the session.
    pub session: String,
    /// The actor; empty is the default one.
    pub actor: String,
    /// Name of the tool as offered.
    pub tool: String,
    /// Arguments: the text of a JSON object.
    pub arguments: String,
}

/// What happens during a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// The server reported progress.
    Progress {
        /// How far; grows.
        progress: f64,
        /// How far in all, when known.
        total: Option<f64>,
        /// For people.
        message: String,
    },
    /// The result; the last event.
    Result {
        /// Id of the call in the audit.
        call_id: CallId,
        /// Content blocks: a JSON array.
        content: String,
        /// Whether the tool reported an error, or the call failed.
        is_error: bool,
    },
}
