//! The data folder of `up`: who owns it, the secrets in it, and the lock that keeps a second `up` out.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use gatehouse_types::secret::NoRandomness;
use secrecy::{ExposeSecret as _, SecretString};

const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;
const WRITABLE_BY_ALL: u32 = 0o002;
const LOCK: &str = "lock";

/// The data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("neither XDG_DATA_HOME nor HOME is set; say where the data folder is: --data FOLDER or GATEHOUSE_DATA")]
    NoHome,
    #[error("the data folder {0} can be written by every user of this machine; choose another one")]
    WritableByAll(PathBuf),
    #[error("another `gatehouse up` runs on the data folder {path}{holder}")]
    Locked { path: PathBuf, holder: String },
    #[error("{path} cannot be {what}")]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        why: io::Error,
    },
    #[error("{0} is empty or not text; remove it to have a new one made, or bring back the old one")]
    Unreadable(PathBuf),
    #[error("the system gave no random bytes")]
    NoRandomness(#[from] NoRandomness),
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |why| Error::Io { what, path, why }
}

/// A locked data folder. The lock ends with the process, however it ends.
#[derive(Debug)]
pub(super) struct DataFolder {
    path: PathBuf,
    _lock: File,
}

impl DataFolder {
    /// Makes the folder when it is not there (mode 0700), and locks it. `chosen`, else `./.gatehouse` when there is
    /// one, else `$XDG_DATA_HOME/gatehouse`.
    pub(super) fn open(chosen: Option<&Path>) -> Result<Self, Error> {
        let path = match chosen {
            Some(path) => path.to_owned(),
            None => default_path()?,
        };
        let is_new = !path.exists();
        if is_new {
            // The folders above it are not ours to close.
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed("made", parent))?;
            }
            fs::DirBuilder::new().mode(PRIVATE_FOLDER).create(&path).map_err(failed("made", &path))?;
        }
        let path = path.canonicalize().map_err(failed("opened", &path))?;
        let mode = fs::metadata(&path).map_err(failed("opened", &path))?.mode();
        if mode & WRITABLE_BY_ALL != 0 {
            return Err(Error::WritableByAll(path));
        }
        let is_ours = is_new || path.join(LOCK).exists();
        let lock = lock(&path)?;
        if is_ours && mode & 0o077 & !0o010 != 0 {
            // A folder of somebody else's making keeps its mode; the files in it are private by themselves.
            fs::set_permissions(&path, fs::Permissions::from_mode(PRIVATE_FOLDER)).map_err(failed("closed", &path))?;
        }
        Ok(Self { path, _lock: lock })
    }

    /// Its real path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The secret in the file of this name; made by `generate` (mode 0600) when there is no such file. Never
    /// overwritten.
    pub(super) fn secret(
        &self,
        name: &str,
        generate: impl FnOnce() -> Result<SecretString, NoRandomness>,
    ) -> Result<SecretString, Error> {
        let path = self.path.join(name);
        if path.exists() {
            let text = SecretString::from(fs::read_to_string(&path).map_err(failed("read", &path))?.trim());
            return if text.expose_secret().is_empty() { Err(Error::Unreadable(path)) } else { Ok(text) };
        }
        let secret = generate()?;
        // Written whole under another name first: a crash must not leave an empty secret.
        let part = self.path.join(format!("{name}.part"));
        match fs::remove_file(&part) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("removed", &part)(error)),
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(&part);
        let file = file.as_mut().map_err(|error| io::Error::new(error.kind(), error.to_string()));
        let file = file.map_err(failed("made", &part))?;
        writeln!(file, "{}", secret.expose_secret())
            .and_then(|()| file.sync_all())
            .map_err(failed("written", &part))?;
        // A hard link fails when the name is taken; a rename would overwrite.
        fs::hard_link(&part, &path).map_err(failed("made", &path))?;
        fs::remove_file(&part).map_err(failed("removed", &part))?;
        Ok(secret)
    }

    /// A private folder in the data folder, made when it is not there.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        fs::DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER).create(&path).map_err(failed("made", &path))?;
        Ok(path)
    }
}

fn default_path() -> Result<PathBuf, Error> {
    let here = PathBuf::from(".gatehouse");
    if here.is_dir() {
        return Ok(here);
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
    Ok(base.ok_or(Error::NoHome)?.join("gatehouse"))
}

fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE);
    let mut file = options.open(&path).map_err(failed("opened", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only for the words: without a number they are still true.
            let _ = file.read_to_string(&mut holder);
            let holder = holder.trim().parse::<u32>().map(|pid| format!(" (process {pid})")).unwrap_or_default();
            return Err(Error::Locked { path: folder.to_owned(), holder });
        }
        Err(TryLockError::Error(why)) => return Err(failed("locked", &path)(why)),
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed("written", &path))?;
    Ok(file)
}
