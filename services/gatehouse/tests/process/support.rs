//! Processes of the command under test, and what they leave behind.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::Duration,
};

use gatehouse_testkit::eventually;
use gatehouse_types::secret::random_bytes;

/// Variables that let a process take any free ports.
pub(crate) const ANY_PORTS: [(&str, &str); 6] = [
    ("GATEHOUSE_EDGE_LISTEN", "127.0.0.1:0"),
    ("GATEHOUSE_GRPC_LISTEN", "127.0.0.1:0"),
    ("GATEHOUSE_OPS_LISTEN", "127.0.0.1:0"),
    ("GATEHOUSE_INTERACTION_LISTEN", "127.0.0.1:0"),
    ("GATEHOUSE_OAUTH_LISTEN", "127.0.0.1:0"),
    ("GATEHOUSE_TASK_POLLER_LISTEN", "127.0.0.1:0"),
];

/// A folder that is gone after the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path =
            std::env::temp_dir().join(format!("gatehouse-test-{:016x}", u64::from_be_bytes(random_bytes().unwrap())));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.0);
        assert!(std::thread::panicking() || removed.is_ok(), "{removed:?}");
    }
}

/// The command, without anything of the test's own environment but `PATH`.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse"));
    command.env_clear().envs(ANY_PORTS).args(arguments).stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// A running process whose output goes to files. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    output: PathBuf,
}

impl Running {
    /// Starts it; its stdout and stderr go to `output`.
    pub(crate) fn start(mut command: Command, output: PathBuf) -> Self {
        let file = fs::File::options().create(true).append(true).open(&output).unwrap();
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Self { child, output }
    }

    /// What it has printed so far.
    pub(crate) fn printed(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        eventually("the process ended", async || self.child.try_wait().unwrap()).await
    }

    /// Waits for the address that the server `name` says in the log that it listens on.
    pub(crate) async fn address(&mut self, name: &str) -> String {
        let address = eventually("a server listens", async || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", self.printed());
            self.listens(name)
        });
        address.await
    }

    /// The address that the server `name` has said so far that it listens on.
    pub(crate) fn listens(&self, name: &str) -> Option<String> {
        self.printed().lines().find_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).ok()?;
            let fields = line.get("fields")?;
            (fields.get("server.name")? == name).then(|| fields.get("server.address")?.as_str().map(str::to_owned))?
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

/// A data folder and the `up` on it. Ends Postgres too, also when the test panics.
pub(crate) struct Up {
    pub(crate) running: Running,
    data: PathBuf,
}

impl Up {
    /// Starts `up` and waits until it is ready.
    pub(crate) async fn start(folder: &Folder, variables: &[(&str, &str)]) -> Self {
        let data = folder.path().join("data");
        let mut command = command(&["--data", data.to_str().unwrap(), "up"]);
        command.envs(variables.iter().copied());
        let mut up = Self { running: Running::start(command, folder.path().join("output")), data };
        eventually("endpoints.json is there", async || {
            let ended = up.running.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", up.running.printed());
            let endpoints = fs::read_to_string(up.data.join("endpoints.json")).ok()?;
            endpoints.contains(&format!("\"pid\": {}", up.running.pid())).then_some(())
        })
        .await;
        up
    }

    /// A field of `endpoints.json`.
    pub(crate) fn endpoint(&self, name: &str) -> String {
        let text = fs::read_to_string(self.data.join("endpoints.json")).unwrap();
        let endpoints: serde_json::Value = serde_json::from_str(&text).unwrap();
        endpoints[name].as_str().unwrap().to_owned()
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    /// The process of its Postgres.
    pub(crate) fn postmaster(&self) -> Option<u32> {
        fs::read_to_string(self.data.join("postgres/postmaster.pid")).ok()?.lines().next()?.parse().ok()
    }

    /// URL of its database.
    pub(crate) fn database(&self) -> String {
        format!("postgres://gatehouse@localhost/gatehouse?host={}", self.data.join("postgres").display())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.running.child.kill();
        let _ = self.running.child.wait();
        if let Some(postmaster) = self.postmaster() {
            // SIGQUIT: immediate shutdown.
            let _ = Command::new("kill").args(["-QUIT", &postmaster.to_string()]).stderr(Stdio::null()).status();
            while is_alive(postmaster) {
                std::thread::yield_now();
            }
        }
    }
}

pub(crate) fn is_alive(pid: u32) -> bool {
    // A zombie has ended; who should have waited for it may be gone.
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

/// Runs the command to its end.
pub(crate) fn output(mut command: Command) -> Output {
    command.output().unwrap()
}

/// Status line and body of a GET.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
