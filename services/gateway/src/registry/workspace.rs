//! Where a session's workspace is on this machine.
//!
//! The folder need not exist when the session is made. What exists of it must be folders that stay under the
//! configured root when links are followed. Files are written later through handles that cannot leave the root; this
//! check is for people.

use std::path::{Path, PathBuf};

use crate::error::Error;

const FIELD: &str = "workspace";

/// Checks a workspace (already of the shape of [`super::session::workspace`]) against the root. Empty is no
/// workspace.
pub async fn check(root: Option<&Path>, workspace: &str) -> Result<(), Error> {
    if workspace.is_empty() {
        return Ok(());
    }
    let Some(root) = root else {
        let words = "cannot be used: no root is configured; set `GATEHOUSE_WORKSPACE_ROOT` or leave it out";
        return Err(Error::field(FIELD, words));
    };
    let unavailable = |_| Error::Unavailable("the configured root of workspaces cannot be read".to_owned());
    let real_root = tokio::fs::canonicalize(root).await.map_err(unavailable)?;
    let mut place: PathBuf = real_root.clone();
    for segment in workspace.split('/') {
        place.push(segment);
        match tokio::fs::canonicalize(&place).await {
            Ok(real) if !real.starts_with(&real_root) => {
                return Err(Error::field(FIELD, "leaves the configured root through a link"));
            }
            Ok(real) => place = real,
            // The rest is to be made; but a dangling link is not.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let dangling = tokio::fs::symlink_metadata(&place).await.is_ok();
                return if dangling { Err(Error::field(FIELD, "goes through a broken link")) } else { Ok(()) };
            }
            Err(_) => return Err(Error::field(FIELD, "is not a folder that can be read")),
        }
        let is_folder = tokio::fs::metadata(&place).await.is_ok_and(|facts| facts.is_dir());
        if !is_folder {
            return Err(Error::field(FIELD, "goes through something that is not a folder"));
        }
    }
    Ok(())
}
