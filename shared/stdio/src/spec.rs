//! What an admin allowed.

use std::path::PathBuf;

use secrecy::SecretString;

/// A program, and what it may use.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Names its home; ASCII letters, digits, `-` and `_`.
    pub name: String,
    /// An absolute path, or a name to be found in the system's folders.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, besides `PATH`, `HOME`, `LANG` and `TMPDIR`. Values are secret.
    pub env: Vec<(String, SecretString)>,
    /// Paths besides the system's own and its home.
    pub open: Vec<Opened>,
    /// Whether it may use the network: all of it, this machine's own services among it.
    pub network: bool,
    /// Whether it runs without a sandbox: it may do whatever Gatehouse's own user may.
    pub trusted: bool,
    /// How much of the machine it may take.
    pub limits: Limits,
}

/// A path that a program may use. It is there under the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Absolute.
    pub path: PathBuf,
    /// Whether it may write there.
    pub write: bool,
}

/// How much of the machine a program, with all its children, may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory in bytes, shared pages divided among those who share them. More ends the program.
    pub memory_bytes: u64,
    /// CPU in percent of one core, over a second. What takes more is held until it has not.
    pub cpu_percent: u32,
    /// Processes and threads.
    pub processes: u32,
    /// The largest file in bytes.
    pub file_bytes: u64,
    /// Open files of one process.
    pub open_files: u32,
    /// What the home may hold, in bytes. More ends the program.
    pub home_bytes: u64,
    /// What `/tmp` may hold, in bytes: it is memory.
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
