//! A program's own folder, and its user id.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::{
    fs::{Gid, Uid, chown},
    process::geteuid,
};

use crate::{Config, HOME, StartError};

/// A folder beside the homes: what each user has of `/etc`.
const ETC: &str = "etc";

/// Two starts at once must not take the same user id.
static TAKING: Mutex<()> = Mutex::new(());

/// Where a program lives.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// Its folder.
    pub(crate) path: PathBuf,
    /// Its user id when Gatehouse runs as root: the owner of the home, which is where it is remembered.
    pub(crate) user: Option<u32>,
    /// A folder with a `passwd` and a `group` that name nobody else.
    pub(crate) etc: PathBuf,
}

/// Makes what is missing. A home that is there keeps its owner.
pub(crate) fn prepare(name: &str, config: &Config) -> Result<Home, StartError> {
    let home = &config.homes().join(name);
    let failed = |error| StartError::Home(home.to_owned(), error);
    let _taking = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
    make(home, config).map_err(failed)?;
    let user = if geteuid().is_root() { Some(own(home, config)?) } else { None };
    let id = user.unwrap_or_else(|| geteuid().as_raw());
    let etc = config.root.join(ETC).join(id.to_string());
    write_etc(&etc, id).map_err(failed)?;
    Ok(Home { path: home.to_owned(), user, etc })
}

fn make(home: &Path, config: &Config) -> io::Result<()> {
    let homes = config.homes();
    fs::create_dir_all(&homes)?;
    // Others may pass through, and list nothing.
    for folder in [&config.root, &homes] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o711))?;
    }
    match fs::DirBuilder::new().mode(0o700).create(home) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if !fs::symlink_metadata(home)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "something else has its name"));
    }
    fs::set_permissions(home, fs::Permissions::from_mode(0o700))
}

/// The home's owner, which becomes one that owns no other home.
fn own(home: &Path, config: &Config) -> Result<u32, StartError> {
    let failed = |error| StartError::Home(home.to_owned(), error);
    let owner = |path: &Path| fs::symlink_metadata(path).map(|found| found.uid());
    let now = owner(home).map_err(failed)?;
    if config.users.contains(&now) {
        return Ok(now);
    }
    let entries = fs::read_dir(config.homes()).map_err(failed)?;
    let taken: BTreeSet<u32> = entries.flatten().filter_map(|entry| owner(&entry.path()).ok()).collect();
    let mut all = config.users.clone();
    let free = all.find(|id| !taken.contains(id)).ok_or(StartError::NoUserId(config.users.len()))?;
    chown(home, Some(Uid::from_raw(free)), Some(Gid::from_raw(free))).map_err(|error| failed(error.into()))?;
    Ok(free)
}

fn write_etc(etc: &Path, id: u32) -> io::Result<()> {
    fs::create_dir_all(etc)?;
    let passwd = format!("root:x:0:0::/:/usr/sbin/nologin\nserver:x:{id}:{id}::{HOME}:/bin/sh\n");
    for (name, text) in [("passwd", passwd), ("group", format!("root:x:0:\nserver:x:{id}:\n"))] {
        let path = etc.join(name);
        // A program that runs may have it mounted: it is replaced only when it differs, and never half.
        if fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
            let fresh = etc.join(format!(".{name}"));
            fs::write(&fresh, text)?;
            fs::rename(&fresh, &path)?;
        }
    }
    Ok(())
}
