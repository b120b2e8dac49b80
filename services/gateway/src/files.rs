//! Files of results: into the session's workspace, or, when it cannot take them, into the database. Nothing is lost by it.
//!
//! One result: `plan` gives each file its path and holds the quota (pure, under a lock of the session, and written before
//! anything else, so that no two calls share the same room) → [`Workspaces::put`] → the row says where the bytes are. A
//! crash between leaves a row whose file is missing: the same result processed again fills it.

mod listed;
mod plan;
mod words;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use gatehouse_types::{CallId, Clock, Locale, SessionId};
pub use gatehouse_workspace::Kind;
use gatehouse_workspace::{Cause, NewFile, Problem, Workspaces, name};
use sha2::{Digest as _, Sha256};
use tokio::{task::spawn_blocking, time::timeout};

pub use self::{
    listed::{File, Opened},
    plan::{Known, Planned, Step},
    words::Reason,
};
use crate::{
    error::Error,
    store::{self, Pool, files as rows},
};

/// Longest time for the rows of one result, or the bytes of one file that the database keeps.
const DATABASE_WITHIN: Duration = Duration::from_mins(1);
/// Longest media type and URI that are kept, in bytes.
const MEDIA_TYPE_BYTES: usize = 255;
const URI_BYTES: usize = 2_048;

/// A session, as far as its files go.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// Its id.
    pub id: SessionId,
    /// Its workspace, relative to the configured root; empty for none.
    pub workspace: &'a str,
}

/// A part of a result that is to be a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileToSave {
    /// Place within the result, from 0; no two files of a call have the same, and it is the same whenever that result is processed.
    pub place: u32,
    /// What it holds.
    pub kind: Kind,
    /// URI of the resource; empty for none.
    pub uri: String,
    /// Media type, as the server says; empty for none.
    pub media_type: String,
    /// What is in it.
    pub content: Bytes,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the session's workspace: the agent can open the path.
    Workspace,
    /// In the database: the platform and its users can fetch it, the agent cannot.
    Platform,
    /// Nowhere: they could not be kept.
    Nowhere,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Path relative to the workspace; empty when it is [`Place::Nowhere`].
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Media type, as the server says; empty for none.
    pub media_type: String,
    /// Where the bytes are.
    pub at: Place,
    /// What is not as it should be, in whole sentences in the session's language. `None` also for a session without a
    /// workspace, whose files are at [`Place::Platform`] by design.
    pub problem: Option<String>,
}

/// Saves and opens files of results. One for a process.
#[derive(Debug, Clone)]
pub struct Files {
    pool: Pool,
    clock: Arc<dyn Clock>,
    workspaces: Option<Workspaces>,
}

/// One result that is being saved.
struct Saving<'a> {
    owner: Owner<'a>,
    call: CallId,
    quota: u64,
    /// Keys of all names of the call.
    names: BTreeSet<String>,
}

impl Files {
    /// `workspaces` is `None` when the operator configured no root.
    pub fn new(pool: Pool, clock: Arc<dyn Clock>, workspaces: Option<Workspaces>) -> Self {
        Self { pool, clock, workspaces }
    }

    /// The configured root of workspaces.
    pub const fn workspaces(&self) -> Option<&Workspaces> {
        self.workspaces.as_ref()
    }

