//! Third-party programs as processes in a sandbox, with nothing of Gatehouse's own within their reach.
//!
//! One start: [`Spec`] says what an admin allowed → [`Sandboxes::start`] checks it, prepares a home (`home`) and writes down all that
//! is to happen (`plan`, with the words of bubblewrap from `wrap`, both pure) → it starts the **supervisor**: this very program again,
//! by a hidden command ([`helper`]) → the supervisor starts the **stage** inside bubblewrap, which gives up every right, one after the
//! other, and becomes the program → [`Process`] hands out its input and output, keeps the end of its stderr and tells how it ended.
//!
//! The supervisor measures the program with all its children, and ends all of them when they take too much, when it is told to, or when
//! its socket to the owner closes: the kernel closes that however the owner ends.
//!
//! There are three tiers ([`Tier`]): bubblewrap; Landlock with seccomp, when the operator allows it; and none, for a program that an
//! admin trusts. A program whose tier cannot be had is not started. docs/stdio-servers.md says what each of them stops.
//!
//! What it never does: read or write a message between a program and its user. It knows nothing of MCP.

mod attend;
mod exit;
pub mod helper;
mod home;
mod plan;
mod probe;
mod process;
mod spec;
mod system;
mod tail;
mod wire;
mod wrap;

use std::{io, ops::Range, path::PathBuf, sync::Arc};

use tokio::sync::Mutex;

pub use self::{
    exit::{Exit, Status, Usage, Why},
    probe::Tiers,
    process::{Process, Stdin, Stdout},
    spec::{Limits, Opened, Spec},
    system::PATH,
    tail::LINES,
};

/// How a program is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Tier {
    /// Bubblewrap: namespaces, a file system of its own, no rights.
    Strong,
    /// Landlock and seccomp: no namespaces. The operator must have allowed it.
    Weak,
    /// Nothing: it may do whatever the user of Gatehouse may.
    Trusted,
}

/// Which sandboxes the operator allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Allowed {
    /// [`Tier::Strong`] only.
    #[default]
    Strong,
    /// [`Tier::Weak`] where the strong one cannot be had.
    WeakToo,
    /// [`Tier::Weak`], and the strong one is not even tried.
    WeakOnly,
}

impl std::str::FromStr for Allowed {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "bubblewrap" => Ok(Self::Strong),
            "landlock-too" => Ok(Self::WeakToo),
            "landlock" => Ok(Self::WeakOnly),
            _ => Err(()),
        }
    }
}

/// What the operator sets.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder that all this is in: homes below `homes`. Made when the first program starts. When Gatehouse runs as root, other users must be
    /// able to pass through the folders above it for [`Tier::Weak`].
    pub root: PathBuf,
    /// Which sandboxes are good enough.
    pub allowed: Allowed,
    /// Folders that no program may have opened, nor what is in them, nor what they are in: the gateway's configuration and data.
    pub closed: Vec<PathBuf>,
    /// User ids that are given to programs when Gatehouse runs as root, one for each home.
    pub users: Range<u32>,
    /// The command that runs [`helper::main`]; the name of a role is appended.
    pub helper: Vec<PathBuf>,
    /// The program bubblewrap: a path, or a name to be found in [`PATH`].
    pub bubblewrap: PathBuf,
}

impl Config {
    /// The usual: the strong sandbox only, this program as its own helper.
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            allowed: Allowed::default(),
            closed: Vec::new(),
            users: USERS,
            helper: vec!["/proc/self/exe".into()],
            bubblewrap: "bwrap".into(),
        }
    }

    fn homes(&self) -> PathBuf {
        self.root.join("homes")
    }
}

impl From<PathBuf> for Config {
    fn from(root: PathBuf) -> Self {
        Self::new(root)
    }
}

/// Where a program in [`Tier::Strong`] finds its home.
pub const HOME: &str = "/server";
/// User ids for programs: above those of people and of Debian's services, below `nobody`.
pub const USERS: Range<u32> = 61_200..65_000;

/// Why a program was not started, in words for an admin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No sandbox that the operator allows can be had here.
    #[error("no sandbox can be had here, so the server was not started. {0}")]
    NoSandbox(String),
    /// What the admin set cannot be.
    #[error("{0}")]
    Refused(String),
    /// The home cannot be prepared.
    #[error("its home {} cannot be prepared; Gatehouse must be able to write there", .0.display())]
    Home(PathBuf, #[source] std::io::Error),
    /// All user ids are taken.
    #[error("all {0} user ids for servers are taken; remove homes of servers that are gone")]
    NoUserId(usize),
    /// A step inside failed: before the program, or the program itself could not be run.
    #[error("{0}")]
    Inside(String),
    /// The supervisor cannot be started.
    #[error("the process that watches it cannot be started")]
    Supervisor(#[source] std::io::Error),
}

/// Starts programs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sandboxes {
    config: Arc<Config>,
    /// What was found to work. What did not work is tried anew: the operator may have mended it.
    found: Arc<Mutex<probe::Found>>,
}

impl Sandboxes {
    /// Nothing is touched before the first start or question.
    pub fn new(config: impl Into<Config>) -> Self {
        Self { config: Arc::new(config.into()), found: Arc::default() }
    }

    /// Which tiers can be had here; where one cannot, what is missing and what to do about it.
    pub async fn tiers(&self) -> Tiers {
        self.found.lock().await.tiers(&self.config).await
    }

    /// Starts a program. When this returns, it has been executed. Must be called within a Tokio runtime.
    pub async fn start(&self, spec: Spec) -> Result<Process, StartError> {
        plan::check(&spec, &self.config)?;
        let tier = if spec.trusted { Tier::Trusted } else { self.tier().await? };
        process::start(&self.config, &spec, tier).await
    }

    /// Whether any sandbox that the operator allows can be had here; else what is missing, and what to do about it.
    pub async fn check(&self) -> Result<(), String> {
        self.tier().await.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Removes the home of a program that does not run any more, with all that is in it.
    pub async fn remove_home(&self, name: &str) -> io::Result<()> {
        plan::check_home(name, &self.config).map_err(io::Error::other)?;
        match tokio::fs::remove_dir_all(self.config.homes().join(name)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    async fn tier(&self) -> Result<Tier, StartError> {
        let mut found = self.found.lock().await;
        let mut why = String::new();
        if self.config.allowed != Allowed::WeakOnly {
            match found.strong(&self.config).await {
                Ok(()) => return Ok(Tier::Strong),
                Err(words) => why = format!("Bubblewrap: {words}. "),
            }
        }
        if self.config.allowed == Allowed::Strong {
            why.push_str("The weaker sandbox (Landlock and seccomp) was not allowed by the operator.");
            return Err(StartError::NoSandbox(why));
        }
        match found.weak(&self.config).await {
            Ok(_) => Ok(Tier::Weak),
            Err(words) => Err(StartError::NoSandbox(format!("{why}Landlock: {words}."))),
        }
    }
}
