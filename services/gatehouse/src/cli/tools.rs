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
    output::{Answer, Out},
    safe,
    table::{Cell, Fields, Style, Table},
};

/// Longest description in a list, in characters.
const DESCRIPTION_CHARS: usize = 60;

/// Subcommands of `tools`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tools of the registered servers, or what an engine of a session is offered
    #[command(
        after_help = "Examples:\n  gatehouse tools list orders\n  gatehouse tools list --session SESSION --schema"
    )]
    List(List),
    /// Override the hints of a tool
    #[command(after_help = "Example:\n  gatehouse tools set orders get_order --read-only true --destructive unset")]
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
        tools.iter().map(|tool| with_schema(tool, &context.out)).collect::<Vec<_>>().join("\n")
    } else {
        table(&tools, &context.out)
    };
    Ok(Answer::new(text, &document))
}

fn table(tools: &[pb::Tool], out: &Out) -> String {
    let mut table = Table::new(&["TOOL", "HINTS", "DESCRIPTION"]);
    for tool in tools {
        let name = format!("{} {}", tool.server, tool.name);
        let note = if tool.problem.is_empty() {
            beginning(&tool.description).into()
        } else {
            Cell::new(&format!("not offered: {}", tool.problem), Style::Bad)
        };
        table.row([name.into(), hints(tool).into(), note]);
    }
    table.render(out.colour)
}

/// The hints that count; `*` marks those that an admin set.
fn hints(tool: &pb::Tool) -> String {
    let effective = tool.effective.unwrap_or_default();
    let overrides = tool.overrides.unwrap_or_default();
    let word = |word: &str, no: &str, effective: Option<bool>, set: Option<bool>| {
        let mark = if set.is_some() { "*" } else { "" };
        match (effective.unwrap_or(false), set) {
            (true, _) => Some(format!("{word}{mark}")),
            (false, Some(_)) => Some(format!("{no}{mark}")),
            (false, None) => None,
        }
    };
    let words = [
        word("read-only", "not-read-only", effective.read_only, overrides.read_only),
        word("destructive", "not-destructive", effective.destructive, overrides.destructive),
        word("idempotent", "not-idempotent", effective.idempotent, overrides.idempotent),
        word("open-world", "closed-world", effective.open_world, overrides.open_world),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn beginning(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= DESCRIPTION_CHARS {
        return line;
    }
    format!("{}…", line.chars().take(DESCRIPTION_CHARS - 1).collect::<String>().trim_end())
}

fn with_schema(tool: &pb::Tool, out: &Out) -> String {
    Fields::default()
        .with("Tool", tool.name.as_str())
        .with("Server", tool.server.as_str())
        .with("Engines see", tool.exposed_name.as_str())
        .with("Title", tool.title.as_str())
        .with("Description", tool.description.as_str())
        .with("Hints", hints(tool))
        .with("Tasks", tool.task_support.as_str())
        .with("Not offered", tool.problem.as_str())
        .with("Input", tool.input_schema_json.as_str())
        .with("Output", tool.output_schema_json.as_str())
        .render("", out.colour)
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
        let last = if schema { tool.definition_json.clone() } else { beginning(&description(&tool.definition_json)) };
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
    if hints.iter().all(|(_, hint)| hint.is_none()) {
        let next = "give --read-only, --destructive or --idempotent";
        return Err(Failure::usage("there is nothing to change").next(next));
    }
    let cleared = hints.iter().filter(|(_, hint)| *hint == Some(Hint::Unset));
    let request = pb::UpdateToolRequest {
        server: set.server.clone(),
        tool: set.tool.clone(),
        set: Some(pb::ToolHints {
            read_only: set.read_only.and_then(Hint::value),
            destructive: set.destructive.and_then(Hint::value),
            idempotent: set.idempotent.and_then(Hint::value),
            open_world: None,
        }),
        clear: cleared.map(|(name, _)| (*name).to_owned()).collect(),
    };
    let mut tools = context.client.tools();
    let answer = context.client.answer(tools.update_tool(request));
    let used = [(Noun::Server, set.server.as_str()), (Noun::Tool(&set.server), set.tool.as_str())];
    let response = named(context, answer, &used).await?;
    let text = response.tool.as_ref().map(|tool| table(std::slice::from_ref(tool), &context.out)).unwrap_or_default();
    Ok(Answer::new(text, &convert::json("UpdateToolResponse", &response)?))
}
