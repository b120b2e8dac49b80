//! The supervisor: starts the stage, measures what becomes of it, and ends it with all its children.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{SendFlags, send},
    process::{Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, set_child_subreaper, wait},
};

use super::{STAGE, held::Held, measure::Measure, socket, tree};
use crate::{
    Status, Usage, Why,
    plan::Plan,
    system::PATH,
    wire::{self, KILL, Report, TERMINATE},
};

/// How often a program is measured.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
/// What is used is told once in this many times.
const TELL_EVERY: u32 = 4;
/// Longest message of the stage.
const MESSAGE_BYTES: u64 = 4_096;
/// Bubblewrap is two processes before the program: one outside, and the first inside.
const WRAPPED: usize = 3;
/// The allocator of `gatehouse` starts a thread of its own, and only a process of one thread may get a user namespace.
const ONE_THREAD: (&str, &str) = ("_RJEM_MALLOC_CONF", "background_thread:false");
/// What the stage says when nothing is left but to execute the program.
pub(super) const READY: &[u8] = b"+";

pub(super) fn main() -> ExitCode {
    let Ok(owner) = socket() else { return ExitCode::FAILURE };
    match supervise(&owner) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            tell(&owner, &Report::Failed(words));
            Held::default().end(1);
            ExitCode::FAILURE
        }
    }
}

fn supervise(owner: &UnixStream) -> Result<(), String> {
    if !tree::is_told() {
        return Err("the kernel does not tell which processes are a program's children: /proc must be mounted".into());
    }
    set_child_subreaper(Some(getpid())).map_err(|error| format!("orphans cannot be adopted: {error}"))?;
    let (plan, files): (Plan, _) = wire::receive(owner).map_err(|error| format!("the plan did not arrive: {error}"))?;
    let depth = if plan.wrapper.is_empty() { 1 } else { WRAPPED };
    let (child, said) = start(&plan, files)?;
    let exit = pidfd_open(child, PidfdFlags::empty()).map_err(|error| format!("it cannot be watched: {error}"))?;
    executed(&plan, owner, said)?;
    tell(owner, &Report::Started(child.as_raw_nonzero().get()));
    let mut watched =
        Watched { owner, measure: Measure::new(plan.limits, &plan.home, depth), depth, paused: false, why: None };
    // The plan holds secrets: not longer than needed.
    drop(plan);
    let mut held = Held::new(child);
    watched.until_ended(&exit, &mut held);
    held.end(depth);
    tell(owner, &Report::Ended { status: held.status(depth), why: watched.why });
    Ok(())
}

/// Starts the stage, within bubblewrap or not, and gives it its part of the plan. Returns where it says how it went.
fn start(plan: &Plan, files: Vec<OwnedFd>) -> Result<(Pid, File), String> {
    let [input, output] = <[OwnedFd; 2]>::try_from(files).map_err(|_| "the plan came without open files".to_owned())?;
    let failed = |error: io::Error| format!("it cannot be started: {error}");
    let (near, far) = UnixStream::pair().map_err(failed)?;
    let (said, says) = io::pipe().map_err(failed)?;
    let words: Vec<&String> = plan.wrapper.iter().chain([&plan.helper]).chain(&plan.helper_args).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(STAGE).env_clear().env("PATH", PATH).envs([ONE_THREAD]);
    command.stdin(Stdio::from(OwnedFd::from(far))).stdout(Stdio::from(output));
    let child = match command.spawn() {
        Ok(child) => Pid::from_child(&child),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(format!("the program {} was not found", words[0]));
        }
        Err(error) => return Err(failed(error)),
    };
    // Its copies of what the stage holds.
    drop(command);
    // When the stage cannot be told, it says nothing, and that is noticed.
    let _ = wire::send(&near, &plan.stage, &[input.as_fd(), says.as_fd()]);
    Ok((child, OwnedFd::from(said).into()))
}

