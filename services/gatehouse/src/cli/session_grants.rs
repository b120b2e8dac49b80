//! Approvals for the rest of a session.

use clap::Subcommand;
use gatehouse_proto::gateway::v1 as pb;

use super::{
    Context, convert,
    failure::Failure,
    nearest::{Noun, named},
    output::Answer,
    server_view::{count, time},
    table::{Cell, Style, Table},
};

/// Subcommands of `session grants`.
#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// List the tools that a person approved for the rest of a session
    List {
        /// Id or external id of the session
        session: String,
    },
    /// Take one approval back, or all: the next call asks again
    Revoke {
        /// Id or external id of the session
        session: String,
        /// Id of one approval, as in the list
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        grant: Option<String>,
        /// All of the session
        #[arg(long)]
        all: bool,
    },
}

/// Runs one of them.
pub(crate) async fn run(command: GrantsCommand, context: &Context) -> Result<Answer, Failure> {
    let mut sessions = context.client.sessions();
    match command {
        GrantsCommand::List { session } => {
            let request = pb::ListGrantsRequest { session: session.clone() };
            let answer = context.client.answer(sessions.list_grants(request));
            let response = named(context, answer, &[(Noun::Session, &session)]).await?;
            let mut table = Table::new(&["SERVER", "TOOL", "BY", "WHEN", "ID"]);
            for grant in &response.grants {
                table.row([
                    grant.server.as_str().into(),
                    grant.tool.as_str().into(),
                    grant.granted_by.as_str().into(),
                    time(grant.granted_at.as_ref(), &context.out).into(),
                    Cell::new(&grant.id, Style::Dim),
                ]);
            }
            let text = if response.grants.is_empty() {
                "No approvals for the rest of this session.\n".to_owned()
            } else {
                table.render(context.out.colour)
            };
            Ok(Answer::new(text, &convert::json("ListGrantsResponse", &response)?))
        }
        GrantsCommand::Revoke { session, grant, .. } => {
            let request = pb::RevokeGrantsRequest { session: session.clone(), grant_id: grant.unwrap_or_default() };
            let answer = context.client.answer(sessions.revoke_grants(request));
            let response = named(context, answer, &[(Noun::Session, &session)]).await?;
            let text = format!("Took back {}.\n", count(i64::from(response.revoked), "approval"));
            Ok(Answer::new(text, &convert::json("RevokeGrantsResponse", &response)?))
        }
    }
}
