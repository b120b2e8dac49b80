//! The administrator's command: everything that is done over gRPC, so that another program could do the same.
//!
//! The path of one command: [`Command`] is what was asked → [`discover`] finds server and key → [`grpc`] connects → a
//! file per noun asks the gateway and builds an [`output::Answer`] in both forms → [`output`] prints one of them.
//! It never reads the database, and never prints a secret that it was not asked to make.

mod audit;
mod call;
mod card_answer;
mod cards;
mod cards_view;
mod completions;
mod content;
mod convert;
mod discover;
mod failure;
mod files;
mod globals;
mod grpc;
mod headers;
mod import;
mod keys;
mod nearest;
mod output;
mod profile;
mod program;
mod safe;
mod server;
mod server_change;
mod server_import;
mod server_view;
mod session;
mod session_grants;
mod session_token;
mod session_view;
mod settings;
mod snippet;
mod table;
mod tools;
mod tools_view;
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
    /// Look at tools, override their hints, choose who must say yes, see their risks
    Tools(tools::Tools),
    /// Say which servers and tools sessions may use
    #[command(subcommand)]
    Profile(profile::Command),
    /// Make sessions, their tokens and runs; print an engine's configuration
    #[command(subcommand)]
    Session(session::Command),
    /// Call a tool as an engine of a session would
    Call(call::Call),
    /// Look at the cards that wait for a person, follow them
    Cards(cards::Cards),
    /// Answer a card: let a call go out, or not
    Answer(card_answer::CardAnswer),
    /// Look at the record of calls
    #[command(subcommand)]
    Audit(audit::Command),
    /// List the files of a session's results, fetch one
    Files(files::Files),
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
    let is_call = matches!(command, Command::Call(_));
    let done = tokio::select! {
        // The handler of Ctrl-C first: it has to be there before anything is sent.
        biased;
        () = interrupted() => Err((failure::INTERRUPTED, cancelled(is_call))),
        done = dispatch(command, &globals, &out) => done.map_err(|failure| (failure.exit(), failure)),
    };
    let code = done.unwrap_or_else(|(code, failure)| {
        out.progress_done();
        out.failure(&failure);
        code
    });
    ExitCode::from(code)
}

fn cancelled(is_call: bool) -> Failure {
    let failure = Failure::new(Code::Cancelled, "cancelled by Ctrl-C");
    if is_call { failure.next("`gatehouse audit list` shows what became of the call") } else { failure }
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
    match &command {
        Command::Call(call) => call.check()?,
        Command::Answer(answer) => answer.check(out)?,
        _ => {}
    }
    let here = discover::Surroundings::here();
    let target = match &command {
        Command::Cards(_) | Command::Answer(_) => discover::find_interaction(globals, &here)?,
        _ => discover::find(globals, &here)?,
    };
    for warning in &target.warnings {
        out.warn(warning);
    }
    let client = Client::connect(&target, globals).await?;
    let context = Context { client, out: out.clone() };
    let answer = match command {
        Command::Cards(cards) => cards.run(&context, &cards::Places { target, globals, here }).await?,
        command => answer(command, &context).await?,
    };
    out.answer(&answer)
}

async fn answer(command: Command, context: &Context) -> Result<Answer, Failure> {
    match command {
        Command::Server(command) => server::run(command, context).await,
        Command::Tools(command) => tools::run(command, context).await,
        Command::Profile(command) => profile::run(command, context).await,
        Command::Session(command) => session::run(command, context).await,
        Command::Call(call) => call.run(context).await,
        Command::Answer(answer) => answer.run(context).await,
        Command::Audit(command) => audit::run(command, context).await,
        Command::Files(files) => files.run(context).await,
        Command::Settings(command) => settings::run(command, context).await,
        Command::Keys(command) => keys::run(command, context).await,
        Command::Cards(_) | Command::Completions(_) => Err(Failure::new(Code::Internal, "this was done before")),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

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
    fn the_command_line_is_sound_and_everything_in_it_has_help_words() {
        fn walk(command: &clap::Command, path: &str, globals: &[String]) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some() || path == " gatehouse", "{path}");
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.is_empty(), "{path} {}", argument.get_id());
                // A global argument comes to every subcommand: an id of both would be read as the wrong type.
                let is_double = !argument.is_global_set() && globals.contains(&argument.get_id().to_string());
                assert!(!is_double, "{path} {}", argument.get_id());
            }
            command.get_subcommands().for_each(|inner| walk(inner, &path, globals));
        }
        let whole = Whole::command();
        whole.clone().debug_assert();
        let globals: Vec<String> = whole.get_arguments().map(|argument| argument.get_id().to_string()).collect();
        walk(&whole, "", &globals);
    }

    /// The words of a line of the documentation, as a shell would read them, up to a pipe or a redirection.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (place, part) in line.split('\'').enumerate() {
            let quoted = place % 2 == 1;
            let parts: Vec<&str> = if quoted { vec![part] } else { part.split_whitespace().collect() };
            words.extend(parts.into_iter().map(str::to_owned));
        }
        words.into_iter().take_while(|word| word != ">" && word != "|").collect()
    }

    #[test]
    fn every_example_of_the_documentation_is_a_command_and_every_command_has_one() {
        let documentation = include_str!("../../../../docs/cli.md");
        let example = |line: &'static str| line.find("gatehouse ").filter(|at| *at == 0 || line.starts_with("echo"));
        let mut shown = Vec::new();
        for line in documentation.lines().filter_map(|line| example(line).map(|at| &line[at..])) {
            let words = words(line);
            Whole::try_parse_from(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
            shown.push(words.join(" "));
        }
        let mut open = vec![(Whole::command(), "gatehouse".to_owned())];
        while let Some((command, path)) = open.pop() {
            let inner: Vec<_> = command
                .get_subcommands()
                .map(|inner| (inner.clone(), format!("{path} {}", inner.get_name())))
                .collect();
            assert!(!inner.is_empty() || shown.iter().any(|line| line.starts_with(&path)), "{path} has no example");
            open.extend(inner);
        }
    }
}