    /// Saves the files of a call's result: one answer for each, in order. Never fails as a whole. The same files again get
    /// the same paths. `quota` is the most bytes that all files of the session may have.
    pub async fn save(
        &self,
        owner: Owner<'_>,
        call: CallId,
        quota: u64,
        locale: Locale,
        mut files: Vec<FileToSave>,
    ) -> Vec<Saved> {
        if files.is_empty() {
            return Vec::new();
        }
        for file in &mut files {
            file.uri = plain(&file.uri, URI_BYTES);
            file.media_type = plain(&file.media_type, MEDIA_TYPE_BYTES);
        }
        let hashes = hashes(&files).await;
        let reserving = timeout(DATABASE_WITHIN, self.reserve(owner, call, quota, &files, &hashes)).await;
        let reserved = reserving.unwrap_or(Err(Error::DeadlineExceeded)).unwrap_or_else(|error| {
            log(owner.id, call, "the files of a result could not be listed", &error);
            None
        });
        let is_listed = reserved.is_some();
        let planned = reserved.unwrap_or_else(|| plan::plan(&files, &hashes, &[], 0, quota));
        let names = planned.iter().map(|planned| name::key(&planned.name)).collect();
        let saving = Saving { owner, call, quota, names };
        let mut saved = Vec::with_capacity(files.len());
        for (file, planned) in files.into_iter().zip(planned) {
            let (path, at, reasons) = match planned.step {
                Step::OverQuota => (String::new(), Place::Nowhere, vec![Reason::Quota(saving.quota)]),
                Step::Deleted => (String::new(), Place::Nowhere, vec![Reason::Deleted]),
                Step::New | Step::Known { .. } if !is_listed => self.unlisted(&saving, &file, &planned).await,
                Step::New | Step::Known { .. } => self.keep(&saving, &file, &planned).await,
            };
            let problem = words::sentences(&reasons, locale);
            saved.push(Saved { path, size: file.content.len() as u64, media_type: file.media_type, at, problem });
        }
        saved
    }

    /// Whether the session's files are the database's by design.
    fn is_platform(&self, owner: Owner<'_>) -> bool {
        self.workspaces.is_none() || owner.workspace.is_empty()
    }

    /// Decides and writes down what each file's path is, under the session's lock.
    async fn reserve(
        &self,
        owner: Owner<'_>,
        call: CallId,
        quota: u64,
        files: &[FileToSave],
        hashes: &[[u8; 32]],
    ) -> Result<Option<Vec<Planned>>, Error> {
        let mut transaction = store::begin(&self.pool).await?;
        let Some(used) = rows::lock_and_sum(&mut transaction, owner.id).await? else {
            return Ok(Some(files.iter().map(|_| Planned::deleted()).collect()));
        };
        let known = rows::of_call(&mut transaction, call).await?;
        let planned = plan::plan(files, hashes, &known, used, quota);
        let now = self.clock.now();
        for ((file, planned), sha256) in files.iter().zip(&planned).zip(hashes) {
            if planned.step == Step::New {
                let path = gatehouse_workspace::path(call, &planned.name);
                // Where there is no workspace to try first, the bytes go with the row.
                let content = self.is_platform(owner).then_some(&file.content);
                let new = rows::NewRow { session: owner.id, call, path: &path, file, sha256, content, now };
                rows::put(&mut transaction, &new).await?;
            }
        }
        store::commit(transaction).await?;
        Ok(Some(planned))
    }

    /// Brings a file whose row is written to its place.
    async fn keep(&self, saving: &Saving<'_>, file: &FileToSave, planned: &Planned) -> (String, Place, Vec<Reason>) {
        let path = gatehouse_workspace::path(saving.call, &planned.name);
        let was_platform = matches!(planned.step, Step::Known { in_platform: true });
        let workspaces = match &self.workspaces {
            _ if saving.owner.workspace.is_empty() => return self.platform(saving, file, planned, None).await,
            None => return self.platform(saving, file, planned, Some(Cause::NoRoot)).await,
            Some(workspaces) => workspaces,
        };
        if planned.step == (Step::Known { in_platform: false })
            && workspaces.holds(saving.owner.workspace, &path).await.unwrap_or(false)
        {
            return (path, Place::Workspace, Vec::new());
        }
        match workspaces.put(saving.file(file, planned)).await {
            Ok(name) => {
                let real = gatehouse_workspace::path(saving.call, &name);
                if real == path && !was_platform {
                    return (real, Place::Workspace, Vec::new());
                }
                let moved = self.moved(saving, file, &real, None).await;
                let reasons = moved.err().map(|error| {
                    log(saving.owner.id, saving.call, "a saved file could not be listed", &error);
                    Reason::Unlisted
                });
                (real, Place::Workspace, reasons.into_iter().collect())
            }
            Err(problem) => {
                refused(saving.owner.id, saving.call, &problem);
                self.platform(saving, file, planned, Some(problem.cause)).await
            }
        }
    }

