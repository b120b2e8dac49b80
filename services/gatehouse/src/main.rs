//! The command `gatehouse`.

mod cli;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Gatehouse: MCP servers for agents, with control
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    globals: cli::Globals,
    #[command(subcommand)]
    command: cli::Command,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { mut globals, command } = Arguments::parse();
    globals.root = Some(Arguments::command);
    cli::run(command, globals).await
}
