//! The command line, and the processes among its commands: `up`, each service alone, `migrate`.
//!
//! `up`: [`data`] finds and locks the data folder → [`postgres`] starts the cluster in it, unless `DATABASE_URL` names
//! another → the services start in this process → [`endpoints`] tells the administrator's commands where they are.

mod data;
mod endpoints;
mod error;
mod migrate;
mod postgres;
mod store;
mod up;

use std::{path::PathBuf, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};
use gatehouse_platform::process;

use crate::cli;

/// Gatehouse: MCP servers for agents, with control
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    globals: cli::Globals,
    /// TOML file with the configuration of `up`, a service or `migrate`; the environment wins over it
    #[arg(long, global = true, env = "GATEHOUSE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start everything in one process, with a Postgres of its own unless `DATABASE_URL` is set
    Up,
    /// Run the gateway: engines' MCP endpoint, registry, sessions
    Gateway,
    /// Run the interaction service
    Interaction,
    /// Run the oauth service
    Oauth,
    /// Run the task-poller
    TaskPoller,
    /// Bring the schema of `DATABASE_URL` up to date
    Migrate,
    #[command(flatten)]
    Administrator(Box<cli::Command>),
}

/// Runs the command line of this process.
pub(crate) fn main() -> ExitCode {
    // Before anything else: what watches or becomes a program does so without a runtime and with nothing of this process's own.
    if let Some(code) = gatehouse_stdio::helper::main(std::env::args().nth(1).as_deref()) {
        return code;
    }
    let Arguments { mut globals, config, command } = Arguments::parse();
    let file = config.as_deref();
    match command {
        Command::Up => up::run(globals.data.as_deref(), file),
        Command::Gateway => process::run("gateway", file, 0, gatehouse_gateway::Config::load, gatehouse_gateway::serve),
        Command::Interaction => {
            use gatehouse_interaction::{Config, NAME, OPS_OFFSET, serve};
            process::run(NAME, file, OPS_OFFSET, Config::load, serve)
        }
        Command::Oauth => {
            use gatehouse_oauth::{Config, NAME, OPS_OFFSET, serve};
            process::run(NAME, file, OPS_OFFSET, Config::load, serve)
        }
        Command::TaskPoller => {
            use gatehouse_task_poller::{Config, NAME, OPS_OFFSET, serve};
            process::run(NAME, file, OPS_OFFSET, Config::load, serve)
        }
        Command::Migrate => migrate::run(file),
        Command::Administrator(command) => {
            globals.root = Some(Arguments::command);
            administer(*command, globals)
        }
    }
}

fn administer(command: cli::Command, globals: cli::Globals) -> ExitCode {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(cli::run(command, globals)),
        Err(error) => process::report(&process::Error::Io(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
