//! The account that Postgres runs under: our own, or another one when we are root, as which Postgres does not run.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink},
    path::{Path, PathBuf},
};

use gatehouse_types::secret::random_bytes;
use tokio::process::Command;

use super::{Error, failed};

const ACCOUNT: &str = "postgres";
/// Where clusters live that cannot live in their data folders.
const ELSEWHERE: &str = "/var/lib/gatehouse";

/// Who runs Postgres.
#[derive(Debug, Clone)]
pub(super) struct User {
    name: String,
    /// The account to change to; none: our own.
    ids: Option<(u32, u32)>,
}

impl User {
    /// For a data folder: our own account; as root that of the folder's owner, or `postgres` when root owns it.
    pub(super) fn for_folder(data: &Path) -> Result<Self, Error> {
        // The owner of a file that a process makes is the process's; `/proc/self` says so without making one.
        let own = fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid());
        if own != 0 {
            return Ok(Self { name: own.to_string(), ids: None });
        }
        let owner = fs::metadata(data).map_err(failed("opened", data))?;
        if owner.uid() != 0 {
            return Ok(Self { name: owner.uid().to_string(), ids: Some((owner.uid(), owner.gid())) });
        }
        let accounts = Path::new("/etc/passwd");
        let accounts = fs::read_to_string(accounts).map_err(failed("read", accounts))?;
        let ids = accounts.lines().find_map(|line| ids(line, ACCOUNT)).ok_or(Error::NoUser)?;
        Ok(Self { name: ACCOUNT.to_owned(), ids: Some(ids) })
    }

    /// Makes `command` run under the account.
    pub(super) fn run_as(&self, command: &mut Command) {
        if let Some((uid, gid)) = self.ids {
            command.uid(uid).gid(gid);
        }
    }

    /// Makes a folder that only this account (and root) can enter.
    pub(super) fn private_folder(&self, path: &Path) -> Result<(), Error> {
        fs::DirBuilder::new().mode(0o700).create(path).map_err(failed("made", path))?;
        match self.ids {
            Some((uid, gid)) => {
                chown(path, Some(uid), Some(gid)).map_err(failed("given to the user of Postgres", path))
            }
            None => Ok(()),
        }
    }

    /// The real path of folder `name` in `data`, which need not be there yet, such that this account can reach it. When
    /// the parents of `data` cannot be entered, the folder is another one that a link in `data` leads to.
    pub(super) fn reachable_folder(&self, data: &Path, name: &str) -> Result<PathBuf, Error> {
        let folder = data.join(name);
        if let Ok(target) = fs::read_link(&folder) {
            return Ok(target);
        }
        let Some((uid, gid)) = self.ids else { return Ok(folder) };
        let owner = fs::metadata(data).map_err(failed("opened", data))?;
        if owner.uid() != uid && owner.mode() & 0o001 == 0 {
            // Only through, not to read: the group of the account may enter the data folder.
            chown(data, None, Some(gid)).map_err(failed("given to the group of Postgres", data))?;
            let mode = fs::Permissions::from_mode(0o710);
            fs::set_permissions(data, mode).map_err(failed("opened for the group of Postgres", data))?;
        }
        let Some(closed) = data.ancestors().find(|ancestor| !may_enter(ancestor, uid, gid)) else { return Ok(folder) };
        if folder.exists() {
            return Err(Error::Unreachable { user: self.name.clone(), folder: closed.display().to_string() });
        }
        let random = u64::from_be_bytes(random_bytes()?);
        let elsewhere = Path::new(ELSEWHERE);
        fs::DirBuilder::new().recursive(true).mode(0o711).create(elsewhere).map_err(failed("made", elsewhere))?;
        let parent = elsewhere.join(format!("{random:016x}"));
        self.private_folder(&parent)?;
        let target = parent.join(name);
        symlink(&target, &folder).map_err(failed("made", &folder))?;
        tracing::warn!(
            "user {} cannot enter {}, so the Postgres cluster lives in {}",
            self.name,
            closed.display(),
            target.display()
        );
        Ok(target)
    }
}

/// User and group id of the account `name` in a line of `/etc/passwd`.
fn ids(line: &str, name: &str) -> Option<(u32, u32)> {
    let mut fields = line.split(':');
    if fields.next() != Some(name) {
        return None;
    }
    Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn may_enter(folder: &Path, uid: u32, gid: u32) -> bool {
    let entered: io::Result<bool> = fs::metadata(folder).map(|folder| {
        let bit = if folder.uid() == uid {
            0o100
        } else if folder.gid() == gid {
            0o010
        } else {
            0o001
        };
        folder.mode() & bit != 0
    });
    entered.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        assert_eq!(ids("postgres:x:101:104:PostgreSQL:/var/lib/postgresql:/bin/bash", "postgres"), Some((101, 104)));
        assert_eq!(ids("postgres2:x:101:104::/:/bin/sh", "postgres"), None);
        assert_eq!(ids("postgres:x:what", "postgres"), None);
    }
}
