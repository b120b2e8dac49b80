//! `gatehouse session`: conversations of agents.

use clap::{Args, Subcommand, ValueEnum};
use gatehouse_proto::gateway::v1 as pb;
use serde_json::json;

use super::{
    Context, convert,
    failure::Failure,
    grpc::pages,
    nearest::{Noun, named},
    output::Answer,
    safe, server_view, session_grants, session_token, session_view,
    snippet::{self, Engine},
};

const CREATE_HELP: &str = "Examples:
  gatehouse session create --profile shop --engine claude-code
  gatehouse session create --profile shop --engine codex --mode read-only --external-id chat-17";

/// Subcommands of `session`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a session; prints its token, once, and the engine's configuration
    #[command(after_help = CREATE_HELP)]
    Create(Create),
    /// Print the engine's configuration again, with a placeholder for the token
    Config(Config),
    /// List the sessions, the newest first
    List(List),
    /// Show one session
    Show(One),
    /// Change a session, from the next call on
    Update(Update),
    /// End a session for good: its tokens stop working and its calls are cancelled
    Delete(One),
    /// List, make and revoke tokens
    #[command(subcommand)]
    Token(session_token::TokenCommand),
    /// Make a new token for an actor and revoke its others
    RotateToken(session_token::Actor),
    /// Begin and end runs
    #[command(subcommand)]
    Run(session_token::RunCommand),
    /// List approvals for the rest of a session, and take them back
    #[command(subcommand)]
    Grants(session_grants::GrantsCommand),
    /// Print the hash of the tools that an engine would be offered now
    ToolsVersion(One),
}

/// One session.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// Id or external id of the session
    session: String,
}

/// Permission mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Only read-only tools are offered and run.
    ReadOnly,
    /// A person is asked before a tool of policy `ask` runs.
    Ask,
    /// Tools of policy `ask` run at once; `confirm` is asked for all the same.
    Auto,
}

impl Mode {
    fn proto(self) -> pb::PermissionMode {
        match self {
            Self::ReadOnly => pb::PermissionMode::ReadOnly,
            Self::Ask => pb::PermissionMode::Ask,
            Self::Auto => pb::PermissionMode::Auto,
        }
    }
}

/// Arguments of `session create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Name or id of the profile
    #[arg(long)]
    profile: String,
    /// The engine that will use it
    #[arg(long, value_enum, default_value_t = Engine::Other)]
    engine: Engine,
    /// What calls may do without a person
    #[arg(long, value_enum, default_value_t = Mode::Ask)]
    mode: Mode,
    /// Folder that the engine works in, relative to the configured root
    #[arg(long, default_value = "", hide_default_value = true)]
    workspace: String,
    /// Language of text shown to people, such as `en` or `zh-CN`
    #[arg(long, default_value = "", hide_default_value = true)]
    locale: String,
    /// Id of the session in your own system
    #[arg(long, default_value = "", hide_default_value = true)]
    external_id: String,
    /// The same request id again returns the same session, with a new token
    #[arg(long, default_value = "", hide_default_value = true)]
    request_id: String,
}

/// Arguments of `session config`.
#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Id or external id of the session
    session: String,
    /// The engine; else that of the session
    #[arg(long, value_enum)]
    engine: Option<Engine>,
}

/// Arguments of `session list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only sessions of this profile
    #[arg(long, default_value = "", hide_default_value = true)]
    profile: String,
    /// At most this many
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

/// Arguments of `session update`.
#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Id or external id of the session
    session: String,
    /// Another profile
    #[arg(long)]
    profile: Option<String>,
    /// What calls may do without a person
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Language of text shown to people
    #[arg(long)]
    locale: Option<String>,
    /// The engine that uses it
    #[arg(long, value_enum)]
    engine: Option<Engine>,
}

/// Runs one of them.
pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer, Failure> {
    match command {
        Command::Create(create) => self::create(create, context).await,
        Command::Config(config) => self::config(config, context).await,
        Command::List(list) => self::list(list, context).await,
        Command::Show(one) => show(&one.session, context).await,
        Command::Update(update) => self::update(update, context).await,
        Command::Delete(one) => delete(&one.session, context).await,
        Command::Token(command) => session_token::tokens(command, context).await,
        Command::RotateToken(actor) => session_token::rotate(actor, context).await,
        Command::Grants(command) => session_grants::run(command, context).await,
        Command::Run(command) => session_token::runs(command, context).await,
        Command::ToolsVersion(one) => tools_version(&one.session, context).await,
    }
}

async fn create(create: Create, context: &Context) -> Result<Answer, Failure> {
    let engine = create.engine;
    let profile = create.profile.clone();
    let asks = create.mode == Mode::Ask;
    let request = pb::CreateSessionRequest {
        request_id: create.request_id,
        profile: create.profile,
        engine: convert::engine_kind(engine).into(),
        permission_mode: create.mode.proto().into(),
        workspace: create.workspace,
        locale: create.locale,
        external_id: create.external_id,
    };
    let mut sessions = context.client.sessions();
    let answer = context.client.answer(sessions.create_session(request));
    let response = named(context, answer, &[(Noun::Profile, &profile)]).await?;
    let id = response.session.as_ref().map_or("", |session| session.id.as_str());
    let steps = snippet::steps(engine, &response.mcp_url, Some(&response.token));
    let mut document = convert::json("CreateSessionResponse", &response)?;
    document["config"] = session_view::config_json(engine, &steps);
    let text = format!(
        "Session: {}\nMCP URL: {}\nToken:   {}   (shown only now; it is stored as a hash)\n\n{}",
        safe::line(id),
        safe::line(&response.mcp_url),
        safe::line(&response.token),
        session_view::config(&steps, &context.out)
    );
    if asks {
        warn_of_ask(context);
    }
    Ok(Answer::new(text, &document))
}

