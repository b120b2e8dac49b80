//! What the command says when something went wrong: what happened, and what to do next.

use std::{fmt::Write as _, path::Path};

use serde_json::{Value, json};

use super::{
    safe,
    table::{Cell, Style},
};

/// Exit code: done.
pub(crate) const OK: u8 = 0;
/// Exit code: it failed.
pub(crate) const FAILED: u8 = 1;
/// Exit code: the command line is wrong.
pub(crate) const USAGE: u8 = 2;
/// Exit code of `server import`: some entries were left out.
pub(crate) const SKIPPED: u8 = 3;
/// Exit code of `call`: the tool answered with an error.
pub(crate) const TOOL_ERROR: u8 = 4;
/// Exit code: ended by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// What kind of failure; the names are those of gRPC where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The command line is wrong.
    Usage,
    /// A file cannot be read or written.
    File,
    /// A value is not one that the server takes.
    InvalidArgument,
    /// No credential that the server knows.
    Unauthenticated,
    /// The credential does not allow it.
    PermissionDenied,
    /// There is no such thing.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// Not possible in the present state.
    FailedPrecondition,
    /// A bound was reached.
    ResourceExhausted,
    /// The server cannot be reached, or something that it needs.
    Unavailable,
    /// It took too long.
    DeadlineExceeded,
    /// Cancelled, here or there.
    Cancelled,
    /// The server is of another version.
    Unimplemented,
    /// A defect.
    Internal,
}

impl Code {
    /// As in the JSON error object.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Usage => "USAGE",
            Self::File => "FILE",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::Unavailable => "UNAVAILABLE",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Cancelled => "CANCELLED",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
        }
    }
}

/// Something went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What kind.
    pub(crate) code: Code,
    /// What happened.
    pub(crate) message: String,
    /// Each field that is wrong, and what it takes.
    pub(crate) fields: Vec<(String, String)>,
    /// What to do next.
    pub(crate) next: Vec<String>,
}

impl Failure {
    /// A failure.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), fields: Vec::new(), next: Vec::new() }
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: &str) -> Self {
        Self::new(Code::Usage, message)
    }

    /// A file cannot be read or written.
    pub(crate) fn file(what: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::new(Code::File, format!("cannot {what} {}: {error}", path.display()))
    }

    /// Adds what to do next.
    #[must_use]
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next.push(next.into());
        self
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> u8 {
        match self.code {
            Code::Usage => USAGE,
            _ => FAILED,
        }
    }

    /// For people.
    pub(crate) fn text(&self, colour: bool) -> String {
        let mut out = format!("{} {}\n", Cell::new("error:", Style::Bad).paint(colour), safe::block(&self.message));
        for (field, description) in &self.fields {
            // Writing to a String does not fail.
            let _ = writeln!(out, "  {}: {}", safe::line(field), safe::line(description));
        }
        for next in &self.next {
            let _ = writeln!(out, "{} {}", Cell::new("next:", Style::Dim).paint(colour), safe::line(next));
        }
        out
    }

    /// For scripts: `{"error":{"code","message","fields":[{"field","description"}],"next":[…]}}`.
    pub(crate) fn json(&self) -> Value {
        let field = |(field, description): &(String, String)| json!({ "field": field, "description": description });
        let fields: Vec<Value> = self.fields.iter().map(field).collect();
        json!({ "error": {
            "code": self.code.word(),
            "message": self.message,
            "fields": fields,
            "next": self.next,
        }})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_happened_each_field_and_what_to_do_next() {
        let mut failure =
            Failure::new(Code::InvalidArgument, "the server\u{1b}[2J is wrong").next("see `gatehouse help`");
        failure.fields.push(("url".to_owned(), "takes http or https".to_owned()));
        insta::assert_snapshot!(failure.text(false), @r"
        error: the server\x1b[2J is wrong
          url: takes http or https
        next: see `gatehouse help`
        ");
        insta::assert_snapshot!(format!("{:#}", failure.json()), @r#"
        {
          "error": {
            "code": "INVALID_ARGUMENT",
            "message": "the server\u001b[2J is wrong",
            "fields": [
              {
                "field": "url",
                "description": "takes http or https"
              }
            ],
            "next": [
              "see `gatehouse help`"
            ]
          }
        }
        "#);
        assert_eq!(failure.exit(), FAILED);
    }
}
