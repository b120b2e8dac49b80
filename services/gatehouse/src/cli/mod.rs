//! The administrator's command: everything that is done over gRPC, so that another program could do the same.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Globals {
    /// Data folder of `gatehouse up`; else `./.gatehouse`, else `$XDG_DATA_HOME/gatehouse`
    #[arg(long, global = true, env = "GATEHOUSE_DATA", value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// The whole command line, for completions; set by `main`.
    #[arg(skip)]
    pub(crate) root: Option<fn() -> clap::Command>,
}

/// The administrator's commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs one command and returns the exit code.
#[expect(clippy::unused_async, reason = "commands will ask the server")]
pub(crate) async fn run(command: Command, globals: Globals) -> ExitCode {
    let Command::Completions { shell } = command;
    if let Some(root) = globals.root {
        clap_complete::generate(shell, &mut root(), "gatehouse", &mut std::io::stdout());
    }
    ExitCode::SUCCESS
}