/// Said to people whenever a session gets the mode `ask`, so that nobody relies on it. Scripts get their document alone.
fn warn_of_ask(context: &Context) {
    if !context.out.json {
        context.out.warn(
            "mode `ask` asks nobody yet: every tool of the profile runs at once, as with `auto`; \
             `--mode read-only` holds back every tool that is not read-only",
        );
    }
}

async fn get(session: &str, context: &Context) -> Result<pb::GetSessionResponse, Failure> {
    let mut sessions = context.client.sessions();
    let answer = context.client.answer(sessions.get_session(pb::GetSessionRequest { session: session.to_owned() }));
    named(context, answer, &[(Noun::Session, session)]).await
}

async fn config(config: Config, context: &Context) -> Result<Answer, Failure> {
    let response = get(&config.session, context).await?;
    let session = response.session.unwrap_or_default();
    let engine = config.engine.unwrap_or_else(|| convert::engine_of(&session));
    let steps = snippet::steps(engine, &response.mcp_url, None);
    let text = format!(
        "{}\nThe token was shown when it was made. A new one: gatehouse session token issue {}\n",
        session_view::config(&steps, &context.out),
        snippet::shell(&safe::line(&config.session))
    );
    let document = json!({
        "sessionId": session.id,
        "mcpUrl": response.mcp_url,
        "config": session_view::config_json(engine, &steps),
    });
    Ok(Answer::new(text, &document))
}

async fn list(list: List, context: &Context) -> Result<Answer, Failure> {
    let client = &context.client;
    let limit = (!list.all).then_some(list.limit);
    let profile = list.profile.as_str();
    let page = |page_token| async move {
        let page_size = limit.map_or(500, |limit| i32::try_from(limit.clamp(1, 500)).unwrap_or(500));
        let request = pb::ListSessionsRequest { page_size, page_token, profile: profile.to_owned() };
        let response = client.answer(client.sessions().list_sessions(request)).await?;
        Ok((response.sessions, response.next_page_token))
    };
    let used = Some((Noun::Profile, profile)).filter(|_| !profile.is_empty());
    let (mut sessions, more) = named(context, pages(limit, page), used.as_slice()).await?;
    let is_cut = !more.is_empty() || limit.is_some_and(|limit| sessions.len() > limit);
    sessions.truncate(limit.unwrap_or(usize::MAX));
    let mut text = session_view::list(&sessions, &context.out);
    if is_cut {
        text.push_str("There are more; --limit or --all shows them.\n");
    }
    let mut document = convert::json_list("sessions", "Session", &sessions)?;
    document["more"] = is_cut.into();
    Ok(Answer::new(text, &document))
}

async fn show(session: &str, context: &Context) -> Result<Answer, Failure> {
    let response = get(session, context).await?;
    Ok(Answer::new(session_view::one(&response, &context.out), &convert::json("GetSessionResponse", &response)?))
}

async fn update(update: Update, context: &Context) -> Result<Answer, Failure> {
    let request = pb::UpdateSessionRequest {
        session: update.session.clone(),
        profile: update.profile.clone(),
        permission_mode: update.mode.map(|mode| mode.proto().into()),
        locale: update.locale,
        engine: update.engine.map(|engine| convert::engine_kind(engine).into()),
    };
    if request == (pb::UpdateSessionRequest { session: update.session.clone(), ..pb::UpdateSessionRequest::default() })
    {
        let next = "give --profile, --mode, --locale or --engine";
        return Err(Failure::usage("there is nothing to change").next(next));
    }
    let mut used = vec![(Noun::Session, update.session.as_str())];
    used.extend(update.profile.as_deref().map(|profile| (Noun::Profile, profile)));
    let mut sessions = context.client.sessions();
    let response = named(context, context.client.answer(sessions.update_session(request)), &used).await?;
    if update.mode == Some(Mode::Ask) {
        warn_of_ask(context);
    }
    let document = convert::json("UpdateSessionResponse", &response)?;
    let shown = pb::GetSessionResponse { session: response.session, ..pb::GetSessionResponse::default() };
    Ok(Answer::new(session_view::one(&shown, &context.out), &document))
}

async fn delete(session: &str, context: &Context) -> Result<Answer, Failure> {
    let mut sessions = context.client.sessions();
    let answer =
        context.client.answer(sessions.delete_session(pb::DeleteSessionRequest { session: session.to_owned() }));
    named(context, answer, &[(Noun::Session, session)]).await?;
    Ok(Answer::new(format!("Ended session {}.\n", safe::line(session)), &json!({ "deleted": true })))
}

async fn tools_version(session: &str, context: &Context) -> Result<Answer, Failure> {
    let client = context.client.slow();
    let mut sessions = client.sessions();
    let answer = client.answer(sessions.get_tools_version(pb::GetToolsVersionRequest { session: session.to_owned() }));
    let response = named(context, answer, &[(Noun::Session, session)]).await?;
    let tools = server_view::count(i64::from(response.tool_count), "tool");
    let text = format!("{}  ({tools})\n", safe::line(&response.version));
    Ok(Answer::new(text, &convert::json("GetToolsVersionResponse", &response)?))
}
