//! The command `gatehouse`: every service alone, all of them at once, and the administrator's commands.

mod cli;
mod process;

use std::process::ExitCode;

// docs/decisions/0005-allocator.md
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    process::main()
}
