//! What an admin allowed.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// A program, and what it may use.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Names its home below [`crate::Config::root`], which is made when it is missing, mode 0700: at most 64 ASCII letters, digits, `-` and
    /// `_`. Within [`crate::Tier::Strong`] it is seen as [`crate::HOME`], else under its own path.
    pub name: String,
    /// An absolute path, or a name to be found in [`crate::PATH`] (or in the `PATH` of `env`).
    pub program: String,
    /// Its arguments. They are seen by every user of the machine: secrets belong into `env`.
    pub args: Vec<String>,
    /// Its environment, besides `PATH`, `HOME`, `LANG`, `USER` and `TMPDIR`, which it may replace.
    pub env: Vec<(String, SecretString)>,
    /// Paths besides the system's own and its home.
    pub open: Vec<Opened>,
    /// Whether it may use the network: all of it, this machine's own services among it.
    pub network: bool,
    /// Whether it runs without a sandbox: it may do whatever the user of Gatehouse may.
    pub trusted: bool,
    /// How much of the machine it may take.
    pub limits: Limits,
}

/// A path that a program may use, under the same name as outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Absolute, and there when the program starts.
    pub path: PathBuf,
    /// Whether it may write there.
    pub write: bool,
}

/// How much of the machine a program, with all its children, may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory in bytes, shared pages divided among those who share them. More ends the program.
    pub memory_bytes: u64,
    /// CPU in percent of one core. What takes more is paused until it has not.
    pub cpu_percent: u32,
    /// Processes and threads. The next one cannot be made.
    pub processes: u32,
    /// The largest file in bytes. Writing more fails.
    pub file_bytes: u64,
    /// Open files of each process. Opening more fails.
    pub open_files: u32,
    /// What the home may hold, in bytes. More ends the program.
    pub home_bytes: u64,
    /// What `/tmp`, and what `/dev/shm` may hold, in bytes: both are memory. Writing more fails.
    pub tmp_bytes: u64,
}

impl Default for Limits {
    /// What a long-lived Node.js or Chromium process survives.
    fn default() -> Self {
        Self {
            memory_bytes: 2 << 30,
            cpu_percent: 200,
            processes: 512,
            file_bytes: 1 << 30,
            open_files: 4_096,
            home_bytes: 4 << 30,
            tmp_bytes: 512 << 20,
        }
    }
}
