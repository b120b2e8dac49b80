//! Servers that are programs.

use gatehouse_proto::gateway::v1;

use super::timestamp;
use crate::registry::{
    check::Fields,
    header::Headers,
    stdio::{Open, Stdio, StoredLimits},
};

/// A checked program with its environment.
pub(super) fn command(fields: &mut Fields, command: v1::StdioCommand) -> (Stdio, Headers) {
    let stdio = program(fields, "stdio.stdio", command.stdio.unwrap_or_default());
    let env = Headers::checked_variables(fields, "stdio.env", command.env);
    (stdio, env)
}

/// A checked program.
pub(super) fn program(fields: &mut Fields, field: &str, given: v1::Stdio) -> Stdio {
    let limits = given.limits.unwrap_or_default();
    let mut bytes = |name: &str, value: Option<i64>| {
        value.and_then(|value| {
            let unsigned = u64::try_from(value).ok();
            if unsigned.is_none() {
                fields.wrong(format!("{field}.limits.{name}"), "takes no negative number");
            }
            unsigned
        })
    };
    let (memory, file, home) = (
        bytes("memory_bytes", limits.memory_bytes),
        bytes("file_bytes", limits.file_bytes),
        bytes("home_bytes", limits.home_bytes),
    );
    let number = |value: Option<i32>| value.map(|value| u32::try_from(value).unwrap_or(0));
    let stdio = Stdio {
        program: given.program,
        args: given.args,
        open: given.open.into_iter().map(|open| Open { path: open.path, write: open.write }).collect(),
        network: given.network,
        trusted: given.trusted,
        limits: StoredLimits {
            memory_bytes: memory,
            cpu_percent: number(limits.cpu_percent),
            processes: number(limits.processes),
            file_bytes: file,
            open_files: number(limits.open_files),
            home_bytes: home,
        },
    };
    stdio.check(fields, field);
    stdio
}

/// A program as it is shown.
pub(super) fn shown(stdio: Stdio, env_names: Vec<String>) -> v1::Stdio {
    let limits = stdio.limits.effective();
    let bytes = |value: u64| Some(i64::try_from(value).unwrap_or(i64::MAX));
    let number = |value: u32| Some(i32::try_from(value).unwrap_or(i32::MAX));
    v1::Stdio {
        program: stdio.program,
        args: stdio.args,
        env_names,
        open: stdio.open.into_iter().map(|open| v1::OpenedPath { path: open.path, write: open.write }).collect(),
        network: stdio.network,
        trusted: stdio.trusted,
        limits: Some(v1::StdioLimits {
            memory_bytes: bytes(limits.memory_bytes),
            cpu_percent: number(limits.cpu_percent),
            processes: number(limits.processes),
            file_bytes: bytes(limits.file_bytes),
            open_files: number(limits.open_files),
            home_bytes: bytes(limits.home_bytes),
        }),
    }
}

impl From<crate::upstream::processes::Seen> for v1::ServerProcess {
    fn from(seen: crate::upstream::processes::Seen) -> Self {
        Self {
            running: seen.running,
            started_at: seen.started_at.map(timestamp),
            starts: i32::try_from(seen.starts).unwrap_or(i32::MAX),
            last_exit: seen.last_exit,
            stderr: seen.stderr,
            memory_bytes: i64::try_from(seen.memory_bytes).unwrap_or(i64::MAX),
            processes: i32::try_from(seen.processes).unwrap_or(i32::MAX),
        }
    }
}
