//! Pure. Servers that are programs, and the rules for their fields.

use std::path::{Component, Path};

use gatehouse_stdio::{Limits, Opened};
use serde::{Deserialize, Serialize};

use super::check::Fields;

/// Most bytes of a program's path, of an argument, and of an opened path.
pub const TEXT_BYTES: usize = 4_096;
/// Most arguments.
pub const MOST_ARGS: usize = 128;
/// Most opened paths.
pub const MOST_OPEN: usize = 64;
/// Most bytes of a variable's name.
pub const NAME_BYTES: usize = 128;
/// Most bytes of a variable's value.
pub const VALUE_BYTES: usize = 32 << 10;
/// Variables that decide what a program is, or that the sandbox sets itself.
const RESERVED: [&str; 6] = ["PATH", "HOME", "TMPDIR", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"];
/// Paths that would open the whole system, or Gatehouse itself.
const CLOSED: [&str; 11] = ["/", "/etc", "/proc", "/sys", "/dev", "/run", "/var", "/root", "/home", "/tmp", "/boot"];

/// A program, and what it may use; its environment aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stdio {
    /// An absolute path, or a name to be found in the system's folders.
    pub program: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Paths that it may use.
    #[serde(default)]
    pub open: Vec<Open>,
    /// Whether it may use the network.
    #[serde(default)]
    pub network: bool,
    /// Whether it runs without a sandbox.
    #[serde(default)]
    pub trusted: bool,
    /// What it may take of the machine.
    #[serde(default)]
    pub limits: StoredLimits,
}

/// A path that a program may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Absolute.
    pub path: String,
    /// Whether it may write there.
    #[serde(default)]
    pub write: bool,
}

/// Limits that an admin chose; `None` is the default of now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredLimits {
    /// See [`Limits::memory_bytes`].
    pub memory_bytes: Option<u64>,
    /// See [`Limits::cpu_percent`].
    pub cpu_percent: Option<u32>,
    /// See [`Limits::processes`].
    pub processes: Option<u32>,
    /// See [`Limits::file_bytes`].
    pub file_bytes: Option<u64>,
    /// See [`Limits::open_files`].
    pub open_files: Option<u32>,
    /// See [`Limits::home_bytes`].
    pub home_bytes: Option<u64>,
}

impl StoredLimits {
    /// The limits that count.
    pub fn effective(self) -> Limits {
        let default = Limits::default();
        Limits {
            memory_bytes: self.memory_bytes.unwrap_or(default.memory_bytes),
            cpu_percent: self.cpu_percent.unwrap_or(default.cpu_percent),
            processes: self.processes.unwrap_or(default.processes),
            file_bytes: self.file_bytes.unwrap_or(default.file_bytes),
            open_files: self.open_files.unwrap_or(default.open_files),
            home_bytes: self.home_bytes.unwrap_or(default.home_bytes),
            tmp_bytes: default.tmp_bytes,
        }
    }

    /// Notes each limit that is out of its range.
    pub fn check(self, fields: &mut Fields, field: &str) {
        const MIB: u64 = 1 << 20;
        let mut range = |name: &str, value: Option<u64>, least: u64, most: u64| {
            if value.is_some_and(|value| !(least..=most).contains(&value)) {
                fields.wrong(format!("{field}.{name}"), format!("takes {least} to {most}"));
            }
        };
        range("memory_bytes", self.memory_bytes, 16 * MIB, MIB * MIB);
        range("cpu_percent", self.cpu_percent.map(u64::from), 1, 10_000);
        range("processes", self.processes.map(u64::from), 4, 100_000);
        range("file_bytes", self.file_bytes, MIB, MIB * MIB);
        range("open_files", self.open_files.map(u64::from), 16, 1_000_000);
        range("home_bytes", self.home_bytes, MIB, MIB * MIB);
    }
}

impl Stdio {
    /// Notes everything that is wrong.
    pub fn check(&self, fields: &mut Fields, field: &str) {
        let mut wrong = |path: String, words: Option<String>| {
            if let Some(words) = words {
                fields.wrong(path, words);
            }
        };
        wrong(format!("{field}.program"), program(&self.program).err());
        if self.args.len() > MOST_ARGS {
            wrong(format!("{field}.args"), Some(format!("takes at most {MOST_ARGS} arguments")));
        }
        for (place, argument) in self.args.iter().enumerate().take(MOST_ARGS) {
            wrong(format!("{field}.args[{place}]"), text(argument).err());
        }
        if self.open.len() > MOST_OPEN {
            wrong(format!("{field}.open"), Some(format!("takes at most {MOST_OPEN} paths")));
        }
        for (place, open) in self.open.iter().enumerate().take(MOST_OPEN) {
            wrong(format!("{field}.open[{place}].path"), opened(&open.path).err());
        }
        self.limits.check(fields, &format!("{field}.limits"));
    }

    /// The paths as the sandbox takes them.
    pub fn opened(&self) -> Vec<Opened> {
        self.open.iter().map(|open| Opened { path: open.path.clone().into(), write: open.write }).collect()
    }

