//! The interaction service as a process of its own.

use std::process::ExitCode;

use gatehouse_interaction::{Config, serve};

fn main() -> ExitCode {
    gatehouse_platform::process::run(
        gatehouse_interaction::NAME,
        None,
        gatehouse_interaction::OPS_OFFSET,
        Config::load,
        serve,
    )
}
