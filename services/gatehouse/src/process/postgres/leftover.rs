//! What a killed `up` left behind: a Postgres that still runs, or its `postmaster.pid`.

use std::{fs, io, path::Path};

use super::{Cluster, Error, failed};

/// Stops a Postgres that still runs on the cluster. We hold the lock of the data folder, so it belongs to no other `up`.
pub(super) async fn end(cluster: &Cluster) -> Result<(), Error> {
    let file = cluster.folder.join("postmaster.pid");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("read", &file)(error)),
    };
    let pid = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok());
    match pid.map(|pid| whose(pid, &cluster.folder)) {
        Some(Process::Ours) => {
            tracing::warn!(process.id = pid, "a Postgres of an `up` that was killed still runs; it is stopped");
            if cluster.pg_ctl_stop("fast").await.is_err() {
                cluster.pg_ctl_stop("immediate").await?;
            }
            Ok(())
        }
        Some(Process::Another) => {
            // Postgres takes any live process of this number for another Postgres and would not start.
            tracing::warn!(process.id = pid, "the process id of a killed Postgres is another process now");
            fs::remove_file(&file).map_err(failed("removed", &file))
        }
        // Postgres checks for itself that nothing uses its memory any more, and replaces the file.
        Some(Process::Gone) | None => Ok(()),
    }
}

enum Process {
    Ours,
    Another,
    Gone,
}

/// A postmaster works in the folder of its cluster.
fn whose(pid: u32, cluster: &Path) -> Process {
    let process = Path::new("/proc").join(pid.to_string());
    if !process.exists() {
        return Process::Gone;
    }
    match (fs::read_link(process.join("cwd")), cluster.canonicalize()) {
        (Ok(works_in), Ok(cluster)) if works_in == cluster => Process::Ours,
        (Ok(_), Ok(_)) => Process::Another,
        // Not ours to look at, or gone meanwhile: Postgres decides.
        _ => Process::Gone,
    }
}
