//! Programs that behave, and programs that do not.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

mod ends;
mod hostile;
mod limits;

use std::{
    fs,
    path::{Path, PathBuf},
};

use gatehouse_stdio::{Limits, Opened, Process, Sandboxes, Spec};
use gatehouse_types::secret::random_bytes;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{ChildStdin, ChildStdout},
};

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("gatehouse-stdio-{:016x}", u64::from_be_bytes(random_bytes().unwrap()));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.0);
        assert!(std::thread::panicking() || removed.is_ok(), "{removed:?}");
    }
}

/// A program in Perl, which every Debian has.
fn perl(name: &str, script: &str) -> Spec {
    Spec {
        name: name.to_owned(),
        program: "/usr/bin/perl".to_owned(),
        args: vec!["-e".to_owned(), format!("$| = 1; {script}")],
        env: Vec::new(),
        open: Vec::new(),
        network: false,
        trusted: false,
        limits: Limits::default(),
    }
}

fn opened(path: &Path, write: bool) -> Opened {
    Opened { path: path.to_owned(), write }
}

/// A program that runs, and what it prints.
struct Running {
    process: Process,
    _input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Running {
    async fn start(sandboxes: &Sandboxes, spec: Spec) -> Self {
        let process = sandboxes.start(spec).await.unwrap();
        let (input, output) = process.take_pipes().unwrap();
        Self { process, _input: input, output: BufReader::new(output).lines() }
    }

    async fn line(&mut self) -> String {
        let line = self.output.next_line().await.unwrap();
        line.unwrap_or_else(|| panic!("it ended: {:?}", self.process.stderr_tail()))
    }

    /// Everything that it prints until it ends.
    async fn all(mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            lines.push(line);
        }
        let exit = self.process.ended().await;
        assert_eq!(exit.words, "it ended with exit status 0", "{lines:?} {:?}", self.process.stderr_tail());
        lines
    }
}

/// What a program prints before it ends well.
async fn printed(sandboxes: &Sandboxes, spec: Spec) -> String {
    Running::start(sandboxes, spec).await.all().await.join("\n")
}

/// Processes whose command line holds this text, other than this one.
fn processes_with(text: &str) -> Vec<u32> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(text)
        })
        .collect()
}
