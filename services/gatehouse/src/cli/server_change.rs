//! `gatehouse server add`, `update`, `enable` and `disable`.

use std::{fmt::Write as _, time::Duration};

use clap::Args;
use gatehouse_proto::gateway::v1 as pb;
use serde_json::Value;

use super::{
    Context, convert,
    failure::{Code, Failure},
    headers::Headers,
    nearest::{Noun, named},
    output::Answer,
    program::Program,
    safe, server_view, when,
};

/// Arguments of `server add`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name: 1 to 32 of a-z, 0-9, `_` and `-`; tools are called `name__tool`
    name: String,
    /// The MCP endpoint (Streamable HTTP); none for a program
    #[arg(required_unless_present = "stdio", conflicts_with = "stdio")]
    url: Option<String>,
    #[command(flatten)]
    headers: Headers,
    #[command(flatten)]
    program: Program,
    /// Words for people
    #[arg(long, default_value = "", hide_default_value = true)]
    description: String,
    #[command(flatten)]
    limits: Limits,
    /// Hide this in the audit and on cards: a JSON pointer such as `/card/number`, or `TOOL:/card/number`; `*` is any member
    #[arg(long, value_name = "RULE")]
    mask: Vec<String>,
    /// Register it switched off, without a test
    #[arg(long)]
    disabled: bool,
}

/// Arguments of `server update`.
#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Name or id of the server
    server: String,
    /// New name; the names of its tools change with it
    #[arg(long)]
    name: Option<String>,
    /// New MCP endpoint
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    headers: Headers,
    /// With a program after `--`: replaces it and all that it may use; its environment stays but for what is given here
    #[command(flatten)]
    program: Program,
    /// Variable of its environment to remove
    #[arg(long, value_name = "NAME")]
    remove_env: Vec<String>,
    /// Header to remove
    #[arg(long, value_name = "NAME")]
    remove_header: Vec<String>,
    /// Words for people
    #[arg(long)]
    description: Option<String>,
    #[command(flatten)]
    limits: Limits,
    /// Hide this too in the audit and on cards: a JSON pointer such as `/card/number`, or `TOOL:/card/number`
    #[arg(long, value_name = "RULE")]
    mask: Vec<String>,
    /// Do not hide this any more
    #[arg(long, value_name = "RULE")]
    remove_mask: Vec<String>,
}

/// Limits of a server.
#[derive(Debug, Args)]
struct Limits {
    /// Time for connecting and `initialize`, 1 s to 120 s [server's default: 20s]
    #[arg(long, value_name = "TIME", value_parser = when::duration)]
    connect_timeout: Option<Duration>,
    /// Time for one request without progress, 1 s to 24 h [server's default: 10m]
    #[arg(long, value_name = "TIME", value_parser = when::duration)]
    request_timeout: Option<Duration>,
    /// Requests in flight at once, 1 to 10000 [server's default: 256]
    #[arg(long, value_name = "NUMBER")]
    max_concurrency: Option<i32>,
}

/// Registers a server and tests it. One that fails is registered all the same.
pub(crate) async fn add(add: Add, context: &Context) -> Result<Answer, Failure> {
    let stdio = if add.program.is_given() {
        Some(pb::StdioCommand { stdio: Some(add.program.stdio()?), env: add.program.env()? })
    } else {
        add.program.refuse_stray()?;
        None
    };
    let request = pb::CreateServerRequest {
        request_id: String::new(),
        name: add.name.clone(),
        description: add.description,
        url: add.url.unwrap_or_default(),
        headers: add.headers.read()?,
        stdio,
        connect_timeout: convert::duration(add.limits.connect_timeout)?,
        request_timeout: convert::duration(add.limits.request_timeout)?,
        max_concurrency: add.limits.max_concurrency,
        disabled: add.disabled,
        mask_rules: add.mask,
    };
    let client = &context.client;
    let created =
        client.answer(client.servers().create_server(request)).await.map_err(|failure| match failure.code {
            Code::AlreadyExists => {
                failure.next(format!("choose another name, or change it with `gatehouse server update {}`", add.name))
            }
            _ => failure,
        })?;
    let mut text = format!("Registered {}.\n", safe::line(&add.name));
    let mut document = convert::json("CreateServerResponse", &created)?;
    if add.disabled {
        text.push_str("It is switched off; `gatehouse server enable` switches it on.\n");
    } else {
        test(&add.name, context, &mut text, &mut document).await?;
    }
    Ok(Answer::new(text, &document))
}