/// Waits until the program has been executed: what the stage writes to is closed by that, and only by that or by its end.
fn executed(plan: &Plan, owner: &UnixStream, said: File) -> Result<(), String> {
    let mut waiting = [PollFd::new(&said, PollFlags::IN), PollFd::from_borrowed_fd(owner.as_fd(), PollFlags::RDHUP)];
    while waiting.iter().all(|file| file.revents().is_empty()) {
        match poll(&mut waiting, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(format!("its start cannot be watched: {error}")),
        }
    }
    if waiting[0].revents().is_empty() {
        return Err("its owner has gone".into());
    }
    let mut words = Vec::new();
    said.take(MESSAGE_BYTES)
        .read_to_end(&mut words)
        .map_err(|error| format!("its start cannot be watched: {error}"))?;
    match words.strip_prefix(READY) {
        Some([]) => Ok(()),
        Some(error) => Err(String::from_utf8_lossy(error).into_owned()),
        None if words.is_empty() && !plan.wrapper.is_empty() => {
            Err(format!("{} ended before the program was executed", plan.wrapper[0]))
        }
        None if words.is_empty() => Err("it ended before the program was executed".into()),
        None => Err(String::from_utf8_lossy(&words).into_owned()),
    }
}

fn tell(mut owner: &UnixStream, report: &Report) {
    // It fails when the owner has gone; then nobody is to be told.
    if let Ok(line) = serde_json::to_string(report) {
        let _ = owner.write_all((line + "\n").as_bytes());
    }
}

/// A program that runs.
struct Watched<'o> {
    owner: &'o UnixStream,
    measure: Measure,
    depth: usize,
    paused: bool,
    why: Option<Why>,
}

impl Watched<'_> {
    /// Returns when the program has ended or must end.
    fn until_ended(&mut self, exit: &OwnedFd, held: &mut Held) {
        for round in 0_u32.. {
            let mut files =
                [PollFd::new(exit, PollFlags::IN), PollFd::from_borrowed_fd(self.owner.as_fd(), PollFlags::IN)];
            if let Err(error) = poll(&mut files, Some(&TICK))
                && error != Errno::INTR
            {
                self.why = Some(Why::Stopped);
                return;
            }
            let (ended, told) = (!files[0].revents().is_empty(), !files[1].revents().is_empty());
            held.reap();
            if ended || (told && self.is_told_to_end()) {
                return;
            }
            if self.measure(round) {
                return;
            }
        }
    }

    fn is_told_to_end(&mut self) -> bool {
        let mut message = [0];
        match (&mut &*self.owner).read(&mut message) {
            Ok(1) if message[0] == TERMINATE => {
                self.why = Some(Why::Stopped);
                let members = tree::members();
                tree::signal(&members, self.depth, Signal::TERM);
                tree::signal(&members, self.depth, Signal::CONT);
                false
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
            // Told to kill, or the owner has gone.
            Ok(_) | Err(_) => {
                debug_assert!(message[0] == 0 || message[0] == KILL);
                self.why = Some(Why::Stopped);
                true
            }
        }
    }

    /// Whether it must end.
    fn measure(&mut self, round: u32) -> bool {
        let members = tree::members();
        let (usage, why) = self.measure.now(&members);
        if why.is_some() {
            self.why = why;
            return true;
        }
        if self.measure.paused() {
            // Again each time: it may have got children, and may have been woken by others.
            tree::signal(&members, self.depth, Signal::STOP);
        } else if self.paused {
            tree::signal(&members, self.depth, Signal::CONT);
        }
        self.paused = self.measure.paused();
        if round.is_multiple_of(TELL_EVERY) {
            self.tell_usage(usage);
        }
        false
    }

    /// An owner that does not listen is not waited for: the next time will do.
    fn tell_usage(&self, usage: Usage) {
        if let Ok(line) = serde_json::to_string(&Report::Usage(usage)) {
            let _ = send(self.owner, (line + "\n").as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
}

/// What `wait` says.
pub(super) fn next_dead() -> Result<Option<(Pid, Status)>, Errno> {
    let dead = wait(WaitOptions::NOHANG)?;
    Ok(dead.map(|(pid, status)| {
        let code = status.exit_status().map(Status::Code);
        (pid, code.or(status.terminating_signal().map(Status::Signal)).unwrap_or(Status::Unknown))
    }))
}

/// Waits a little, with nothing to wait for but time.
pub(super) fn pause(time: Duration) {
    let time = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
    let _ = poll(&mut [], Some(&time));
}
