//! `gatehouse keys`: API keys for gRPC.

use clap::{Args, Subcommand, ValueEnum};
use gatehouse_proto::gateway::v1 as pb;

use super::{
    Context, convert,
    failure::{Code, Failure},
    grpc::pages,
    nearest::{Noun, named},
    output::{Answer, Out},
    safe,
    server_view::time,
    table::{Cell, Style, Table},
};

/// Subcommands of `keys`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the keys, without their secrets
    List,
    /// Make a key; it is shown once
    #[command(after_help = "Example:\n  gatehouse keys create chat-platform --scope sessions")]
    Create(Create),
    /// Revoke a key, from the next call on
    Revoke {
        /// Name or id of the key
        key: String,
    },
}

/// Arguments of `keys create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Name, for people
    name: String,
    /// What it may do
    #[arg(long, value_enum, default_value_t = Scope::Sessions)]
    scope: Scope,
}

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scope {
    /// Everything.
    Admin,
    /// Sessions, runs, calls and their audit.
    Sessions,
}

/// Runs one of them.
pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer, Failure> {
    match command {
        Command::List => list(context).await,
        Command::Create(create) => self::create(create, context).await,
        Command::Revoke { key } => revoke(&key, context).await,
    }
}

async fn list(context: &Context) -> Result<Answer, Failure> {
    let client = &context.client;
    let page = |page_token| async move {
        let request = pb::ListApiKeysRequest { page_size: 500, page_token };
        let response = client.answer(client.keys().list_api_keys(request)).await?;
        Ok((response.api_keys, response.next_page_token))
    };
    let (keys, _) = pages(None, page).await?;
    Ok(Answer::new(table(&keys, &context.out), &convert::json_list("apiKeys", "ApiKey", &keys)?))
}

fn table(keys: &[pb::ApiKey], out: &Out) -> String {
    let mut table = Table::new(&["NAME", "SCOPE", "BEGINS WITH", "MADE", "LAST USED", "REVOKED"]);
    for key in keys {
        let is_revoked = key.revoked_at.is_some();
        table.row([
            Cell::new(&key.name, if is_revoked { Style::Dim } else { Style::Plain }),
            convert::scope_word(key.scope()).into(),
            key.prefix.as_str().into(),
            time(key.created_at.as_ref(), out).into(),
            time(key.last_used_at.as_ref(), out).into(),
            Cell::new(&time(key.revoked_at.as_ref(), out), Style::Dim),
        ]);
    }
    table.render(out.colour)
}

async fn create(create: Create, context: &Context) -> Result<Answer, Failure> {
    let scope = match create.scope {
        Scope::Admin => pb::ApiKeyScope::Admin,
        Scope::Sessions => pb::ApiKeyScope::Sessions,
    };
    let request = pb::CreateApiKeyRequest { name: create.name, scope: scope.into() };
    let response = context.client.answer(context.client.keys().create_api_key(request)).await;
    let response = response.map_err(|failure| match failure.code {
        Code::AlreadyExists => failure.next("choose another name, or revoke that key first"),
        _ => failure,
    })?;
    let text = format!("Key: {}   (shown only now; it is stored as a hash)\n", safe::line(&response.secret));
    Ok(Answer::new(text, &convert::json("CreateApiKeyResponse", &response)?))
}

async fn revoke(key: &str, context: &Context) -> Result<Answer, Failure> {
    let mut keys = context.client.keys();
    let answer = context.client.answer(keys.revoke_api_key(pb::RevokeApiKeyRequest { api_key: key.to_owned() }));
    let response = named(context, answer, &[(Noun::Key, key)]).await.map_err(|failure| match failure.code {
        Code::FailedPrecondition => failure.next("make another key first: `gatehouse keys create NAME --scope admin`"),
        _ => failure,
    })?;
    let text = format!("Revoked {}.\n", safe::line(key));
    Ok(Answer::new(text, &convert::json("RevokeApiKeyResponse", &response)?))
}
