//! `gatehouse tools`: what servers offer, and what an admin says of it.

use std::fmt::Write as _;

use clap::{Args, Subcommand, ValueEnum};
use gatehouse_proto::gateway::v1 as pb;
use serde_json::Value;

use super::{
    Context, convert,
    failure::Failure,
    grpc::pages,
    nearest::{Noun, named},
    output::Answer,
    safe,
    table::Table,
    tools_view,
};

const SET_HELP: &str = "Examples:
  gatehouse tools set orders get_order --read-only true --destructive unset
  gatehouse tools set orders cancel_order --policy confirm

allow    calls run at once
ask      a person is asked, unless the session's mode is auto
confirm  a person is asked each time, whatever the mode
deny     the tool is not offered
unset    what follows from the hints: destructive confirm, read-only allow, else ask";

/// Subcommands of `tools`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tools of the registered servers, or what an engine of a session is offered
    #[command(
        after_help = "Examples:\n  gatehouse tools list orders\n  gatehouse tools list --session SESSION --schema"
    )]
    List(List),
    /// Override the hints of a tool, choose its policy
    #[command(after_help = SET_HELP)]
    Set(Set),
}

/// Arguments of `tools list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Name or id of one server
    server: Option<String>,
    /// Show what an engine of this session is offered: its id or external id
    #[arg(long)]
    session: Option<String>,
    /// Show the schemas too
    #[arg(long)]
    schema: bool,
}

/// Arguments of `tools set`.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Name or id of the server
    server: String,
    /// Name of the tool at the server
    tool: String,
    /// Whether it changes nothing
    #[arg(long, value_enum, value_name = "true|false|unset", hide_possible_values = true)]
    read_only: Option<Hint>,
    /// Whether it destroys something
    #[arg(long, value_enum, value_name = "true|false|unset", hide_possible_values = true)]
    destructive: Option<Hint>,
    /// Whether doing it twice is the same as once
    #[arg(long, value_enum, value_name = "true|false|unset", hide_possible_values = true)]
    idempotent: Option<Hint>,
    /// Who must say yes to its calls
    #[arg(long, value_enum, value_name = "POLICY")]
    policy: Option<Policy>,
}

/// What becomes of a tool's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// They run at once.
    Allow,
    /// A person is asked, unless the session's mode is auto.
    Ask,
    /// A person is asked each time, whatever the mode.
    Confirm,
    /// The tool is not offered.
    Deny,
    /// No choice: what follows from the hints.
    Unset,
}

impl Policy {
    const fn on_wire(self) -> pb::Policy {
        match self {
            Self::Allow => pb::Policy::Allow,
            Self::Ask => pb::Policy::Ask,
            Self::Confirm => pb::Policy::Confirm,
            Self::Deny => pb::Policy::Deny,
            Self::Unset => pb::Policy::Unspecified,
        }
    }
}

/// What an override says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Hint {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// No override: what the server declared.
    Unset,
}

impl Hint {
    fn value(self) -> Option<bool> {
        match self {
            Self::True => Some(true),
            Self::False => Some(false),
            Self::Unset => None,
        }
    }
}

/// Runs one of them.
pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer, Failure> {
    match command {
        Command::List(List { server, session: Some(session), schema }) => {
            offered(&session, server.as_deref(), schema, context).await
        }
        Command::List(List { server, session: None, schema }) => list(server.as_deref(), schema, context).await,
        Command::Set(set) => self::set(set, context).await,
    }
}

