//! The administrator's command: everything that is done over gRPC, so that another program could do the same.
//!
//! The path of one command: [`Command`] is what was asked → [`discover`] finds server and key → [`grpc`] connects → a
//! file per noun asks the gateway and builds an [`output::Answer`] in both forms → [`output`] prints one of them.
//! It never reads the database, and never prints a secret that it was not asked to make.

mod audit;
mod call;
mod completions;
mod content;
mod convert;
mod discover;
mod failure;
mod globals;
mod grpc;
mod headers;
mod import;
mod keys;
mod nearest;
mod output;
mod profile;
mod safe;
mod server;
mod server_change;
mod server_import;
mod server_view;
mod session;
mod session_token;
mod session_view;
mod settings;
mod snippet;
mod table;
mod tools;
mod when;

use std::process::ExitCode;

use clap::Subcommand;
use gatehouse_types::SystemClock;

pub(crate) use globals::Globals;

use failure::{Code, Failure};
use grpc::Client;
use output::{Answer, Out};

/// The administrator's commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Register MCP servers, look at them, test them
    #[command(subcommand)]
    Server(server::Command),
    /// Look at tools, override their hints
    #[command(subcommand)]
    Tools(tools::Command),
    /// Say which servers and tools sessions may use
    #[command(subcommand)]
    Profile(profile::Command),
    /// Make sessions, their tokens and runs; print an engine's configuration
    #[command(subcommand)]
    Session(session::Command),
    /// Call a tool as an engine of a session would
    Call(call::Call),
    /// Look at the record of calls
    #[command(subcommand)]
    Audit(audit::Command),
    /// Look at settings, change them
    #[command(subcommand)]
    Settings(settings::Command),
    /// Make and revoke API keys
    #[command(subcommand)]
    Keys(keys::Command),
    /// Print completions for a shell
    Completions(completions::Completions),
}

/// What the commands work with.
pub(crate) struct Context {
    client: Client,
    out: Out,
}

/// Runs one command: prints its answer or its failure, and returns the exit code.
///
/// 0 done, 1 failed, 2 wrong command line, 3 an import left something out, 4 a called tool answered with an error,
/// 130 ended by Ctrl-C.
pub(crate) async fn run(command: Command, globals: Globals) -> ExitCode {
    let out = Out::here(globals.json, &SystemClock);
    let done = tokio::select! {
        biased;
        done = dispatch(command, &globals, &out) => done,
        () = interrupted() => Err(Failure::new(Code::Cancelled, "cancelled by Ctrl-C")),
    };
    let code = done.unwrap_or_else(|failure| {
        out.failure(&failure);
        failure.exit()
    });
    ExitCode::from(code)
}

async fn interrupted() {
    // Without a handler Ctrl-C ends the process by itself.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn dispatch(command: Command, globals: &Globals, out: &Out) -> Result<u8, Failure> {
    if let Command::Completions(completions) = &command {
        output::raw(&completions.script(globals.root)?)?;
        return Ok(failure::OK);
    }
    if let Command::Call(call) = &command {
        call.check()?;
    }
    let target = discover::find(globals, &discover::Surroundings::here())?;
    for warning in &target.warnings {
        out.warn(warning);
    }
    let client = Client::connect(&target, globals).await?;
    let context = Context { client, out: out.clone() };
    let answer = answer(command, &context).await?;
    out.answer(&answer)
}

async fn answer(command: Command, context: &Context) -> Result<Answer, Failure> {
    match command {
        Command::Server(command) => server::run(command, context).await,
        Command::Tools(command) => tools::run(command, context).await,
        Command::Profile(command) => profile::run(command, context).await,
        Command::Session(command) => session::run(command, context).await,
        Command::Call(call) => call.run(context).await,
        Command::Audit(command) => audit::run(command, context).await,
        Command::Settings(command) => settings::run(command, context).await,
        Command::Keys(command) => keys::run(command, context).await,
        Command::Completions(_) => Err(Failure::new(Code::Internal, "completions need no server")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[derive(clap::Parser)]
    #[command(name = "gatehouse")]
    struct Whole {
        #[command(flatten)]
        globals: Globals,
        #[command(subcommand)]
        command: Command,
    }

    #[test]
    fn the_command_line_is_sound_and_every_subcommand_has_help_words() {
        fn walk(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some() || path == " gatehouse", "{path}");
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.is_empty(), "{path} {}", argument.get_id());
            }
            command.get_subcommands().for_each(|inner| walk(inner, &path));
        }
        let whole = Whole::command();
        whole.clone().debug_assert();
        walk(&whole, "");
    }
}