async fn test(name: &str, context: &Context, text: &mut String, document: &mut Value) -> Result<(), Failure> {
    let client = context.client.slow();
    let request = pb::TestServerRequest { server: name.to_owned(), ..pb::TestServerRequest::default() };
    match client.answer(client.servers().test_server(request)).await {
        Ok(report) => {
            text.push_str(&server_view::report(&report, &context.out));
            if !report.ok {
                text.push_str("It is registered, but it does not work yet. Mend what the last step says, then run\n");
                // Writing to a String does not fail.
                let _ = writeln!(text, "  gatehouse server test {}", safe::line(name));
            }
            document["test"] = convert::json("TestServerResponse", &report)?;
            if report.ok {
                listed(name, context, document).await?;
            }
        }
        Err(failure) => {
            // The server is registered: a test that could not be made is said, not an exit code of `add`.
            context.out.warn(&format!("it is registered, but it could not be tested: {}", failure.message));
            document["testError"] = failure.json()["error"].take();
        }
    }
    Ok(())
}

/// Waits until the tools are in the cache, so that the next command finds them.
async fn listed(name: &str, context: &Context, document: &mut Value) -> Result<(), Failure> {
    let client = context.client.slow();
    let request = pb::RefreshServerRequest { server: name.to_owned() };
    match client.answer(client.servers().refresh_server(request)).await {
        Ok(refreshed) => document["server"] = convert::json("RefreshServerResponse", &refreshed)?["server"].take(),
        Err(failure) => context.out.warn(&format!("its tools are not listed yet: {}", failure.message)),
    }
    Ok(())
}

/// Changes a server.
pub(crate) async fn update(update: Update, context: &Context) -> Result<Answer, Failure> {
    let request = pb::UpdateServerRequest {
        server: update.server.clone(),
        name: update.name,
        description: update.description,
        url: update.url,
        set_headers: update.headers.read()?,
        remove_headers: update.remove_header,
        stdio: update.program.is_given().then(|| update.program.stdio()).transpose()?,
        set_env: update.program.env()?,
        remove_env: update.remove_env,
        connect_timeout: convert::duration(update.limits.connect_timeout)?,
        request_timeout: convert::duration(update.limits.request_timeout)?,
        max_concurrency: update.limits.max_concurrency,
        enabled: None,
        add_mask_rules: update.mask,
        remove_mask_rules: update.remove_mask,
    };
    let nothing = pb::UpdateServerRequest { server: update.server.clone(), ..pb::UpdateServerRequest::default() };
    if request == nothing {
        return Err(
            Failure::usage("there is nothing to change").next("`gatehouse server update --help` shows what can be")
        );
    }
    change(&update.server, request, context).await
}

/// Switches a server on or off.
pub(crate) async fn switch(server: &str, enabled: bool, context: &Context) -> Result<Answer, Failure> {
    let request = pb::UpdateServerRequest {
        server: server.to_owned(),
        enabled: Some(enabled),
        ..pb::UpdateServerRequest::default()
    };
    change(server, request, context).await
}

async fn change(server: &str, request: pb::UpdateServerRequest, context: &Context) -> Result<Answer, Failure> {
    let mut servers = context.client.servers();
    let answer = context.client.answer(servers.update_server(request));
    let response = named(context, answer, &[(Noun::Server, server)]).await?;
    let text = response.server.as_ref().map(|server| server_view::one(server, &context.out)).unwrap_or_default();
    Ok(Answer::new(text, &convert::json("UpdateServerResponse", &response)?))
}
