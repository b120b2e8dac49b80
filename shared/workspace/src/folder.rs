//! Workspaces in a folder of this machine.
//!
//! Every directory is opened by its name in the one before, and never through a link; what is done then is done at the
//! open directory. So it does not matter what an agent puts in the place of a directory meanwhile.

mod publish;

use std::{io, path::PathBuf, sync::Arc};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::{
    ambient_authority,
    fs::{Dir, File, OpenOptions},
};
use rustix::io::Errno;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{
    IGNORE, NewFile, Occupant, RESULTS,
    problem::{Cause, Problem},
    reading::Reading,
    segments,
};

/// How many files are worked on at a time: a disk that hangs must not take every blocking thread.
const AT_A_TIME: usize = 16;

/// Workspaces under one folder.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    root: Arc<PathBuf>,
    permits: Arc<Semaphore>,
}

/// Whether a directory that is missing is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Refuse,
}

impl Folders {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root: Arc::new(root), permits: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    pub(crate) async fn check(&self, workspace: &str) -> Result<(), Problem> {
        let workspace = workspace.to_owned();
        self.blocking(move |root| match walk(root, &segments(&workspace)?, Missing::Refuse) {
            Ok(_) => Ok(()),
            // The rest is to be made.
            Err(problem) if problem.cause == Cause::Gone => Ok(()),
            Err(problem) => Err(problem),
        })
        .await
    }

    pub(crate) async fn put(&self, file: NewFile) -> Result<String, Problem> {
        self.blocking(move |root| put(root, &file)).await
    }

    pub(crate) async fn holds(&self, workspace: &str, path: &str) -> Result<bool, Problem> {
        let whole = format!("{workspace}/{path}");
        self.blocking(move |root| {
            let found = at(root, &whole, |folder, name| Ok(folder.symlink_metadata(name)?));
            match found {
                Ok(_) => Ok(true),
                Err(problem) if problem.cause == Cause::Gone => Ok(false),
                Err(problem) => Err(problem),
            }
        })
        .await
    }

    pub(crate) async fn open(&self, workspace: &str, path: &str) -> Result<Reading, Problem> {
        let whole = format!("{workspace}/{path}");
        self.blocking(move |root| {
            at(root, &whole, |folder, name| {
                let (file, size) = open_file(folder, name)?;
                Ok(Reading::file(file.into_std(), size))
            })
        })
        .await
    }

    /// Works on a thread that may wait for the disk. A disk that hangs keeps its permit.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Dir) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| Problem::from(Cause::Other))?;
        let root = Arc::clone(&self.root);
        let done = spawn_blocking(move || {
            let _permit = permit;
            work(&open_root(&root)?)
        });
        done.await.map_err(|_| Problem::from(Cause::Other))?
    }
}

/// The root is the operator's: links that lead to it are followed.
fn open_root(root: &PathBuf) -> Result<Dir, Problem> {
    let is_missing = |kind| matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    Dir::open_ambient_dir(root, ambient_authority())
        .map_err(|error| if is_missing(error.kind()) { Cause::NoRoot.into() } else { error.into() })
}

/// Goes down, one directory after the other.
fn walk(root: &Dir, segments: &[&str], missing: Missing) -> Result<Dir, Problem> {
    let mut folder = root.try_clone()?;
    for (depth, name) in segments.iter().enumerate() {
        folder = enter(&folder, name, missing, || segments[..=depth].join("/"))?;
    }
    Ok(folder)
}

/// Opens the directory `name` in another one, which is no link.
fn enter(folder: &Dir, name: &str, missing: Missing, path: impl Fn() -> String) -> Result<Dir, Problem> {
    match folder.open_dir_nofollow(name) {
        Ok(inner) => return Ok(inner),
        Err(error) if error.kind() == io::ErrorKind::NotFound && missing == Missing::Make => {}
        Err(error) => return Err(in_the_way(folder, name, error, path)),
    }
    match folder.create_dir(name) {
        Ok(()) => publish::flush(folder)?,
        // Another was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    folder.open_dir_nofollow(name).map_err(|error| in_the_way(folder, name, error, path))
}

/// Why a directory cannot be entered.
fn in_the_way(folder: &Dir, name: &str, error: io::Error, path: impl Fn() -> String) -> Problem {
    match folder.symlink_metadata(name) {
        Ok(facts) if facts.is_symlink() => Cause::Link(path()).into(),
        Ok(facts) if !facts.is_dir() => Cause::InTheWay(path()).into(),
        // What stood there a moment ago is gone again.
        _ if is_swapped(&error) => Cause::InTheWay(path()).into(),
        _ => error.into(),
    }
}

fn is_swapped(error: &io::Error) -> bool {
    match Errno::from_io_error(error) {
        Some(errno) => matches!(errno, Errno::NOTDIR | Errno::LOOP),
        // cap-std itself saw a link that leads out.
        None => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

/// Does something with the last name of a path, in its folder.
fn at<T>(root: &Dir, path: &str, act: impl FnOnce(&Dir, &str) -> Result<T, Problem>) -> Result<T, Problem> {
    let mut segments = segments(path)?;
    let name = segments.pop().ok_or(Problem::from(Cause::BadPath))?;
    act(&walk(root, &segments, Missing::Refuse)?, name)
}

/// Opens a file that is one: no link, and nothing that reading would wait for.
fn open_file(folder: &Dir, name: &str) -> Result<(File, u64), Problem> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    let refused = |error| match folder.symlink_metadata(name) {
        Ok(facts) if facts.is_symlink() => Cause::Link(name.to_owned()).into(),
        Ok(facts) if !facts.is_file() => Cause::InTheWay(name.to_owned()).into(),
        _ if is_swapped(&error) => Cause::InTheWay(name.to_owned()).into(),
        _ => Problem::from(error),
    };
    let file = folder.open_with(name, &options).map_err(refused)?;
    let facts = file.metadata()?;
    if facts.is_file() { Ok((file, facts.len())) } else { Err(Cause::InTheWay(name.to_owned()).into()) }
}

fn put(root: &Dir, file: &NewFile) -> Result<String, Problem> {
    let workspace = walk(root, &segments(&file.workspace)?, Missing::Make)?;
    let mut folder = workspace;
    let call = file.call.to_string();
    let inside = [RESULTS[0], RESULTS[1], &call];
    for (depth, name) in inside.iter().enumerate() {
        folder = enter(&folder, name, Missing::Make, || inside[..=depth].join("/"))?;
        if depth + 1 == RESULTS.len() {
            ignore(&folder)?;
        }
    }
    for name in file.candidates() {
        match publish::occupant(&folder, &name, &file.content)? {
            Occupant::Same => return Ok(name),
            Occupant::Other => continue,
            Occupant::Nothing => {}
        }
        if publish::publish(&folder, &name, |out| io::Write::write_all(out, &file.content))?
            || publish::occupant(&folder, &name, &file.content)? == Occupant::Same
        {
            return Ok(name);
        }
    }
    Err(Cause::Crowded.into())
}

/// Keeps results out of commits, unless something of this name is there, whatever it says.
fn ignore(results: &Dir) -> Result<(), Problem> {
    let (name, content) = IGNORE;
    match results.symlink_metadata(name) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            publish::publish(results, name, |out| io::Write::write_all(out, content)).map(drop)
        }
        Err(error) => Err(error.into()),
    }
}
