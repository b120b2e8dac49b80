//! A process that runs: its pipes, its end, and how it is ended.

use std::{
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use secrecy::SecretString;
use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::watch,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    command::Host,
    home::Home,
    spawner::Spawner,
    spec::Spec,
    tail::Tail,
    watch::{Usage, Watch, Watched, descendants},
};

/// How long a try of the sandbox may take.
const TRY_WITHIN: Duration = Duration::from_secs(10);
/// How a process ended that was asked to.
const STOPPED: &str = "it was stopped";
/// How long the kernel may take to end what was killed.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// How a process ended, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Such as `it ended with exit status 1`, for people; holds nothing of what the program wrote.
    pub words: String,
    /// Whether Gatehouse ended it: because it was asked to, or because it took more than it may.
    pub by_us: bool,
}

impl Exit {
    /// Whether it ended because it was asked to.
    pub fn is_stop(&self) -> bool {
        self.by_us && self.words == STOPPED
    }
}

/// A process. Dropping it kills it and all its children at once.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    pipes: Mutex<Option<(ChildStdin, ChildStdout)>>,
    tail: Tail,
    secrets: Vec<SecretString>,
    exit: watch::Receiver<Option<Exit>>,
    /// Cancelled to kill it.
    kill: CancellationToken,
    watched: Arc<Watched>,
    trusted: bool,
}

/// Why we ended it, when we did.
#[derive(Debug, Default)]
pub(crate) struct Reason(Mutex<Option<String>>);

impl Reason {
    /// The first reason counts.
    pub(crate) fn set(&self, words: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(words.into());
    }

    fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Process {
    /// `wrapped`: whether the outermost processes are bubblewrap's.
    pub(crate) fn new(mut child: Child, spec: Spec, home: Home, wrapped: bool, watch: &Watch) -> Self {
        let pid = child.id().unwrap_or_default();
        let pipes = Mutex::new(child.stdin.take().zip(child.stdout.take()));
        let secrets: Vec<SecretString> = spec.env.into_iter().map(|(_, value)| value).collect();
        let (tail, kill) = (Tail::default(), CancellationToken::new());
        let written = child.stderr.take().map(|stderr| tail.clone().read(stderr, secrets.clone()));
        let watched = Arc::new(Watched::new(pid, spec.limits, home.path, wrapped, kill.clone()));
        watch.add(&watched);
        let (ended, exit) = watch::channel(None);
        tokio::spawn({
            let (kill, watched) = (kill.clone(), Arc::clone(&watched));
            async move {
                // Its last words come before the news of its end.
                let reading = tokio::spawn(async move {
                    if let Some(written) = written {
                        written.await;
                    }
                });
                let status = tokio::select! {
                    status = child.wait() => status,
                    () = kill.cancelled() => {
                        kill_all(pid, &watched).await;
                        child.wait().await
                    }
                };
                // Children of a trusted process may have outlived it.
                kill_all(pid, &watched).await;
                if timeout(GONE_WITHIN, reading).await.is_err() {
                    tracing::warn!(process.id = pid, "something holds the stderr of a process that has ended");
                }
                // Nobody may be waiting.
                let _ = ended.send(Some(exit_of(status, watched.reason.get())));
            }
        });
        Self { pid, pipes, tail, secrets, exit, kill, watched, trusted: spec.trusted }
    }

    /// Its input and output. `None` once they were taken.
    pub fn take_pipes(&self) -> Option<(ChildStdin, ChildStdout)> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Its id: that of the outermost of its processes.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it runs without a sandbox.
    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// The last lines that it wrote to stderr, oldest first, without the values of its environment.
    pub fn stderr_tail(&self) -> Vec<String> {
        self.tail.lines()
    }

    /// Adds a line to those, as if the program had written it to stderr: what it printed where only messages belong.
    pub fn add_to_tail(&self, line: &str) {
        self.tail.push(line, &self.secrets);
    }

    /// What it takes now.
    pub fn usage(&self) -> Usage {
        self.watched.usage()
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.exit.borrow().clone()
    }

    /// Waits for its end.
    pub async fn ended(&self) -> Exit {
        let mut exit = self.exit.clone();
        let ended = exit.wait_for(Option::is_some).await.map(|exit| exit.clone());
        ended.ok().flatten().unwrap_or_else(|| Exit { words: "its end was not seen".to_owned(), by_us: true })
    }

    /// Ends it: its input is closed, then it is asked by SIGTERM, then killed, with so much time in between (MCP 2025-11-25,
    /// basic/lifecycle, shutdown). Whoever has taken its input closes that before.
    pub async fn stop(&self, grace: Duration) -> Exit {
        self.watched.reason.set(STOPPED);
        drop(self.take_pipes());
        if timeout(grace, self.ended()).await.is_err() {
            self.watched.signal_program(Signal::TERM);
            if timeout(grace, self.ended()).await.is_err() {
                self.kill.cancel();
            }
        }
        self.ended().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.watched.reason.set(STOPPED);
        self.kill.cancel();
    }
}

/// Kills a process with all its children, and waits until they are gone.
async fn kill_all(pid: u32, watched: &Watched) {
    let family = descendants(pid);
    let Some(outermost) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    // What fails here has ended already.
    let _ = kill_process_group(outermost, Signal::KILL);
    for member in family.iter().chain(&watched.family()) {
        if let Some(member) = i32::try_from(member.pid).ok().filter(|_| member.is_alive()).and_then(Pid::from_raw) {
            let _ = kill_process(member, Signal::KILL);
        }
    }
    let gone = timeout(GONE_WITHIN, async {
        while family.iter().any(|member| member.pid != pid && member.is_alive()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    if gone.await.is_err() {
        tracing::error!(process.id = pid, "a process was killed and does not end");
    }
}

fn exit_of(status: std::io::Result<ExitStatus>, reason: Option<String>) -> Exit {
    use std::os::unix::process::ExitStatusExt as _;
    if let Some(words) = reason {
        return Exit { words, by_us: true };
    }
    let words = match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("it ended with exit status {code}"),
            (None, Some(signal)) => format!("it was ended by signal {signal}"),
            (None, None) => "it ended".to_owned(),
        },
        Err(error) => format!("its end was not seen: {error}"),
    };
    Exit { words, by_us: false }
}

/// Tries the sandbox once, with a program that does nothing.
pub(crate) async fn try_sandbox(spawner: &Spawner) -> Result<(), String> {
    let help =
        "Install bubblewrap and allow it to make namespaces (docs/stdio-servers.md), or mark the server as trusted.";
    let mut command = Command::new("bwrap");
    command.args(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--ro-bind", "/usr", "/usr"]);
    if !rustix::process::geteuid().is_root() {
        command.arg("--unshare-user");
    }
    let host = Host::look();
    for (path, target) in host.links {
        command.arg("--symlink").arg(target).arg(path);
    }
    for path in host.folders {
        command.args(["--ro-bind", path, path]);
    }
    command.args(["--proc", "/proc", "--dev", "/dev", "--", "unshare", "--user", "--map-current-user", "true"]);
    command.env_clear().env("PATH", crate::command::PATH);
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let tried = async {
        let child =
            spawner.spawn(command).await.map_err(|error| format!("bwrap cannot be started: {error}. {help}"))?;
        let output =
            child.wait_with_output().await.map_err(|error| format!("bwrap did not end well: {error}. {help}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = gatehouse_types::shown::line(&String::from_utf8_lossy(&output.stderr), 300);
        Err(format!("{said}. {help}"))
    };
    timeout(TRY_WITHIN, tried).await.unwrap_or_else(|_| Err(format!("bwrap did not answer in time. {help}")))
}
