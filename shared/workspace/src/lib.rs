//! Workspaces of sessions: where files of results are saved, under roots that the operator configured and never outside.
//!
//! One file: [`name`] makes its name (pure) → [`Workspaces::put`] goes to the session's folder, one directory after the
//! other without following links, or to the same prefix of an object store → the bytes go under a temporary name, are
//! flushed, and get their name only if nothing has it. [`Workspaces::open`] reads a file back on the same way.
//!
//! It never replaces a file, never follows a link below the root, and leaves no half file under a final name.

mod folder;
mod http_client;
mod location;
pub mod name;
mod objects;
mod problem;
mod reading;

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use gatehouse_types::CallId;
use object_store::ObjectStore;
use tokio::time::timeout;

use self::{folder::Folders, objects::Objects};
pub use self::{
    location::{BadLocation, Location, SetupError},
    name::Kind,
    problem::{Cause, Problem},
    reading::{CHUNK_BYTES, Reading},
};

/// The folder of results, relative to a workspace.
pub const RESULTS: [&str; 2] = [".agent", "mcp"];
/// The file that keeps results out of the agent's commits, and what is in it.
const IGNORE: (&str, &[u8]) = (".gitignore", b"*\n");
/// Longest time for saving one file.
const PUT_WITHIN: Duration = Duration::from_mins(2);
/// Longest time for a question about a file.
const ASK_WITHIN: Duration = Duration::from_secs(20);
/// Most names that are tried for one file.
const MOST_NAMES: usize = 100;

/// The path of a result's file, relative to its workspace.
pub fn path(call: CallId, name: &str) -> String {
    let [agent, results] = RESULTS;
    format!("{agent}/{results}/{call}/{name}")
}

/// A file to save.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// The session's workspace, relative to the root.
    pub workspace: String,
    /// The call that it is of: its folder.
    pub call: CallId,
    /// The name that it should have, of [`name`].
    pub name: String,
    /// Names (as [`name::key`] gives them) that are for other files of the call.
    pub avoid: BTreeSet<String>,
    /// What is in it.
    pub content: Bytes,
}

impl NewFile {
    /// The names to try, in order.
    fn candidates(&self) -> impl Iterator<Item = String> {
        let numbered = (1..=MOST_NAMES).map(|number| name::numbered(&self.name, number));
        numbered.filter(|candidate| !self.avoid.contains(&name::key(candidate)))
    }
}

/// What stands where a file is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occupant {
    Nothing,
    Same,
    Other,
}

/// All workspaces under one root.
#[derive(Debug, Clone)]
pub struct Workspaces(Root);

#[derive(Debug, Clone)]
enum Root {
    Folder(Folders),
    Store(Objects),
}

impl Workspaces {
    /// The workspaces at a location. Credentials of an object store come from the environment; nothing is asked yet.
    pub fn at(location: &Location) -> Result<Self, SetupError> {
        match location {
            Location::Folder(root) => Ok(Self::folder(root.clone())),
            Location::S3 { .. } => Ok(Self(Root::Store(Objects::s3(location)?))),
        }
    }

    /// Folders under this one, which need not exist yet.
    pub fn folder(root: PathBuf) -> Self {
        Self(Root::Folder(Folders::new(root)))
    }

    /// Prefixes of an object store, under this one; empty for the whole store.
    pub fn store(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self(Root::Store(Objects::new(store, prefix)))
    }

    /// Whether a session can have this workspace. It need not exist; what exists of it must be folders and no links.
    pub async fn check(&self, workspace: &str) -> Result<(), Problem> {
        match &self.0 {
            Root::Folder(folders) => bounded(ASK_WITHIN, folders.check(workspace)).await,
            Root::Store(objects) => objects.check(workspace),
        }
    }

    /// Saves a file and says its name. The name is another one when something stands there already, unless that is this
    /// very content. Nothing is left of a file that could not be saved.
    pub async fn put(&self, file: NewFile) -> Result<String, Problem> {
        match &self.0 {
            Root::Folder(folders) => bounded(PUT_WITHIN, folders.put(file)).await,
            Root::Store(objects) => bounded(PUT_WITHIN, objects.put(&file)).await,
        }
    }

    /// Whether anything stands at a path of a workspace.
    pub async fn holds(&self, workspace: &str, path: &str) -> Result<bool, Problem> {
        match &self.0 {
            Root::Folder(folders) => bounded(ASK_WITHIN, folders.holds(workspace, path)).await,
            Root::Store(objects) => bounded(ASK_WITHIN, objects.holds(workspace, path)).await,
        }
    }

    /// Opens a file for reading, as it is now.
    pub async fn open(&self, workspace: &str, path: &str) -> Result<Reading, Problem> {
        match &self.0 {
            Root::Folder(folders) => bounded(ASK_WITHIN, folders.open(workspace, path)).await,
            Root::Store(objects) => bounded(ASK_WITHIN, objects.open(workspace, path)).await,
        }
    }
}

async fn bounded<T>(most: Duration, work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    timeout(most, work).await.unwrap_or_else(|_| Err(Cause::Silent.into()))
}

/// The segments of a path below a root: plain names, so that they lead nowhere else.
fn segments(path: &str) -> Result<Vec<&str>, Problem> {
    let plain = |segment: &&str| !matches!(*segment, "" | "." | "..") && !segment.contains(['\\', '\0']);
    let all: Vec<&str> = path.split('/').collect();
    if all.iter().all(plain) { Ok(all) } else { Err(Cause::BadPath.into()) }
}
