//! A program's own folder, and its user id.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Gid, Uid, chown},
    process::geteuid,
};

use crate::{StartError, USER_IDS};

/// Where a program lives.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// Its folder.
    pub(crate) path: PathBuf,
    /// Its user id when Gatehouse runs as root: it is the owner of its home, which is where it is remembered.
    pub(crate) user: Option<u32>,
    /// A folder with an `/etc/passwd` that names nobody else.
    pub(crate) etc: PathBuf,
}

/// Makes what is missing. A home that is there keeps its owner.
pub(crate) fn prepare(root: &Path, name: &str) -> Result<Home, StartError> {
    let (homes, etc) = (root.join("homes"), root.join("etc"));
    let path = homes.join(name);
    let made = (|| {
        fs::create_dir_all(&homes)?;
        // Others may pass through, and see nothing.
        fs::set_permissions(root, fs::Permissions::from_mode(0o711))?;
        fs::set_permissions(&homes, fs::Permissions::from_mode(0o711))?;
        fs::create_dir_all(&etc)?;
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => fs::set_permissions(&path, fs::Permissions::from_mode(0o700)),
        }
    })();
    made.map_err(StartError::Home)?;
    let user = if geteuid().is_root() { Some(own(&homes, &path)?) } else { None };
    let id = user.unwrap_or_else(|| geteuid().as_raw());
    let passwd = format!("root:x:0:0::/:/usr/sbin/nologin\nserver:x:{id}:{id}::/server:/bin/sh\n");
    let group = format!("root:x:0:\nserver:x:{id}:\n");
    let etc = etc.join(id.to_string());
    let written = (|| {
        fs::create_dir_all(&etc)?;
        fs::write(etc.join("passwd"), passwd)?;
        fs::write(etc.join("group"), group)
    })();
    written.map_err(StartError::Home)?;
    Ok(Home { path, user, etc })
}

/// The home's owner, which becomes one that owns no other home.
fn own(homes: &Path, home: &Path) -> Result<u32, StartError> {
    let owner = |path: &Path| fs::metadata(path).map(|found| found.uid());
    let own = owner(home).map_err(StartError::Home)?;
    if USER_IDS.contains(&own) {
        return Ok(own);
    }
    let entries = fs::read_dir(homes).map_err(StartError::Home)?;
    let taken: BTreeSet<u32> = entries.flatten().filter_map(|entry| owner(&entry.path()).ok()).collect();
    let free = USER_IDS.clone().find(|id| !taken.contains(id)).ok_or(StartError::NoUserId)?;
    chown(home, Some(Uid::from_raw(free)), Some(Gid::from_raw(free)))
        .map_err(|error| StartError::Home(error.into()))?;
    Ok(free)
}
