//! Tools.

use gatehouse_proto::gateway::v1;
use gatehouse_types::{Hints, hints::DeclaredHints};

use super::{filter, page, timestamp};
use crate::{
    catalog::clean::{self, clean},
    error::Error,
    registry::{
        check::Fields,
        page::List,
        text,
        tool::{Tool, ToolChange},
    },
};

/// A checked `ListToolsRequest`.
#[derive(Debug)]
pub struct ListTools {
    /// Id or name of one server; `None` for all.
    pub server: Option<String>,
    /// Size of the page.
    pub size: usize,
    /// Server and name of the last tool of the page before.
    pub after: Option<[String; 2]>,
}

impl ListTools {
    /// The token of the page after this tool.
    pub fn token(&self, last: &Tool) -> String {
        let server = self.server.as_deref().unwrap_or_default();
        List(&["tools", server]).token(&[&last.server, &last.name])
    }
}

impl TryFrom<v1::ListToolsRequest> for ListTools {
    type Error = Error;

    fn try_from(request: v1::ListToolsRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let list = List(&["tools", &request.server]);
        let (size, after) = page::<2>(&mut fields, request.page_size, &request.page_token, &list);
        let server = filter(&mut fields, "server", &request.server);
        fields.finish(Self { server, size, after })
    }
}

/// A checked `UpdateToolRequest`.
#[derive(Debug)]
pub struct UpdateTool {
    /// Id or name of the server.
    pub server: String,
    /// Name of the tool at the server.
    pub tool: String,
    /// What to override.
    pub change: ToolChange,
}

impl TryFrom<v1::UpdateToolRequest> for UpdateTool {
    type Error = Error;

    fn try_from(request: v1::UpdateToolRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let set = request.set.unwrap_or_default();
        let set = DeclaredHints {
            read_only: set.read_only,
            destructive: set.destructive,
            idempotent: set.idempotent,
            open_world: set.open_world,
        };
        let update = Self {
            server: fields.take("server", text::lookup(&request.server)),
            tool: fields.take("tool", text::tool_name(&request.tool)),
            change: ToolChange::checked(&mut fields, set, &request.clear),
        };
        fields.finish(update)
    }
}

/// A tool on the wire. `exposed` is the name that engines see; empty for a tool that its server does not list now.
pub fn tool(tool: Tool, exposed: String) -> v1::Tool {
    let facts = clean::facts(&tool.definition);
    let effective = Hints::effective(facts.declared, tool.overrides);
    let problem = if exposed.is_empty() {
        "the server does not list it now".to_owned()
    } else {
        let usable = clean(&tool.definition, &exposed, effective, &clean::Bounds::NONE);
        usable.err().map(|unusable| unusable.to_string()).unwrap_or_default()
    };
    v1::Tool {
        server: tool.server,
        name: tool.name,
        exposed_name: exposed,
        title: facts.title,
        description: facts.description,
        declared: Some(hints(facts.declared)),
        overrides: Some(hints(tool.overrides)),
        effective: Some(v1::ToolHints {
            read_only: Some(effective.read_only),
            destructive: Some(effective.destructive),
            idempotent: Some(effective.idempotent),
            open_world: Some(effective.open_world),
        }),
        input_schema_json: facts.input_schema,
        output_schema_json: facts.output_schema,
        task_support: facts.task_support,
        problem,
        fingerprint: tool.fingerprint,
        changed_at: Some(timestamp(tool.changed_at)),
    }
}

const fn hints(hints: DeclaredHints) -> v1::ToolHints {
    v1::ToolHints {
        read_only: hints.read_only,
        destructive: hints.destructive,
        idempotent: hints.idempotent,
        open_world: hints.open_world,
    }
}
