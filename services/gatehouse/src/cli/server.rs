//! `gatehouse server`: the registry of upstream MCP servers.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gatehouse_proto::gateway::v1 as pb;
use serde_json::json;

use super::{
    Context, convert,
    failure::{Code, FAILED, Failure},
    grpc::pages,
    headers::Headers,
    nearest::{Noun, named},
    output::Answer,
    server_change::{self, Add, Update},
    server_import, server_view,
};

const ADD_HELP: &str = "Examples:
  gatehouse server add orders https://orders.example/mcp --header-env Authorization=ORDERS_AUTH
  gatehouse server add docs http://127.0.0.1:4100/mcp --header-file Authorization=docs.secret
  gatehouse server add files --stdio --open-write /srv/data -- npx -y @modelcontextprotocol/server-filesystem /srv/data
  gatehouse server add pay https://pay.example/mcp --mask '/card/number' --mask 'refund:/items/*/iban'

The value of Authorization has its scheme too: `Bearer …`.";

const UPDATE_HELP: &str = "Examples:
  gatehouse server update orders --url https://orders.example/v2/mcp
  gatehouse server update orders --header-env Authorization=ORDERS_AUTH --remove-header X-Old";

const TEST_HELP: &str = "Examples:
  gatehouse server test orders
  gatehouse server test --url https://new.example/mcp

The exit code is 1 when a step failed.";

const IMPORT_HELP: &str = "Reads .mcp.json and ~/.claude.json (Claude Code), claude_desktop_config.json, mcp.json of
Cursor and VS Code, and config.toml of Codex. Variables in them are filled in from the environment.

Examples:
  gatehouse server import .mcp.json --dry-run
  gatehouse server import ~/.codex/config.toml --prefix codex-

The exit code is 3 when an entry was left out and the rest is imported.";

/// Subcommands of `server`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Register a server, then test it
    #[command(after_help = ADD_HELP)]
    Add(Add),
    /// Change a server
    #[command(after_help = UPDATE_HELP)]
    Update(Update),
    /// List the servers
    List,
    /// Show one server
    Show(One),
    /// Connect to a server and report each step
    #[command(after_help = TEST_HELP)]
    Test(Test),
    /// Read a server's list of tools now
    Refresh(One),
    /// Switch a server on
    Enable(One),
    /// Switch a server off: it offers no tools and gets no calls
    Disable(One),
    /// Remove a server, its tools and its place in profiles; asks first
    Remove(Remove),
    /// Register the servers of the files that you have already
    #[command(after_help = IMPORT_HELP)]
    Import(Import),
}

/// One server.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// Name or id of the server
    server: String,
}

/// Arguments of `server test`.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Name or id of a registered server
    #[arg(required_unless_present = "url", conflicts_with = "url")]
    server: Option<String>,
    /// URL of a server that is not registered
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    headers: Headers,
}

/// Arguments of `server remove`.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Name or id of the server
    server: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Arguments of `server import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Put this in front of each name
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Change servers that exist already, instead of leaving them as they are
    #[arg(long)]
    pub(crate) update: bool,
}

/// Runs one of them.
pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer, Failure> {
    match command {
        Command::Add(add) => server_change::add(add, context).await,
        Command::Update(update) => server_change::update(update, context).await,
        Command::List => list(context).await,
        Command::Show(one) => show(&one.server, context).await,
        Command::Test(test) => self::test(test, context).await,
        Command::Refresh(one) => refresh(&one.server, context).await,
        Command::Enable(one) => server_change::switch(&one.server, true, context).await,
        Command::Disable(one) => server_change::switch(&one.server, false, context).await,
        Command::Remove(remove) => self::remove(&remove, context).await,
        Command::Import(import) => server_import::run(&import, context).await,
    }
}

/// All servers.
pub(crate) async fn all(context: &Context) -> Result<Vec<pb::Server>, Failure> {
    let client = &context.client;
    let page = |page_token| async move {
        let request = pb::ListServersRequest { page_size: 500, page_token };
        let response = client.answer(client.servers().list_servers(request)).await?;
        Ok((response.servers, response.next_page_token))
    };
    Ok(pages(None, page).await?.0)
}

async fn list(context: &Context) -> Result<Answer, Failure> {
    let servers = all(context).await?;
    let document = convert::json_list("servers", "Server", &servers)?;
    Ok(Answer::new(server_view::list(&servers, &context.out), &document))
}

async fn show(server: &str, context: &Context) -> Result<Answer, Failure> {
    let request = pb::GetServerRequest { server: server.to_owned() };
    let mut servers = context.client.servers();
    let answer = context.client.answer(servers.get_server(request));
    let response = named(context, answer, &[(Noun::Server, server)]).await?;
    let text = response.server.as_ref().map(|server| server_view::one(server, &context.out)).unwrap_or_default();
    Ok(Answer::new(text, &convert::json("GetServerResponse", &response)?))
}

async fn test(test: Test, context: &Context) -> Result<Answer, Failure> {
    let headers = test.headers.read()?;
    if test.server.is_some() && !headers.is_empty() {
        return Err(Failure::usage("headers are given with --url; a registered server is tested with its own")
            .next("change them with `gatehouse server update`"));
    }
    let server = test.server.unwrap_or_default();
    let request = pb::TestServerRequest {
        server: server.clone(),
        url: test.url.unwrap_or_default(),
        headers,
        ..pb::TestServerRequest::default()
    };
    let client = context.client.slow();
    let mut servers = client.servers();
    let answer = client.answer(servers.test_server(request));
    let report = named(context, answer, &[(Noun::Server, &server)]).await?;
    let answer =
        Answer::new(server_view::report(&report, &context.out), &convert::json("TestServerResponse", &report)?);
    Ok(if report.ok { answer } else { answer.exit(FAILED) })
}

async fn refresh(server: &str, context: &Context) -> Result<Answer, Failure> {
    let client = context.client.slow();
    let request = pb::RefreshServerRequest { server: server.to_owned() };
    let mut servers = client.servers();
    let answer = client.answer(servers.refresh_server(request));
    let response = named(context, answer, &[(Noun::Server, server)]).await.map_err(|failure| match failure.code {
        Code::FailedPrecondition => failure.next(format!("`gatehouse server test {server}` shows each step")),
        _ => failure,
    })?;
    let tools = response.server.as_ref().map_or(0, |server| server.tool_count);
    let changed = if response.changed { "they have changed" } else { "nothing has changed" };
    let text = format!("{}: {}; {changed}.\n", super::safe::line(server), server_view::count(i64::from(tools), "tool"));
    Ok(Answer::new(text, &convert::json("RefreshServerResponse", &response)?))
}

async fn remove(remove: &Remove, context: &Context) -> Result<Answer, Failure> {
    let server = &remove.server;
    let question = format!("Remove server `{server}`, its tools and its place in profiles?");
    if !remove.yes && !context.out.confirm(&question).await? {
        return Ok(Answer::new("Nothing was removed.\n".to_owned(), &json!({ "removed": false })).exit(FAILED));
    }
    let request = pb::DeleteServerRequest { server: server.clone() };
    let mut servers = context.client.servers();
    let answer = context.client.answer(servers.delete_server(request));
    named(context, answer, &[(Noun::Server, server)]).await?;
    Ok(Answer::new(format!("Removed {}.\n", super::safe::line(server)), &json!({ "removed": true })))
}
