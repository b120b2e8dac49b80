//! The helper alone, for the tests of this crate. `gatehouse` has it as a hidden command.

use std::process::ExitCode;

fn main() -> ExitCode {
    gatehouse_stdio::helper::main(std::env::args().nth(1).as_deref()).unwrap_or(ExitCode::FAILURE)
}
