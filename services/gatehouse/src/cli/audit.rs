//! `gatehouse audit`: the record of calls.

use clap::{Args, Subcommand, ValueEnum};
use gatehouse_proto::gateway::v1::{self as pb, CallOutcome};

use super::{
    Context, convert,
    failure::{Code, Failure},
    grpc::pages,
    nearest::{Noun, named},
    output::{Answer, Out},
    server_view::time,
    session_view::actor,
    table::{Cell, Fields, Style, Table},
    when::{self, Moment},
};

/// Subcommands of `audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List calls, the newest first
    #[command(after_help = "Examples:\n  gatehouse audit list --since 1h --outcome tool-error\n  \
                            gatehouse audit list --session SESSION --server orders --all --json")]
    List(List),
    /// Show one call with its arguments and result
    Show {
        /// Id of the call
        call: String,
    },
}

/// Arguments of `audit list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Id or external id of a session
    #[arg(long, default_value = "", hide_default_value = true)]
    session: String,
    /// Name of a server
    #[arg(long, default_value = "", hide_default_value = true)]
    server: String,
    /// Name of a tool at its server
    #[arg(long, default_value = "", hide_default_value = true)]
    tool: String,
    /// How it ended
    #[arg(long, value_enum)]
    outcome: Option<Outcome>,
    /// Not before: `1h` ago, or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    since: Option<Moment>,
    /// Before: `1h` ago, or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    until: Option<Moment>,
    /// At most this many
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Outcome {
    /// Still running.
    Running,
    /// The tool answered.
    Ok,
    /// The tool answered with an error, or the server refused the call.
    ToolError,
    /// Refused before it went out.
    Denied,
    /// Took too long.
    TimedOut,
    /// Cancelled.
    Cancelled,
    /// The gateway died while it ran.
    Interrupted,
    /// It went out, and the answer never came.
    Unknown,
    /// It became a background call.
    Background,
    /// It could not be sent.
    NotSent,
}

impl Outcome {
    fn proto(self) -> CallOutcome {
        match self {
            Self::Running => CallOutcome::Running,
            Self::Ok => CallOutcome::Ok,
            Self::ToolError => CallOutcome::ToolError,
            Self::Denied => CallOutcome::Denied,
            Self::TimedOut => CallOutcome::TimedOut,
            Self::Cancelled => CallOutcome::Cancelled,
            Self::Interrupted => CallOutcome::Interrupted,
            Self::Unknown => CallOutcome::Unknown,
            Self::Background => CallOutcome::Background,
            Self::NotSent => CallOutcome::NotSent,
        }
    }
}

/// Runs one of them.
pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer, Failure> {
    match command {
        Command::List(list) => self::list(list, context).await,
        Command::Show { call } => show(&call, context).await,
    }
}

async fn list(list: List, context: &Context) -> Result<Answer, Failure> {
    let limit = (!list.all).then_some(list.limit);
    let at = |moment: Option<Moment>| moment.map(|moment| convert::timestamp(moment.resolve(context.out.now)));
    let request = pb::ListCallsRequest {
        page_size: limit.map_or(500, |limit| i32::try_from(limit.clamp(1, 500)).unwrap_or(500)),
        page_token: String::new(),
        session: list.session.clone(),
        server: list.server.clone(),
        tool: list.tool,
        outcome: list.outcome.map_or(CallOutcome::Unspecified, Outcome::proto).into(),
        from: at(list.since),
        to: at(list.until),
    };
    let (client, request) = (&context.client, &request);
    let page = |page_token| async move {
        let request = pb::ListCallsRequest { page_token, ..request.clone() };
        let response = client.answer(client.audit().list_calls(request)).await?;
        Ok((response.calls, response.next_page_token))
    };
    let mut used = vec![(Noun::Session, list.session.as_str()), (Noun::Server, list.server.as_str())];
    used.retain(|(_, name)| !name.is_empty());
    let (mut calls, more) = named(context, pages(limit, page), &used).await?;
    let is_cut = !more.is_empty() || limit.is_some_and(|limit| calls.len() > limit);
    calls.truncate(limit.unwrap_or(usize::MAX));
    let mut text = if calls.is_empty() {
        "No calls. One that has just ended appears within a second.\n".to_owned()
    } else {
        table(&calls, &context.out)
    };
    if is_cut {
        text.push_str("There are more; --limit or --all shows them.\n");
    }
    let mut document = convert::json_list("calls", "Call", &calls)?;
    document["more"] = is_cut.into();
    Ok(Answer::new(text, &document))
}