    /// Keeps a file in the database, if it is not there already.
    async fn platform(
        &self,
        saving: &Saving<'_>,
        file: &FileToSave,
        planned: &Planned,
        cause: Option<Cause>,
    ) -> (String, Place, Vec<Reason>) {
        let path = gatehouse_workspace::path(saving.call, &planned.name);
        let is_there = match planned.step {
            Step::Known { in_platform } => in_platform,
            _ => self.is_platform(saving.owner),
        };
        let kept = if is_there { Ok(()) } else { self.moved(saving, file, &path, Some(&file.content)).await };
        let Err(error) = kept else {
            return (path, Place::Platform, cause.map(Reason::NotInWorkspace).into_iter().collect());
        };
        log(saving.owner.id, saving.call, "the database did not take a file either", &error);
        if let Err(error) = self.forget(saving.call, file.place).await {
            log(saving.owner.id, saving.call, "the row of a file that could not be kept stays", &error);
        }
        let reasons = cause.map(Reason::NotInWorkspace).into_iter().chain([Reason::Lost]).collect();
        (String::new(), Place::Nowhere, reasons)
    }

    /// Saves a file although the database does not answer.
    async fn unlisted(
        &self,
        saving: &Saving<'_>,
        file: &FileToSave,
        planned: &Planned,
    ) -> (String, Place, Vec<Reason>) {
        let nowhere = |cause: Option<Cause>| {
            let reasons = cause.map(Reason::NotInWorkspace).into_iter().chain([Reason::Lost]).collect();
            (String::new(), Place::Nowhere, reasons)
        };
        match &self.workspaces {
            Some(workspaces) if !saving.owner.workspace.is_empty() => {
                match workspaces.put(saving.file(file, planned)).await {
                    Ok(name) => {
                        let path = gatehouse_workspace::path(saving.call, &name);
                        (path, Place::Workspace, vec![Reason::Unlisted])
                    }
                    Err(problem) => {
                        refused(saving.owner.id, saving.call, &problem);
                        nowhere(Some(problem.cause))
                    }
                }
            }
            _ => nowhere(None),
        }
    }

    /// Says where a file is now.
    async fn moved(
        &self,
        saving: &Saving<'_>,
        file: &FileToSave,
        path: &str,
        content: Option<&Bytes>,
    ) -> Result<(), Error> {
        let moving = async {
            let mut connection = store::acquire(&self.pool).await?;
            rows::moved(&mut connection, saving.call, file.place, path, content).await
        };
        timeout(DATABASE_WITHIN, moving).await.unwrap_or(Err(Error::DeadlineExceeded))
    }

    async fn forget(&self, call: CallId, place: u32) -> Result<(), Error> {
        let mut connection = store::acquire(&self.pool).await?;
        rows::forget(&mut connection, call, place).await
    }
}

impl Saving<'_> {
    fn file(&self, file: &FileToSave, planned: &Planned) -> NewFile {
        let own = name::key(&planned.name);
        NewFile {
            workspace: self.owner.workspace.to_owned(),
            call: self.call,
            name: planned.name.clone(),
            avoid: self.names.iter().filter(|name| **name != own).cloned().collect(),
            content: file.content.clone(),
        }
    }
}

/// SHA-256 of each file, on a thread that may work for a while.
async fn hashes(files: &[FileToSave]) -> Vec<[u8; 32]> {
    let contents: Vec<Bytes> = files.iter().map(|file| file.content.clone()).collect();
    let hash = move || contents.iter().map(|content| Sha256::digest(content).into()).collect::<Vec<[u8; 32]>>();
    spawn_blocking(hash.clone()).await.unwrap_or_else(|_| hash())
}

/// Text of a server as it is stored: on one line, and of a bounded length.
fn plain(text: &str, most: usize) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    text[..text.floor_char_boundary(most)].to_owned()
}

fn log(session: SessionId, call: CallId, what: &str, error: &Error) {
    tracing::warn!(session.id = %session, call.id = %call, error.message = ?error, "{what}");
}

fn refused(session: SessionId, call: CallId, problem: &Problem) {
    let why = std::error::Error::source(problem).map(ToString::to_string).unwrap_or_default();
    tracing::warn!(session.id = %session, call.id = %call, error.message = %problem, error.cause = why,
        "a workspace did not take a file");
}
