//! The task-poller service as a process of its own.

use std::process::ExitCode;

use gatehouse_task_poller::{Config, serve};

fn main() -> ExitCode {
    gatehouse_platform::process::run(
        gatehouse_task_poller::NAME,
        None,
        gatehouse_task_poller::OPS_OFFSET,
        Config::load,
        serve,
    )
}
