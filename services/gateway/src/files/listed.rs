//! Files that were saved, as they are listed and read.

use bytes::Bytes;
use gatehouse_types::{CallId, SessionId};
use gatehouse_workspace::{CHUNK_BYTES, Cause, Problem, Reading};
use time::OffsetDateTime;

use super::Files;
use crate::{
    error::Error,
    store::{self, Pool, files as rows},
};

/// How much the database is asked for at a time.
const SLICE_BYTES: u32 = 4 << 20;

/// A file in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path relative to the workspace.
    pub path: String,
    /// Size in bytes when it was saved.
    pub size: u64,
    /// Media type; empty for none.
    pub media_type: String,
    /// URI; empty for none.
    pub uri: String,
    /// The call.
    pub call: CallId,
    /// Name of the server; empty when the call is not in the record (yet).
    pub server: String,
    /// Name of the tool; empty when the call is not in the record (yet).
    pub tool: String,
    /// When it was saved.
    pub created_at: OffsetDateTime,
    /// Whether the database has the bytes.
    pub in_platform: bool,
    /// SHA-256 of what was saved.
    pub sha256: Vec<u8>,
}

/// A file that is being read.
#[derive(Debug)]
pub struct Opened {
    /// The file, with its size as it is now.
    pub file: File,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Workspace(Reading),
    Platform { pool: Pool, session: SessionId, offset: u64, slice: Bytes },
}

impl Files {
    /// Opens a file that is in the list of a session.
    pub async fn open(&self, session: SessionId, workspace: &str, path: &str) -> Result<Opened, Error> {
        let mut connection = store::acquire(&self.pool).await?;
        let mut file = rows::get(&mut connection, session, path).await?;
        drop(connection);
        if file.in_platform {
            let source = Source::Platform { pool: self.pool.clone(), session, offset: 0, slice: Bytes::new() };
            return Ok(Opened { file, source });
        }
        let workspaces = match &self.workspaces {
            Some(workspaces) if !workspace.is_empty() => workspaces,
            _ => return Err(failure(path, &Cause::NoRoot.into())),
        };
        let reading = workspaces.open(workspace, path).await.map_err(|problem| failure(path, &problem))?;
        file.size = reading.size;
        Ok(Opened { file, source: Source::Workspace(reading) })
    }
}

impl Opened {
    /// The next bytes, at most 64 KiB; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        match &mut self.source {
            Source::Workspace(reading) => reading.next().await.map_err(|problem| failure(&self.file.path, &problem)),
            Source::Platform { pool, session, offset, slice } => {
                if *offset >= self.file.size {
                    return Ok(None);
                }
                if slice.is_empty() {
                    let mut connection = store::acquire(pool).await?;
                    let read = rows::slice(&mut connection, *session, &self.file.path, *offset, SLICE_BYTES).await?;
                    // It was brought into the workspace meanwhile, or deleted with its session.
                    *slice = read.filter(|slice| !slice.is_empty()).ok_or_else(|| {
                        let words = format!("`{}` was moved while it was read; read it again", self.file.path);
                        Error::Unavailable(words)
                    })?;
                }
                let chunk = slice.split_to(slice.len().min(CHUNK_BYTES));
                *offset += chunk.len() as u64;
                Ok(Some(chunk))
            }
        }
    }
}

/// A problem of a workspace as the error of a request.
fn failure(path: &str, problem: &Problem) -> Error {
    let words = format!("`{path}` cannot be read: {problem}");
    match problem.cause {
        Cause::Gone => Error::not_found("file in the workspace any more at", path),
        Cause::Changed | Cause::NoRoot | Cause::Silent | Cause::Unreachable | Cause::Refused | Cause::Other => {
            tracing::warn!(error.message = ?problem, "a file of a workspace could not be read");
            Error::Unavailable(words)
        }
        _ => Error::Precondition(words),
    }
}
