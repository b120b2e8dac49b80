//! Tokens and runs of a session.

use clap::{Args, Subcommand};
use gatehouse_proto::gateway::v1 as pb;

use super::{
    Context, convert,
    failure::{Code, Failure},
    nearest::{Noun, named},
    output::Answer,
    safe,
    server_view::{count, time},
    session_view::actor,
    table::{Cell, Style, Table},
};

/// Subcommands of `session token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// List the tokens of a session, without their secrets
    List {
        /// Id or external id of the session
        session: String,
    },
    /// Make a token for an actor, beside those it has; it is shown once
    Issue(Actor),
    /// Revoke one token, or all of an actor
    Revoke {
        /// Id or external id of the session
        session: String,
        /// Id of one token, as in the list
        #[arg(required_unless_present = "actor", conflicts_with = "actor")]
        token: Option<String>,
        /// All tokens of this actor; '' is the default actor
        #[arg(long)]
        actor: Option<String>,
    },
}

/// A session and an actor in it.
#[derive(Debug, Args)]
pub(crate) struct Actor {
    /// Id or external id of the session
    session: String,
    /// The actor; else the default one
    #[arg(long, default_value = "", hide_default_value = true)]
    actor: String,
}

/// Subcommands of `session run`.
#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Begin a run: calls belong to it until it ends
    Begin {
        /// Id or external id of the session
        session: String,
        /// The actor; else the default one
        #[arg(long, default_value = "", hide_default_value = true)]
        actor: String,
        /// The same request id again returns the same run
        #[arg(long, default_value = "", hide_default_value = true)]
        request_id: String,
    },
    /// End a run
    End {
        /// Id of the run
        run: String,
    },
}

/// Runs a subcommand of `session token`.
pub(crate) async fn tokens(command: TokenCommand, context: &Context) -> Result<Answer, Failure> {
    match command {
        TokenCommand::List { session } => list(&session, context).await,
        TokenCommand::Issue(actor) => issue(actor, context).await,
        TokenCommand::Revoke { session, token, actor } => {
            let token_id = token.unwrap_or_default();
            let request =
                pb::RevokeTokenRequest { session: session.clone(), token_id, actor: actor.unwrap_or_default() };
            let mut sessions = context.client.sessions();
            let answer = context.client.answer(sessions.revoke_token(request));
            let response = named(context, answer, &[(Noun::Session, &session)]).await?;
            let text = format!("Revoked {}.\n", count(i64::from(response.revoked), "token"));
            Ok(Answer::new(text, &convert::json("RevokeTokenResponse", &response)?))
        }
    }
}

async fn list(session: &str, context: &Context) -> Result<Answer, Failure> {
    let mut sessions = context.client.sessions();
    let answer = context.client.answer(sessions.list_tokens(pb::ListTokensRequest { session: session.to_owned() }));
    let response = named(context, answer, &[(Noun::Session, session)]).await?;
    let mut table = Table::new(&["ID", "ACTOR", "BEGINS WITH", "MADE", "REVOKED"]);
    for token in &response.session_tokens {
        table.row([
            token.id.as_str().into(),
            actor(&token.actor).into(),
            token.prefix.as_str().into(),
            time(token.created_at.as_ref(), &context.out).into(),
            Cell::new(&time(token.revoked_at.as_ref(), &context.out), Style::Dim),
        ]);
    }
    Ok(Answer::new(table.render(context.out.colour), &convert::json("ListTokensResponse", &response)?))
}

async fn issue(wanted: Actor, context: &Context) -> Result<Answer, Failure> {
    let request = pb::IssueTokenRequest { session: wanted.session.clone(), actor: wanted.actor };
    let mut sessions = context.client.sessions();
    let answer = context.client.answer(sessions.issue_token(request));
    let response = named(context, answer, &[(Noun::Session, &wanted.session)]).await?;
    let document = convert::json("IssueTokenResponse", &response)?;
    Ok(Answer::new(fresh(&response.token, ""), &document))
}

/// Makes a new token in place of the old ones.
pub(crate) async fn rotate(wanted: Actor, context: &Context) -> Result<Answer, Failure> {
    let request = pb::RotateTokenRequest { session: wanted.session.clone(), actor: wanted.actor };
    let mut sessions = context.client.sessions();
    let answer = context.client.answer(sessions.rotate_token(request));
    let response = named(context, answer, &[(Noun::Session, &wanted.session)]).await?;
    let document = convert::json("RotateTokenResponse", &response)?;
    Ok(Answer::new(fresh(&response.token, "The actor's other tokens do not work any more.\n"), &document))
}

fn fresh(token: &str, more: &str) -> String {
    format!("Token: {}   (shown only now; it is stored as a hash)\n{more}", safe::line(token))
}

/// Runs a subcommand of `session run`.
pub(crate) async fn runs(command: RunCommand, context: &Context) -> Result<Answer, Failure> {
    let mut sessions = context.client.sessions();
    match command {
        RunCommand::Begin { session, actor, request_id } => {
            let request = pb::BeginRunRequest { request_id, session: session.clone(), actor };
            let answer = context.client.answer(sessions.begin_run(request));
            let response = named(context, answer, &[(Noun::Session, &session)]).await;
            let response = response.map_err(|failure| match failure.code {
                Code::FailedPrecondition => {
                    failure.next(format!("`gatehouse session show {session}` shows the open run; end it first"))
                }
                _ => failure,
            })?;
            let id = response.run.as_ref().map_or("", |run| run.id.as_str());
            let text = format!("Run: {}\n", safe::line(id));
            Ok(Answer::new(text, &convert::json("BeginRunResponse", &response)?))
        }
        RunCommand::End { run } => {
            let answer = context.client.answer(sessions.end_run(pb::EndRunRequest { run_id: run.clone() })).await;
            let response = answer.map_err(|failure| match failure.code {
                Code::NotFound => failure.next("`gatehouse session show SESSION` shows the open runs"),
                _ => failure,
            })?;
            let text = format!("Ended run {}.\n", safe::line(&run));
            Ok(Answer::new(text, &convert::json("EndRunResponse", &response)?))
        }
    }
}
