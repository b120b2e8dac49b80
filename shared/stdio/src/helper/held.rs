//! All that a supervisor holds: the program and its descendants, until the last of them has gone.

use std::time::{Duration, Instant};

use rustix::{
    io::Errno,
    process::{Pid, Signal},
};

use super::{
    supervisor::{next_dead, pause},
    tree,
};
use crate::Status;

/// Signals of a shell's status begin here: bubblewrap ends with them when a signal ended the program.
const BY_SIGNAL: i32 = 128;
/// The highest signal.
const LAST_SIGNAL: i32 = 64;
/// So often they are held before they are killed: what is held gets no more children.
const STOPS: u32 = 3;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);
/// Longest time for ending them. What cannot be killed then hangs in the kernel.
const END_WITHIN: Duration = Duration::from_secs(10);

/// The first process, and how it ended.
#[derive(Default)]
pub(super) struct Held {
    first: Option<Pid>,
    status: Option<Status>,
}

impl Held {
    pub(super) fn new(first: Pid) -> Self {
        Self { first: Some(first), status: None }
    }

    /// Takes note of who has ended. Whether anybody is left.
    pub(super) fn reap(&mut self) -> bool {
        loop {
            match next_dead() {
                Ok(Some((pid, status))) if Some(pid) == self.first => self.status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Kills all of them, and returns when the last one has gone.
    pub(super) fn end(&mut self, depth: usize) {
        let begun = Instant::now();
        let mut round = 0;
        while self.reap() && begun.elapsed() < END_WITHIN {
            let members = tree::members();
            // The first process inside bubblewrap takes all others with it.
            let signal = if depth == 1 && round < STOPS { Signal::STOP } else { Signal::KILL };
            tree::signal(&members, 1, signal);
            if round >= STOPS || depth > 1 {
                pause(PAUSE);
            }
            round += 1;
        }
    }

    /// How the program ended.
    pub(super) fn status(&self, depth: usize) -> Status {
        match self.status {
            Some(Status::Code(code)) if depth > 1 && (1..=LAST_SIGNAL).contains(&(code - BY_SIGNAL)) => {
                Status::Signal(code - BY_SIGNAL)
            }
            status => status.unwrap_or(Status::Unknown),
        }
    }
}
