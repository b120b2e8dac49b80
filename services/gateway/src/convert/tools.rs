//! Tools.

use gatehouse_proto::gateway::v1;
use gatehouse_types::{Hints, Policy, hints::DeclaredHints};

use super::{filter, page, timestamp};
use crate::{
    catalog::clean::{self, clean},
    error::Error,
    registry::{
        check::Fields,
        page::List,
        text,
        tool::{HintSource, Overrides, Tool, ToolChange},
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
        let hints = DeclaredHints {
            read_only: set.read_only,
            destructive: set.destructive,
            idempotent: set.idempotent,
            open_world: set.open_world,
        };
        let set = Overrides { hints, policy: fields.take("policy", policy(request.policy)) };
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
    let overrides = tool.overrides;
    let effective = Hints::effective(facts.declared, overrides.hints);
    let default_policy = Policy::default_for(effective);
    let problem = if exposed.is_empty() {
        "the server does not list it now".to_owned()
    } else {
        let usable = clean(&tool.definition, &exposed, effective, usize::MAX);
        usable.err().map(|unusable| unusable.to_string()).unwrap_or_default()
    };
    v1::Tool {
        server: tool.server,
        name: tool.name,
        exposed_name: exposed,
        title: facts.title,
        description: facts.description,
        declared: Some(hints(facts.declared)),
        overrides: Some(hints(overrides.hints)),
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
        policy: overrides.policy.map_or(v1::Policy::Unspecified, on_wire).into(),
        default_policy: on_wire(default_policy).into(),
        effective_policy: on_wire(overrides.policy.unwrap_or(default_policy)).into(),
        sources: Some(sources(facts.declared, overrides.hints)),
    }
}

fn policy(number: i32) -> Result<Option<Policy>, String> {
    match v1::Policy::try_from(number) {
        Ok(v1::Policy::Unspecified) => Ok(None),
        Ok(v1::Policy::Allow) => Ok(Some(Policy::Allow)),
        Ok(v1::Policy::Ask) => Ok(Some(Policy::Ask)),
        Ok(v1::Policy::Confirm) => Ok(Some(Policy::Confirm)),
        Ok(v1::Policy::Deny) => Ok(Some(Policy::Deny)),
        Err(_) => Err("takes `POLICY_ALLOW`, `POLICY_ASK`, `POLICY_CONFIRM` or `POLICY_DENY`".to_owned()),
    }
}

const fn on_wire(policy: Policy) -> v1::Policy {
    match policy {
        Policy::Allow => v1::Policy::Allow,
        Policy::Ask => v1::Policy::Ask,
        Policy::Confirm => v1::Policy::Confirm,
        Policy::Deny => v1::Policy::Deny,
    }
}

fn sources(declared: DeclaredHints, set: DeclaredHints) -> v1::HintSources {
    let source = |declared, set| match HintSource::of(declared, set) {
        HintSource::Default => v1::HintSource::Default.into(),
        HintSource::Server => v1::HintSource::Server.into(),
        HintSource::Admin => v1::HintSource::Admin.into(),
    };
    v1::HintSources {
        read_only: source(declared.read_only, set.read_only),
        destructive: source(declared.destructive, set.destructive),
        idempotent: source(declared.idempotent, set.idempotent),
        open_world: source(declared.open_world, set.open_world),
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
