//! The command `gatehouse`: every service alone, all of them at once, and the administrator's commands.

mod cli;
mod process;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    process::main()
}
