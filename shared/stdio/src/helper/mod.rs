//! What runs in processes of its own: the supervisor of a program, and the stage that becomes the program.
//!
//! Both are this very program, started with the name of a role. They have an empty environment, are told everything over a socket that
//! is their standard input, and use no runtime and no thread: what a thread gives up, only that thread has given up.

mod filter;
mod held;
pub(crate) mod landlock;
mod measure;
mod stage;
mod supervisor;
mod tree;

use std::{io, os::unix::net::UnixStream, process::ExitCode};

/// The role that watches a program. Hidden: nobody types it.
pub const SUPERVISOR: &str = "stdio-supervisor";
/// The role that becomes a program. Hidden: nobody types it.
pub const STAGE: &str = "stdio-stage";

/// Plays a role, when there is one of that name. To be called before anything else is done: no thread, no runtime.
pub fn main(role: Option<&str>) -> Option<ExitCode> {
    match role {
        Some(SUPERVISOR) => Some(supervisor::main()),
        Some(STAGE) => Some(stage::main()),
        _ => None,
    }
}

/// The socket that is the standard input.
fn socket() -> io::Result<UnixStream> {
    Ok(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), FIRST_FREE)?.into())
}

/// Below it are standard input, output and error.
const FIRST_FREE: i32 = 3;
