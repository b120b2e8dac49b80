//! How a file gets its name: whole or not at all, and never in the place of another.

use std::io::{self, Read as _};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::fs::{Dir, File, OpenOptions};
use rustix::{
    fs::{Mode, OFlags, RenameFlags},
    io::Errno,
};

use super::open_file;
use crate::{
    Occupant,
    problem::{Cause, Problem},
};

/// Most temporary names that are tried. A crash leaves one behind, so a few can be there.
const MOST_TEMPORARY: usize = 100;
const COMPARE_BYTES: usize = 64 << 10;

/// What stands at a name, next to what is to be there.
pub(super) fn occupant(folder: &Dir, name: &str, content: &[u8]) -> Result<Occupant, Problem> {
    match open_file(folder, name) {
        Ok((file, size)) if size == content.len() as u64 => {
            Ok(if holds(file, content)? { Occupant::Same } else { Occupant::Other })
        }
        Ok(_) => Ok(Occupant::Other),
        Err(problem) => match problem.cause {
            Cause::Gone => Ok(Occupant::Nothing),
            // Whatever it is, it is not ours; also a file that may not be read.
            Cause::Link(_) | Cause::InTheWay(_) | Cause::Permission => Ok(Occupant::Other),
            _ => Err(problem),
        },
    }
}

fn holds(mut file: File, content: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; COMPARE_BYTES.min(content.len())];
    for part in content.chunks(COMPARE_BYTES) {
        let read = &mut buffer[..part.len()];
        match file.read_exact(read) {
            Ok(()) if read == part => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Writes a file and gives it its name. `false` when something had the name, and then nothing is left behind.
pub(super) fn publish(
    folder: &Dir,
    name: &str,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<bool, Problem> {
    let (temporary, mut file) = temporary(folder, name)?;
    let written = write(&mut file).and_then(|()| file.sync_all());
    drop(file);
    let placed = written.and_then(|()| place(folder, &temporary, name));
    if matches!(placed, Ok(true)) {
        flush(folder)?;
        return Ok(true);
    }
    // What failed before counts more than a temporary file that stays.
    if let Err(error) = folder.remove_file(&temporary) {
        tracing::debug!(error.message = %error, "a temporary file stays in a workspace");
    }
    Ok(placed?)
}

/// A fresh file under a name that no result has: results' names begin with no dot.
fn temporary(folder: &Dir, name: &str) -> Result<(String, File), Problem> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).follow(FollowSymlinks::No);
    for number in 1..=MOST_TEMPORARY {
        let temporary = format!(".{name}.{number}.part");
        match folder.open_with(&temporary, &options) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Cause::Crowded.into())
}

/// Gives a file its final name, if nothing has it. One of two ways is known to every file system that is in use.
fn place(folder: &Dir, temporary: &str, name: &str) -> io::Result<bool> {
    match rustix::fs::renameat_with(folder, temporary, folder, name, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => link(folder, temporary, name),
        Err(error) => Err(error.into()),
    }
}

fn link(folder: &Dir, temporary: &str, name: &str) -> io::Result<bool> {
    match folder.hard_link(temporary, folder, name) {
        Ok(()) => folder.remove_file(temporary).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a new name in a directory last. The directory is opened again, because its handle is one for paths only.
pub(super) fn flush(folder: &Dir) -> Result<(), Problem> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(folder, ".", flags, Mode::empty());
    match opened.and_then(rustix::fs::fsync) {
        // Some file systems have nothing to flush there, and a directory may be writable and not readable.
        Ok(()) | Err(Errno::INVAL | Errno::NOTSUP | Errno::ACCESS) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use cap_std::ambient_authority;

    use super::*;

    struct Folder(std::path::PathBuf, Dir);

    impl Folder {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("gatehouse-publish-{}", gatehouse_types::CallId::new()));
            std::fs::create_dir(&path).unwrap();
            let dir = Dir::open_ambient_dir(&path, ambient_authority()).unwrap();
            Self(path, dir)
        }

        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(&self.0).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_disk_that_fills_up_leaves_no_half_file() {
        for errno in [Errno::NOSPC, Errno::DQUOT] {
            let folder = Folder::new();
            let failed = publish(&folder.1, "a.txt", |out| {
                out.write_all(b"half")?;
                Err(errno.into())
            });
            assert_eq!(failed.unwrap_err().cause, Cause::Full);
            assert_eq!(folder.names(), Vec::<String>::new());
        }
    }

    #[test]
    fn a_name_that_is_taken_meanwhile_is_not_replaced() {
        let folder = Folder::new();
        let path = folder.0.join("a.txt");
        let done = publish(&folder.1, "a.txt", |out| {
            std::fs::write(&path, "planted")?;
            out.write_all(b"ours")
        });
        assert!(!done.unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"planted");
        assert_eq!(folder.names(), ["a.txt"]);
    }

    #[test]
    fn both_ways_of_placing_refuse_a_taken_name_and_leave_one_name() {
        for way in [place, link] {
            let folder = Folder::new();
            folder.1.write("t", "new").unwrap();
            folder.1.write("taken", "old").unwrap();
            assert!(!way(&folder.1, "t", "taken").unwrap());
            assert!(way(&folder.1, "t", "free").unwrap());
            let mut names = folder.names();
            names.sort();
            assert_eq!(names, ["free", "taken"]);
            assert_eq!(folder.1.read("taken").unwrap(), b"old");
        }
    }

    #[test]
    fn a_temporary_file_of_a_crash_and_planted_ones_do_not_stand_in_the_way() {
        let folder = Folder::new();
        folder.1.write(".a.txt.1.part", "half").unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.0.join(".a.txt.2.part")).unwrap();
        assert!(publish(&folder.1, "a.txt", |out| out.write_all(b"whole")).unwrap());
        assert_eq!(folder.1.read("a.txt").unwrap(), b"whole");
        assert_eq!(occupant(&folder.1, "a.txt", b"whole").unwrap(), Occupant::Same);
        assert_eq!(occupant(&folder.1, "a.txt", b"WHOLE").unwrap(), Occupant::Other);
        assert_eq!(occupant(&folder.1, "b.txt", b"").unwrap(), Occupant::Nothing);
    }
}
