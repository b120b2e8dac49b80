//! Whether a session can have a workspace.
//!
//! The folder need not exist when the session is made. What exists of it must be folders under the configured root, and no
//! links: files are written later without following any.

use gatehouse_workspace::{Cause, Workspaces};

use crate::error::Error;

const FIELD: &str = "workspace";

/// Checks a workspace (already of the shape of [`super::session::workspace`]) against the root. Empty is no
/// workspace.
pub async fn check(root: Option<&Workspaces>, workspace: &str) -> Result<(), Error> {
    if workspace.is_empty() {
        return Ok(());
    }
    let Some(root) = root else {
        let words = "cannot be used: no root is configured; set `GATEHOUSE_WORKSPACE_ROOT` or leave it out";
        return Err(Error::field(FIELD, words));
    };
    root.check(workspace).await.map_err(|problem| match &problem.cause {
        Cause::Link(path) => Error::field(FIELD, format!("goes through a link at `{path}`; give the real path")),
        Cause::InTheWay(path) => Error::field(FIELD, format!("goes through `{path}`, which is not a folder")),
        Cause::Permission => Error::field(FIELD, "is not a folder that can be read"),
        Cause::BadPath => Error::field(FIELD, "takes a path of plain names below the configured root"),
        _ => {
            tracing::warn!(error.message = ?problem, "a workspace could not be checked");
            Error::Unavailable("the configured root of workspaces cannot be read".to_owned())
        }
    })
}