async fn list(server: Option<&str>, schema: bool, context: &Context) -> Result<Answer, Failure> {
    let client = &context.client;
    let wanted = server.unwrap_or_default();
    let page = |page_token| async move {
        let request = pb::ListToolsRequest { server: wanted.to_owned(), page_size: 500, page_token };
        let response = client.answer(client.tools().list_tools(request)).await?;
        Ok((response.tools, response.next_page_token))
    };
    let used = server.map(|server| (Noun::Server, server));
    let (tools, _) = named(context, pages(None, page), used.as_slice()).await?;
    let document = convert::json_list("tools", "Tool", &tools)?;
    let text = if tools.is_empty() {
        "No tools. `gatehouse server list` shows whether the servers were listed.\n".to_owned()
    } else if schema {
        tools.iter().map(|tool| tools_view::whole(tool, &context.out)).collect::<Vec<_>>().join("\n")
    } else {
        tools_view::table(&tools, &context.out)
    };
    Ok(Answer::new(text, &document))
}

async fn offered(session: &str, server: Option<&str>, schema: bool, context: &Context) -> Result<Answer, Failure> {
    let client = context.client.slow();
    let mut calls = client.calls();
    let answer = client.answer(calls.list_offered_tools(pb::ListOfferedToolsRequest { session: session.to_owned() }));
    let mut response = named(context, answer, &[(Noun::Session, session)]).await?;
    if let Some(server) = server {
        response.tools.retain(|tool| tool.server == server);
        response.unavailable.retain(|unavailable| unavailable.server == server);
    }
    let mut table = Table::new(&["TOOL", "SERVER", if schema { "DEFINITION" } else { "DESCRIPTION" }]);
    for tool in &response.tools {
        let last = if schema {
            tool.definition_json.clone()
        } else {
            tools_view::beginning(&description(&tool.definition_json))
        };
        table.row([tool.name.as_str().into(), tool.server.as_str().into(), last.into()]);
    }
    let mut text = table.render(context.out.colour);
    if response.tools.is_empty() {
        "No tools are offered.\n".clone_into(&mut text);
    }
    for unavailable in &response.unavailable {
        let line = format!("{} offers nothing now: {}", unavailable.server, unavailable.message);
        // Writing to a String does not fail.
        let _ = writeln!(text, "{}", safe::line(&line));
    }
    Ok(Answer::new(text, &convert::json("ListOfferedToolsResponse", &response)?))
}

fn description(definition: &str) -> String {
    let definition: Value = serde_json::from_str(definition).unwrap_or_default();
    definition["description"].as_str().unwrap_or_default().to_owned()
}

async fn set(set: Set, context: &Context) -> Result<Answer, Failure> {
    let hints = [("read_only", set.read_only), ("destructive", set.destructive), ("idempotent", set.idempotent)];
    if hints.iter().all(|(_, hint)| hint.is_none()) && set.policy.is_none() {
        let next = "give --policy, --read-only, --destructive or --idempotent";
        return Err(Failure::usage("there is nothing to change").next(next));
    }
    let cleared = hints.iter().filter(|(_, hint)| *hint == Some(Hint::Unset)).map(|(name, _)| *name);
    let policy = (set.policy == Some(Policy::Unset)).then_some("policy");
    let request = pb::UpdateToolRequest {
        server: set.server.clone(),
        tool: set.tool.clone(),
        set: Some(pb::ToolHints {
            read_only: set.read_only.and_then(Hint::value),
            destructive: set.destructive.and_then(Hint::value),
            idempotent: set.idempotent.and_then(Hint::value),
            open_world: None,
        }),
        clear: cleared.chain(policy).map(str::to_owned).collect(),
        policy: set.policy.map_or(pb::Policy::Unspecified, Policy::on_wire).into(),
    };
    let mut tools = context.client.tools();
    let answer = context.client.answer(tools.update_tool(request));
    let used = [(Noun::Server, set.server.as_str()), (Noun::Tool(&set.server), set.tool.as_str())];
    let response = named(context, answer, &used).await?;
    let text = response
        .tool
        .as_ref()
        .map(|tool| tools_view::table(std::slice::from_ref(tool), &context.out))
        .unwrap_or_default();
    Ok(Answer::new(text, &convert::json("UpdateToolResponse", &response)?))
}