fn outcome(call: &pb::Call) -> Cell {
    let style = match call.outcome() {
        CallOutcome::Ok => Style::Good,
        CallOutcome::Unspecified | CallOutcome::Running | CallOutcome::Background => Style::Plain,
        CallOutcome::Cancelled | CallOutcome::Denied | CallOutcome::NotSent => Style::Warn,
        CallOutcome::ToolError | CallOutcome::TimedOut | CallOutcome::Interrupted | CallOutcome::Unknown => Style::Bad,
    };
    Cell::new(convert::outcome_word(call.outcome()), style)
}

fn table(calls: &[pb::Call], out: &Out) -> String {
    let mut table = Table::new(&["TIME", "SERVER", "TOOL", "OUTCOME", "TOOK", "SIZE", "CALL"]);
    for call in calls {
        let size = u64::try_from(call.result_bytes).ok().filter(|size| *size > 0);
        table.row([
            time(call.started_at.as_ref(), out).into(),
            call.server.as_str().into(),
            call.tool.as_str().into(),
            outcome(call),
            convert::span(call.duration.as_ref()).map(when::took).unwrap_or_default().into(),
            size.map(when::size).unwrap_or_default().into(),
            Cell::new(&call.id, Style::Dim),
        ]);
    }
    table.render(out.colour)
}

async fn show(call: &str, context: &Context) -> Result<Answer, Failure> {
    let answer =
        context.client.answer(context.client.audit().get_call(pb::GetCallRequest { call_id: call.to_owned() })).await;
    let response = answer.map_err(|failure| match failure.code {
        Code::NotFound => failure.next("`gatehouse audit list` shows what there is"),
        _ => failure,
    })?;
    let text = response.call.as_ref().map(|call| one(call, &context.out)).unwrap_or_default();
    Ok(Answer::new(text, &convert::json("GetCallResponse", &response)?))
}

/// `ask (mode auto)`.
fn policy(call: &pb::Call) -> String {
    if call.policy.is_empty() { String::new() } else { format!("{} (mode {})", call.policy, call.permission_mode) }
}

fn one(call: &pb::Call, out: &Out) -> String {
    let mut hints: Vec<String> = call.hints.iter().map(|(name, value)| format!("{name}={value}")).collect();
    hints.sort();
    let bytes = |bytes: i64| u64::try_from(bytes).map(when::size).unwrap_or_default();
    Fields::default()
        .with("Call", call.id.as_str())
        .with("Session", call.session_id.as_str())
        .with("Actor", actor(&call.actor))
        .with("Run", call.run_id.as_str())
        .with("Server", call.server.as_str())
        .with("Tool", call.tool.as_str())
        .with("Outcome", outcome(call))
        .with("Policy", policy(call))
        .with("Decision", call.decision.as_str())
        .with("Decided by", call.decided_by.as_str())
        .with("Decided", time(call.decided_at.as_ref(), out))
        .with("Card", call.interaction_id.as_str())
        .with("Error", call.error.as_str())
        .with("Read-only", if call.read_only { "yes" } else { "no" })
        .with("Hints", hints.join(", "))
        .with("Started", time(call.started_at.as_ref(), out))
        .with("Took", convert::span(call.duration.as_ref()).map(when::took).unwrap_or_default())
        .with("Sent again", if call.retries > 0 { call.retries.to_string() } else { String::new() })
        .with("Arguments", call.arguments_json.as_str())
        .with("Their size", bytes(call.arguments_bytes))
        .with("Their SHA-256", call.arguments_sha256.as_str())
        .with("Structured result", call.structured_result_json.as_str())
        .with("Files", call.files.join(", "))
        .with("Notes", call.notes.join("; "))
        .with("Result size", bytes(call.result_bytes))
        .with("Trace", call.trace_id.as_str())
        .render("", out.colour)
}
