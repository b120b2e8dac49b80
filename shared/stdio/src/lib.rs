//! Third-party programs as processes in a sandbox, with nothing of Gatehouse's own within their reach.
//!
//! One start: [`Spec`] says what an admin allowed → [`Sandboxes::start`] prepares a home, puts the command together (`command`,
//! pure) and has a thread that never ends start it → [`Process`] hands out its input and output, keeps the end of what it writes to
//! stderr, and tells how it ended → `watch` measures all of them and stops what takes too much.
//!
//! What holds a program: bubblewrap. It sees the system's programs read-only, its own home and tmp, and the paths that were opened;
//! it has namespaces of its own, no network unless that was opened, no capability, no way to more rights, and, when Gatehouse runs as
//! root, a user id of its own. When that cannot be had the program is not started, unless an admin trusts it. When its owner ends,
//! even by SIGKILL, all of it ends: the kernel sees to that.
//!
//! What it never does: read or write a message. It knows nothing of MCP.

mod command;
mod home;
mod process;
mod spawner;
mod spec;
mod tail;
mod watch;

use std::{ops::Range, path::PathBuf, sync::Arc};

use tokio::sync::OnceCell;

pub use process::{Exit, Process};
pub use spec::{Limits, Opened, Spec};

use crate::{spawner::Spawner, watch::Watch};

/// User ids that are given to programs when Gatehouse runs as root, one for each. Above those of people and of Debian's services, below
/// those of containers.
pub const USER_IDS: Range<u32> = 61_200..65_000;

/// Why a program was not started, in words for an admin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The sandbox cannot be had here.
    #[error("the sandbox cannot be had here, so the program was not started: {0}")]
    NoSandbox(String),
    /// The home cannot be prepared.
    #[error("the program's home cannot be prepared")]
    Home(#[source] std::io::Error),
    /// All user ids are taken.
    #[error("all {} user ids for programs are taken; remove homes of servers that are gone", USER_IDS.len())]
    NoUserId,
    /// A path that was opened is not there.
    #[error("the opened path {} is not there", .0.display())]
    NotThere(PathBuf),
    /// The process cannot be started.
    #[error("the process cannot be started")]
    Spawn(#[source] std::io::Error),
}

/// Starts programs below one folder. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sandboxes {
    root: Arc<PathBuf>,
    spawner: Arc<Spawner>,
    watch: Watch,
    /// Whether the sandbox can be had, once that was tried.
    checked: Arc<OnceCell<Result<(), String>>>,
}

impl Sandboxes {
    /// Programs get their homes below `root`, which is made when the first one starts. Must be called within a runtime.
    pub fn new(root: PathBuf) -> Self {
        Self { root: Arc::new(root), spawner: Arc::new(Spawner::new()), watch: Watch::start(), checked: Arc::default() }
    }

    /// Whether the sandbox can be had here; else what is missing, and what to do about it.
    pub async fn check(&self) -> Result<(), String> {
        self.checked.get_or_init(async || process::try_sandbox(&self.spawner).await).await.clone()
    }

    /// Removes the home of a program that does not run any more, with all that is in it.
    pub async fn remove_home(&self, name: &str) -> std::io::Result<()> {
        let home = self.root.join("homes").join(name);
        tokio::task::spawn_blocking(move || match std::fs::remove_dir_all(home) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
        .await?
    }

    /// Starts a program.
    pub async fn start(&self, spec: Spec) -> Result<Process, StartError> {
        let sandboxed = self.check().await;
        if let Err(why) = &sandboxed
            && !spec.trusted
        {
            return Err(StartError::NoSandbox(why.clone()));
        }
        for opened in &spec.open {
            if !opened.path.exists() {
                return Err(StartError::NotThere(opened.path.clone()));
            }
        }
        let home = home::prepare(&self.root, &spec.name)?;
        let command = command::of(&spec, &home, sandboxed.is_ok(), &command::Host::look());
        let child = self.spawner.spawn(command).await.map_err(StartError::Spawn)?;
        Ok(Process::new(child, spec, home, sandboxed.is_ok(), &self.watch))
    }
}