    /// As stored.
    pub fn to_stored(&self) -> String {
        // No part of it can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From what was stored.
    pub fn from_stored(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

fn text(text: &str) -> Result<(), String> {
    if text.len() > TEXT_BYTES || text.contains('\0') {
        return Err(format!("takes at most {TEXT_BYTES} bytes, none of them zero"));
    }
    Ok(())
}

/// A program: an absolute path, or a name without a `/`.
fn program(program: &str) -> Result<(), String> {
    text(program)?;
    if program.is_empty() {
        return Err("is missing".to_owned());
    }
    if program.starts_with('-') || (program.contains('/') && !is_plain(program)) {
        return Err("takes an absolute path without `..`, or a name such as `npx`".to_owned());
    }
    Ok(())
}

/// A path to open: absolute, and narrower than the folders that hold what is nobody's business.
fn opened(path: &str) -> Result<(), String> {
    text(path)?;
    if !is_plain(path) {
        return Err("takes an absolute path without `..`".to_owned());
    }
    let trimmed = path.trim_end_matches('/');
    let closed = CLOSED.iter().any(|closed| trimmed == closed.trim_end_matches('/'));
    if closed || ["/proc/", "/sys/", "/dev/"].iter().any(|begin| path.starts_with(begin)) {
        return Err("cannot be opened: name the folder or file below it that the program needs".to_owned());
    }
    if trimmed == "/home/server" || path.starts_with("/home/server/") {
        return Err("is where the program's own home is".to_owned());
    }
    Ok(())
}

/// Absolute, and without parts that lead elsewhere.
fn is_plain(path: &str) -> bool {
    Path::new(path).is_absolute()
        && Path::new(path).components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && !path.contains("//")
        && !path.split('/').any(|part| part == ".")
}

/// What is wrong with a variable's name, if anything.
pub fn check_variable(name: &str) -> Result<(), String> {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let rest = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !first || !rest || name.len() > NAME_BYTES {
        return Err(format!("has a name that is not 1 to {NAME_BYTES} of `A-Z a-z 0-9 _`, the first of them no digit"));
    }
    if RESERVED.contains(&name.to_ascii_uppercase().as_str()) {
        return Err(
            "is a variable that the sandbox sets itself, or that decides what the program is; leave it out".to_owned()
        );
    }
    Ok(())
}

/// What is wrong with a variable's value, if anything.
pub fn check_variable_value(value: &str) -> Result<(), String> {
    if value.len() > VALUE_BYTES || value.contains('\0') {
        return Err(format!("takes a value of at most {VALUE_BYTES} bytes, none of them zero"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn wrong(stdio: &Stdio) -> Vec<String> {
        let mut fields = Fields::new();
        stdio.check(&mut fields, "stdio");
        match fields.finish(()) {
            Ok(()) => Vec::new(),
            Err(Error::Invalid(wrong)) => wrong.into_iter().map(|wrong| wrong.field).collect(),
            Err(other) => panic!("{other}"),
        }
    }

    fn stdio() -> Stdio {
        Stdio {
            program: "npx".to_owned(),
            args: vec!["-y".to_owned(), "@a/b".to_owned()],
            open: vec![Open { path: "/srv/data".to_owned(), write: true }],
            network: false,
            trusted: false,
            limits: StoredLimits::default(),
        }
    }

    #[test]
    fn a_program_is_a_name_or_a_plain_absolute_path() {
        assert!(wrong(&stdio()).is_empty());
        for good in ["node", "/usr/bin/node", "a.b", "/opt/x y/z"] {
            assert!(program(good).is_ok(), "{good}");
        }
        for bad in ["", "./a", "a/b", "/a/../b", "/a//b", "/a/./b", "-x", "a\0", &"x".repeat(TEXT_BYTES + 1)] {
            assert!(program(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_holds_the_system_or_other_homes_cannot_be_opened() {
        for good in ["/srv/data", "/home/ann/project", "/var/lib/app", "/root/project", "/usr/share"] {
            assert!(opened(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "data",
            "/",
            "//",
            "/etc",
            "/etc/",
            "/proc",
            "/proc/1",
            "/dev/sda",
            "/root",
            "/home",
            "/a/..",
            "/home/server/x",
        ] {
            assert!(opened(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_wrong_field_is_named() {
        let all = Stdio {
            program: "a/b".to_owned(),
            args: vec!["ok".to_owned(), "a\0".to_owned()],
            open: vec![Open { path: "/etc".to_owned(), write: false }],
            limits: StoredLimits { memory_bytes: Some(1), cpu_percent: Some(0), ..StoredLimits::default() },
            ..stdio()
        };
        let fields = [
            "stdio.program",
            "stdio.args[1]",
            "stdio.open[0].path",
            "stdio.limits.memory_bytes",
            "stdio.limits.cpu_percent",
        ];
        assert_eq!(wrong(&all), fields);
    }

    #[test]
    fn variables_that_decide_what_a_program_is_are_refused() {
        for good in ["API_KEY", "_x", "node_env"] {
            assert!(check_variable(good).is_ok(), "{good}");
        }
        for bad in ["", "1A", "A B", "A=B", "PATH", "path", "LD_PRELOAD", "Ä"] {
            assert!(check_variable(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_was_stored_comes_back() {
        assert_eq!(Stdio::from_stored(&stdio().to_stored()), Some(stdio()));
        assert_eq!(Stdio::from_stored("{\"program\":\"a\"}").unwrap().limits.effective(), Limits::default());
    }
}
