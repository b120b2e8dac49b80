//! The Postgres programs of this machine.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::Error;

/// Oldest major version that works.
pub(super) const OLDEST: u32 = 14;
/// Newest major version that is known to work.
pub(super) const NEWEST: u32 = 18;
/// What must be there.
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "pg_ctl"];
/// Where distributions put them, by version.
const FOLDERS: [(&str, &str); 3] =
    [("/usr/lib/postgresql", "bin"), ("/usr/local/opt", "bin"), ("/opt/homebrew/opt", "bin")];

/// The programs of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binaries {
    folder: PathBuf,
    /// Major version.
    pub(super) major: u32,
}

impl Binaries {
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// All installations of a version that works: those of `PATH` first, then the distribution's.
pub(super) fn find() -> Vec<Binaries> {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    for (base, below) in FOLDERS {
        let versions = fs::read_dir(base).into_iter().flatten().flatten().map(|entry| entry.path().join(below));
        folders.extend(versions);
    }
    let mut seen = BTreeSet::new();
    // The real folder: the programs find their libraries and files from it, and links to single programs lead to the
    // others.
    let real =
        folders.iter().filter_map(|folder| folder.join("postgres").canonicalize().ok()?.parent().map(Path::to_owned));
    let mut found = Vec::new();
    for folder in real.filter(|folder| seen.insert(folder.clone())) {
        if PROGRAMS.iter().all(|program| folder.join(program).is_file())
            && let Some(major) = major_version(&folder.join("postgres"))
            && (OLDEST..=NEWEST).contains(&major)
        {
            found.push(Binaries { folder, major });
        }
    }
    found
}

fn major_version(postgres: &Path) -> Option<u32> {
    let output = Command::new(postgres).arg("--version").stdin(Stdio::null()).output().ok()?;
    parse_version(&String::from_utf8_lossy(&output.stdout))
}

/// The major version in `postgres (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1)`; also of `18beta2` and `19devel`.
fn parse_version(text: &str) -> Option<u32> {
    let version = text.split_once("(PostgreSQL) ")?.1;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The installation to use: the one whose version made the cluster, or the newest when there is no cluster yet.
pub(super) fn choose(found: Vec<Binaries>, made_by: Option<String>) -> Result<Binaries, Error> {
    let Some(made_by) = made_by else {
        return found.into_iter().max_by_key(|binaries| binaries.major).ok_or(Error::NoBinaries);
    };
    if let Some(same) = found.iter().find(|binaries| binaries.major.to_string() == made_by) {
        return Ok(same.clone());
    }
    if found.is_empty() {
        return Err(Error::NoBinaries);
    }
    Err(Error::OtherVersion { made_by, found: found.iter().map(|binaries| binaries.major.to_string()).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(versions: &[u32]) -> Vec<Binaries> {
        versions.iter().map(|major| Binaries { folder: PathBuf::from(format!("/{major}")), major: *major }).collect()
    }

    #[test]
    fn the_version_is_read_from_what_postgres_prints() {
        assert_eq!(parse_version("postgres (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1)\n"), Some(15));
        assert_eq!(parse_version("postgres (PostgreSQL) 18beta2\n"), Some(18));
        assert_eq!(parse_version("command not found"), None);
    }

    #[test]
    fn a_new_cluster_takes_the_newest_and_an_old_one_its_own_version() {
        assert_eq!(choose(installed(&[15, 17, 16]), None).unwrap().major, 17);
        assert_eq!(choose(installed(&[15, 17, 16]), Some("16".to_owned())).unwrap().major, 16);
    }

    #[test]
    fn another_version_is_refused_with_both_named_and_none_with_what_to_install() {
        let error = choose(installed(&[15, 17]), Some("16".to_owned())).unwrap_err().to_string();
        assert!(error.contains("made by Postgres 16, and this machine has 15 and 17"), "{error}");
        assert!(error.contains("postgresql-16"), "{error}");
        let error = choose(Vec::new(), None).unwrap_err().to_string();
        assert!(error.contains("apt-get install postgresql") && error.contains("DATABASE_URL"), "{error}");
    }
}
