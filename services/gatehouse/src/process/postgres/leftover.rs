//! What a killed `up` left behind: a Postgres that still runs, or its lock files.

use std::{
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{Cluster, Error, PORT, TEMPORARY, TEMPORARY_PREFIX, failed};

/// A number that no process has: above Linux' largest (2²²).
const NOBODY: u32 = 4_194_305;

/// Stops a Postgres that still runs on the cluster. We hold the lock of the data folder, so it belongs to no other
/// `up`.
pub(super) async fn end(cluster: &Cluster) -> Result<(), Error> {
    let file = cluster.folder.join("postmaster.pid");
    let Some(text) = read(&file)? else { return Ok(()) };
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    if let Some(sockets) = rest.lines().nth(3).map(Path::new).filter(|sockets| **sockets != *cluster.sockets) {
        remove_temporary(sockets);
    }
    let Ok(pid) = first.trim().parse::<u32>() else { return Ok(()) };
    match whose(pid, &cluster.folder) {
        Process::Ours => {
            tracing::warn!(process.id = pid, "a Postgres of an `up` that was killed still runs; it is stopped");
            if cluster.pg_ctl_stop("fast").await.is_err() {
                cluster.pg_ctl_stop("immediate").await?;
            }
            Ok(())
        }
        Process::Another => {
            // Postgres takes any process of this number, also one that has ended and was not waited for, for another
            // Postgres, and would not start. The rest of the file stays: by it Postgres checks that nothing uses the
            // memory of the one before.
            tracing::warn!(
                process.id = pid,
                "the process that the lock file of a killed Postgres names is another one"
            );
            fs::write(&file, format!("{NOBODY}\n{rest}")).map_err(failed("written", &file))?;
            remove(&cluster.sockets.join(format!(".s.PGSQL.{PORT}.lock")))
        }
        // Postgres sees that for itself.
        Process::Gone => Ok(()),
    }
}

/// Removes a socket folder of our own making under the system's temporary folder, and no other.
fn remove_temporary(sockets: &Path) {
    let ours = sockets.parent() == Some(Path::new(TEMPORARY))
        && sockets.file_name().is_some_and(|name| name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()));
    if ours && let Err(error) = fs::remove_dir_all(sockets) {
        tracing::debug!(error.message = %error, folder = %sockets.display(), "an old socket folder stays");
    }
}

enum Process {
    Ours,
    Another,
    Gone,
}

/// Whether a process is the postmaster of this cluster: by its name and its arguments, which everybody may read.
fn whose(pid: u32, cluster: &Path) -> Process {
    let process = PathBuf::from(format!("/proc/{pid}"));
    // A process that has ended and was not waited for has no arguments any more.
    match fs::read(process.join("cmdline")) {
        Ok(arguments)
            if arguments.split(|byte| *byte == 0).any(|argument| argument == cluster.as_os_str().as_bytes()) =>
        {
            Process::Ours
        }
        Ok(_) => Process::Another,
        Err(_) => Process::Gone,
    }
}

fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("removed", path)(error)),
        _ => Ok(()),
    }
}
