//! Where text goes: the only file of the command that writes to standard output and standard error.

use std::io::{self, IsTerminal as _, Write as _};

use gatehouse_types::Clock;
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use super::{
    failure::{Failure, OK},
    safe,
    table::{Cell, Style, fit},
};

/// Widest line of progress on a terminal, so that it does not wrap: a line that wrapped cannot be taken away.
const PROGRESS_WIDTH: usize = 78;

/// What a command answers: both forms, of which one is printed.
#[derive(Debug)]
pub(crate) struct Answer {
    /// For people; ends in a line feed unless empty. Everything from a server in it has gone through [`safe`].
    pub(crate) text: String,
    /// For scripts: one JSON document.
    pub(crate) document: String,
    /// The exit code.
    pub(crate) exit: u8,
}

impl Answer {
    /// An answer with exit code 0.
    pub(crate) fn new(text: String, document: &Value) -> Self {
        Self { text, document: format!("{document:#}"), exit: OK }
    }

    /// With another exit code.
    #[must_use]
    pub(crate) fn exit(self, exit: u8) -> Self {
        Self { exit, ..self }
    }
}

/// How this run of the command writes.
#[derive(Debug, Clone)]
pub(crate) struct Out {
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// Whether standard output takes colours.
    pub(crate) colour: bool,
    /// Whether standard error is a terminal.
    pub(crate) live: bool,
    /// The user's time zone.
    pub(crate) zone: TimeZone,
    /// The time at the start.
    pub(crate) now: Timestamp,
}

impl Out {
    /// For this process: colours only on a terminal and without `NO_COLOR` (no-color.org).
    pub(crate) fn here(json: bool, clock: &dyn Clock) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let now = clock.now();
        let nanos = i32::try_from(now.nanosecond()).unwrap_or_default();
        Self {
            json,
            colour: !plain && io::stdout().is_terminal(),
            live: io::stderr().is_terminal(),
            zone: TimeZone::system(),
            now: Timestamp::new(now.unix_timestamp(), nanos).unwrap_or(Timestamp::UNIX_EPOCH),
        }
    }

    /// Prints the answer and returns the exit code. A reader that has gone away (`| head`) is no failure.
    pub(crate) fn answer(&self, answer: &Answer) -> Result<u8, Failure> {
        let text = if self.json { format!("{}\n", safe::json(&answer.document)) } else { answer.text.clone() };
        raw(&text)?;
        Ok(answer.exit)
    }

    /// Prints a failure to standard error.
    pub(crate) fn failure(&self, failure: &Failure) {
        if self.json {
            error(&format!("{}\n", safe::json(&failure.json().to_string())));
        } else {
            error(&failure.text(self.live && self.colour));
        }
    }

    /// Prints a warning to standard error.
    pub(crate) fn warn(&self, warning: &str) {
        let mark = Cell::new("warning:", Style::Warn).paint(self.live && self.colour);
        error(&format!("{mark} {}\n", safe::line(warning)));
    }

    /// Shows how far something is, on standard error: one line that changes on a terminal, else a line each.
    /// Nothing for scripts.
    pub(crate) fn progress(&self, text: &str) {
        let text = safe::line(text);
        match (self.live, self.json) {
            (true, _) => error(&format!("\r\u{1b}[K{}", fit(&text, PROGRESS_WIDTH))),
            (false, false) => error(&format!("{text}\n")),
            (false, true) => {}
        }
    }

    /// Takes the line of [`Self::progress`] away.
    pub(crate) fn progress_done(&self) {
        if self.live {
            error("\r\u{1b}[K");
        }
    }

    /// Shows what a question is about, in the form for people. Everything from a server in it has gone through [`safe`].
    pub(crate) fn show(&self, text: &str) {
        if self.live {
            error(text);
        }
    }

    /// Asks a yes-or-no question on the terminal. Without one: a failure that names `--yes`.
    pub(crate) async fn confirm(&self, question: &str) -> Result<bool, Failure> {
        if !self.can_ask() {
            return Err(Failure::usage("this needs a confirmation, and there is no terminal to ask on")
                .next("add --yes to do it without being asked"));
        }
        let answer = self.ask(&format!("{question} [y/N] ")).await?;
        Ok(matches!(answer.unwrap_or_default().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Whether there is a terminal to ask on.
    pub(crate) fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && self.live
    }

    /// Asks a question on the terminal; without blanks around the answer, and none when the terminal is closed.
    pub(crate) async fn ask(&self, question: &str) -> Result<Option<String>, Failure> {
        error(&safe::line(question));
        let line = standard_input(|stdin| {
            let mut line = String::new();
            stdin.read_line(&mut line).map(|read| (read > 0).then_some(line))
        });
        Ok(line.await?.map(|line| line.trim().to_owned()))
    }

    /// Shows text beside the answer, on standard error. Everything from a server in it has gone through [`safe`].
    #[expect(clippy::unused_self, reason = "how this run writes is decided here")]
    pub(crate) fn tell(&self, text: &str) {
        error(text);
    }

    /// Prints one of many answers: a line for people, or a JSON document on a line of its own.
    pub(crate) fn line(&self, line: &str, document: &Value) -> Result<(), Failure> {
        if self.json { raw(&format!("{}\n", safe::json(&document.to_string()))) } else { raw(line) }
    }
}

/// Prints text that is ours as it is.
pub(crate) fn raw(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes()).map(drop)
}

/// Writes bytes as they are; `false` when nobody reads them any more.
pub(crate) fn bytes(bytes: &[u8]) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::file("write to", "standard output".as_ref(), &error))
        }
        written => Ok(written.is_ok()),
    }
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// All of standard input as text.
pub(crate) async fn read_all_input() -> Result<String, Failure> {
    standard_input(|stdin| io::read_to_string(stdin.lock())).await
}

/// Reads on a thread of its own, so that Ctrl-C ends the command while it waits. The thread ends with the process.
async fn standard_input<T: Send + 'static>(
    read: impl FnOnce(io::Stdin) -> io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // Nobody is told any more when the command has ended.
        let _ = tell.send(read(io::stdin()));
    });
    let gone = || Err(io::Error::other("the reader is gone"));
    told.await.unwrap_or_else(|_| gone()).map_err(|error| Failure::file("read", "standard input".as_ref(), &error))
}

fn error(text: &str) {
    // When standard error is gone there is nobody left to tell.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
