//! How a program ended, and what it used, in words.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// How, for people; holds nothing of what the program wrote.
    pub words: String,
    /// Whether Gatehouse ended it: because it was asked to, or because it took more than it may.
    pub by_us: bool,
    /// What the system says.
    pub status: Status,
    /// Why Gatehouse ended it, when it did.
    pub why: Option<Why>,
}

impl Exit {
    pub(crate) fn new(status: Status, why: Option<Why>) -> Self {
        let words = why.map_or_else(|| status.to_string(), |why| why.to_string());
        Self { words, by_us: why.is_some(), status, why }
    }

    /// How a program ended whose supervisor was ended.
    pub(crate) fn unknown() -> Self {
        Self::new(Status::Unknown, None)
    }

    /// Whether it ended because it was asked to, or because nobody held it any more.
    pub fn is_stop(&self) -> bool {
        self.why == Some(Why::Stopped)
    }
}

/// What the system says about the end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It ended by itself with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Nobody knows: what watched it was ended.
    Unknown,
}

/// Why Gatehouse ended a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// [`crate::Process::stop`], or its owner went away.
    Stopped,
    /// It took more memory than this many bytes.
    Memory(u64),
    /// Its home held more than this many bytes.
    Home(u64),
    /// It had more processes than this.
    Processes(u32),
}

/// What a program uses now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// CPU over the last second, in percent of one core.
    pub cpu_percent: u32,
    /// Processes and threads.
    pub processes: u64,
    /// What the home held when it was last measured, in bytes.
    pub home_bytes: u64,
    /// Whether it is paused for having taken too much CPU.
    pub paused: bool,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "it ended with exit status {code}"),
            Self::Signal(signal) => write!(f, "it was ended by signal {signal}{}", name(signal)),
            Self::Unknown => f.write_str("it ended, and what watched it too: perhaps the machine is out of memory"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("it was stopped"),
            Self::Memory(most) => write!(f, "it took more than its {} MiB of memory and was ended", most >> 20),
            Self::Home(most) => write!(f, "its home held more than {} MiB and it was ended", most >> 20),
            Self::Processes(most) => write!(f, "it had more than its {most} processes and threads and was ended"),
        }
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        2 => " (SIGINT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        25 => " (SIGXFSZ: a file grew larger than it may)",
        31 => " (SIGSYS)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_in_words_with_its_cause() {
        let words = |status, why| Exit::new(status, why).to_string();
        assert_eq!(words(Status::Code(3), None), "it ended with exit status 3");
        assert_eq!(words(Status::Signal(11), None), "it was ended by signal 11 (SIGSEGV)");
        let memory = words(Status::Signal(9), Some(Why::Memory(64 << 20)));
        assert_eq!(memory, "it took more than its 64 MiB of memory and was ended");
    }
}
