//! The gateway as a process of its own.

use std::process::ExitCode;

use gatehouse_gateway::{Config, NAME, OPS_OFFSET, serve};

fn main() -> ExitCode {
    if let Some(code) = gatehouse_stdio::helper::main(std::env::args().nth(1).as_deref()) {
        return code;
    }
    gatehouse_platform::process::run(NAME, None, OPS_OFFSET, Config::load, serve)
}
