//! A program that runs, as its owner holds it.

use std::{
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    process::Stdio,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::unix::{OwnedWriteHalf, pipe},
    process::{Child, ChildStderr, Command},
    sync::watch,
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    Config, Exit, Spec, StartError, Tier, Usage,
    attend::{self, Now},
    helper, home,
    plan::{Plan, text},
    tail::Tail,
    wire::{self, Report},
};

/// Where a program reads what its user writes. Dropping it tells the program that nothing more comes.
pub type Stdin = pipe::Sender;
/// What a program writes for its user.
pub type Stdout = pipe::Receiver;

/// Longest time until a program is executed: bubblewrap, and every right given up.
const START_WITHIN: Duration = Duration::from_secs(30);
/// Longest time until a killed program and its children are gone.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

/// A program that runs. When this is dropped, it is killed with all its children.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    tier: Tier,
    pipes: Mutex<Option<(Stdin, Stdout)>>,
    stderr: Tail,
    now: watch::Receiver<Now>,
    /// Whether it was asked to end.
    asked: Arc<AtomicBool>,
    /// Closing it ends the program.
    control: OwnedWriteHalf,
}

impl Process {
    /// The process at the root of the tree, as its owner sees it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How it is held.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Whether it runs without a sandbox.
    pub fn is_trusted(&self) -> bool {
        self.tier == Tier::Trusted
    }

    /// Its input and output. `None` once they were taken.
    pub fn take_pipes(&self) -> Option<(Stdin, Stdout)> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Its last [`crate::LINES`] lines of stderr, each bounded, without the values of its environment.
    pub fn stderr_tail(&self) -> Vec<String> {
        self.stderr.lines()
    }

    /// Adds a line to those, as if the program had written it to stderr: what it printed where only messages belong.
    pub fn add_to_tail(&self, line: &str) {
        self.stderr.add(line);
    }

    /// What it uses, not older than a second or two.
    pub fn usage(&self) -> Usage {
        self.now.borrow().usage
    }

    /// Waits until it has ended, with all its children.
    pub async fn ended(&self) -> Exit {
        let mut now = self.now.clone();
        let ended = now.wait_for(|now| now.exit.is_some()).await.ok().and_then(|now| now.exit.clone());
        ended.unwrap_or_else(Exit::unknown)
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.now.borrow().exit.clone()
    }

    /// Ends it: its input is closed, then it is asked by SIGTERM, then killed with all its children, with so much time in between (MCP
    /// 2025-11-25, basic/lifecycle, shutdown). Whoever has taken its input closes that before.
    pub async fn stop(&self, grace: Duration) -> Exit {
        self.asked.store(true, Ordering::Release);
        drop(self.take_pipes());
        for message in [Some(wire::TERMINATE), Some(wire::KILL), None] {
            let wait = if message.is_some() { grace } else { KILLED_WITHIN };
            if let Ok(exit) = timeout(wait, self.ended()).await {
                return exit;
            }
            if let Some(message) = message {
                // It fails when the supervisor has ended, which `ended` tells.
                let _ = self.control.try_write(&[message]);
            }
        }
        tracing::error!(process.pid = self.pid, "A killed stdio server is still there");
        Exit::unknown()
    }
}

/// Starts a program whose specification has been checked.
pub(crate) async fn start(config: &Config, spec: &Spec, tier: Tier) -> Result<Process, StartError> {
    let stderr = Tail::new(spec.env.iter().map(|(_, value)| value.clone()));
    let (config, spec) = (config.clone(), spec.clone());
    let prepared = spawn_blocking(move || {
        let home = home::prepare(&spec.name, &config)?;
        let command = Command::new(&config.helper[0]);
        Ok((Plan::new(&spec, tier, &home, &config, own_helper(&config)), command))
    });
    let (plan, command) = prepared.await.map_err(|error| StartError::Supervisor(error.into()))??;
    let started = supervise(plan, command).await.map_err(StartError::Supervisor)?;
    let reading = tokio::spawn(stderr.clone().read(started.stderr));
    let (read, control) = started.socket.into_split();
    let mut reports = BufReader::new(read).lines();
    let pid = match timeout(START_WITHIN, attend::next(&mut reports)).await {
        Ok(Some(Report::Started(pid))) => pid,
        first => {
            let words = match first {
                Ok(Some(Report::Failed(words))) => words,
                Ok(_) => "the process that watches it ended before the program was executed".to_owned(),
                Err(_) => "the program was not executed in time; try again".to_owned(),
            };
            drop((control, reports));
            // What was said on the way is all there when stderr is closed.
            let _ = timeout(KILLED_WITHIN, reading).await;
            return Err(StartError::Inside(with_last_line(words, &stderr)));
        }
    };
    let asked = Arc::new(AtomicBool::new(false));
    let now = attend::follow(reports, started.child, reading, Arc::clone(&asked));
    let pipes = Mutex::new(Some((started.stdin, started.stdout)));
    Ok(Process { pid: pid.unsigned_abs(), tier, pipes, stderr, now, asked, control })
}

fn with_last_line(words: String, stderr: &Tail) -> String {
    match stderr.lines().pop() {
        Some(line) => format!("{words}: {line}"),
        None => words,
    }
}

/// The command of the helper under a name that is the same for other processes.
fn own_helper(config: &Config) -> Vec<String> {
    let mut words: Vec<String> = config.helper.iter().map(|word| text(word)).collect();
    if let Ok(real) = std::fs::read_link(&config.helper[0]) {
        words[0] = text(&real);
    }
    words
}

struct Started {
    child: Child,
    socket: tokio::net::UnixStream,
    stdin: Stdin,
    stdout: Stdout,
    stderr: ChildStderr,
}

/// Starts the supervisor and hands it the plan.
async fn supervise(plan: Plan, mut command: Command) -> io::Result<Started> {
    let (near, far) = UnixStream::pair()?;
    let (its_input, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stdout, its_output) = pipe_with(PipeFlags::CLOEXEC)?;
    command.args(&plan.helper_args).arg(helper::SUPERVISOR).env_clear().current_dir("/");
    command.stdin(OwnedFd::from(far)).stdout(Stdio::null()).stderr(Stdio::piped());
    // A key pressed at a terminal is for its owner, who ends it in order.
    let mut child = command.process_group(0).spawn()?;
    // The command keeps its copy of the supervisor's end of the socket.
    drop(command);
    let stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let sent = spawn_blocking(move || {
        wire::send(&near, &plan, &[its_input.as_fd(), its_output.as_fd()])?;
        near.set_nonblocking(true)?;
        io::Result::Ok(near)
    });
    let socket = tokio::net::UnixStream::from_std(sent.await.map_err(io::Error::from)??)?;
    rustix::io::ioctl_fionbio(&stdin, true)?;
    rustix::io::ioctl_fionbio(&stdout, true)?;
    let (stdin, stdout) = (Stdin::from_owned_fd(stdin)?, Stdout::from_owned_fd(stdout)?);
    Ok(Started { child, socket, stdin, stdout, stderr })
}
