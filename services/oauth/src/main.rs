//! The oauth service as a process of its own.

use std::process::ExitCode;

use gatehouse_oauth::{Config, serve};

fn main() -> ExitCode {
    gatehouse_platform::process::run(gatehouse_oauth::NAME, None, gatehouse_oauth::OPS_OFFSET, Config::load, serve)
}
