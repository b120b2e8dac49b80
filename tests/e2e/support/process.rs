//! Child processes, their output, and a folder for what they write.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use gatehouse_testkit::eventually;
use gatehouse_types::secret::random_bytes;

/// How long the children of a process may take to notice that it has ended.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// A folder that is gone after the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let name = format!("gatehouse-e2e-{:016x}", u64::from_be_bytes(random_bytes().unwrap()));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A browser that has just lost its owner writes for a moment more.
        let until = Instant::now() + GONE_WITHIN;
        let mut removed = fs::remove_dir_all(&self.0);
        while removed.is_err() && Instant::now() < until {
            std::thread::yield_now();
            removed = fs::remove_dir_all(&self.0);
        }
        assert!(std::thread::panicking() || removed.is_ok(), "{removed:?}");
    }
}

/// A running process whose output goes to a file. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    output: PathBuf,
}

impl Running {
    /// Starts it; its stdout and stderr are appended to `output`.
    pub(crate) fn start(mut command: Command, output: PathBuf) -> Self {
        let file = fs::File::options().create(true).append(true).open(&output).unwrap();
        let child = command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Self { child, output }
    }

    /// What it has printed so far.
    pub(crate) fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap()).into_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        eventually("the process ended", async || self.has_ended()).await
    }

    /// Resident memory in bytes, without the pages of the program file: those come in as code runs for the first time.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
    }

    /// How many files and sockets are open.
    pub(crate) fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// Whether this process, and no other, listens on a port.
    pub(crate) fn listens_on(&self, port: u16) -> bool {
        let links = fs::read_dir(format!("/proc/{}/fd", self.pid())).into_iter().flatten().flatten();
        let own: Vec<_> = links.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
        ["tcp", "tcp6"].iter().any(|table| {
            let table = fs::read_to_string(format!("/proc/{}/net/{table}", self.pid())).unwrap_or_default();
            table.lines().skip(1).any(|line| {
                let fields: Vec<&str> = line.split_whitespace().collect();
                // Local address, state (0A is LISTEN), inode.
                fields[1].ends_with(&format!(":{port:04X}"))
                    && fields[3] == "0A"
                    && own.contains(&PathBuf::from(format!("socket:[{}]", fields[9])))
            })
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that is free now, and below those that the system gives out by itself: nobody takes it while its owner is down.
pub(crate) fn quiet_port() -> u16 {
    loop {
        let port = 20_000 + u16::from_be_bytes(random_bytes().unwrap()) % 12_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && TcpListener::bind(("::1", port)).is_ok() {
            return port;
        }
    }
}
