//! Pure: what the model reads when a call does not end with a tool's result. It says what happened, whether anything may
//! have been carried out, and what to do next; no inner addresses, no stack traces.

use std::time::Duration;

use gatehouse_mcp::client::RequestError;
use gatehouse_types::Hints;

use crate::{
    audit::Outcome,
    results::{self, NotAResult, Output},
};

/// The database does not answer.
pub const DATABASE: &str =
    "Gatehouse cannot reach its database, so the call was not sent. Nothing was carried out. Try again in a minute.";
/// The session is gone.
pub const SESSION_ENDED: &str =
    "this session has ended or its token was replaced. The call was not sent; nothing was carried out.";
/// The configuration moves faster than calls can be decided.
pub const KEEPS_CHANGING: &str =
    "the configuration changed again and again while the call was decided. Nothing was carried out. Try again.";
/// Too many calls wait for a server.
pub const BUSY: &str = "too many calls to it are waiting";

/// Longest text of a server that is repeated in our own words, in characters.
const EXCERPT: usize = 2_000;

/// How a call is told, to the model and to the audit.
#[derive(Debug)]
pub struct Told {
    /// For the audit.
    pub outcome: Outcome,
    /// For the audit; empty when nothing went wrong.
    pub error: String,
    /// For the model.
    pub output: Output,
}

/// Why a call was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The engine or a person cancelled it.
    Cancelled,
    /// Its session was deleted.
    SessionEnded,
    /// The gateway shuts down.
    Draining,
}

/// A call that was stopped.
pub fn stopped(stop: Stop) -> Told {
    match stop {
        Stop::Cancelled => told(Outcome::Cancelled, "the call was cancelled; it may or may not have been carried out."),
        Stop::SessionEnded => told(
            Outcome::Cancelled,
            "the session was deleted while the call ran; it may or may not have been carried out.",
        ),
        Stop::Draining => told(
            Outcome::Unknown,
            "Gatehouse is restarting and could not wait for the answer; the call may or may not have been carried out. Check before you repeat it.",
        ),
    }
}

/// A server that could not be connected to.
pub fn not_opened(server: &str, why: &str) -> Told {
    let why = bounded(why, EXCERPT);
    told(
        Outcome::NotSent,
        &format!(
            "the server `{server}` cannot be used now: {why}. Nothing was carried out. Try again later, or tell the user."
        ),
    )
}

/// An answer that is no tool result.
pub fn not_a_result(server: &str, wrong: &NotAResult) -> Told {
    told(
        Outcome::ToolError,
        &format!("the server `{server}` answered, but not as a tool does: {wrong}. The call was probably carried out."),
    )
}

/// A request that failed.
pub fn failed(server: &str, error: &RequestError, hints: Hints, timeout: Duration) -> Told {
    let doubt = if hints.read_only {
        "It only reads, so it can be repeated."
    } else {
        "The call may or may not have been carried out. Check before you repeat it."
    };
    let nothing = "Nothing was carried out. Try again later, or tell the user.";
    match error {
        RequestError::NotSent(cause) if cause.certainly_not_carried_out() => {
            told(Outcome::NotSent, &format!("the server `{server}` cannot be reached: {cause}. {nothing}"))
        }
        RequestError::NotSent(_) | RequestError::Lost(_) => {
            told(Outcome::Unknown, &format!("the connection to the server `{server}` was lost. {doubt}"))
        }
        RequestError::SessionGone => {
            told(Outcome::NotSent, &format!("the server `{server}` forgets its sessions at once. {nothing}"))
        }
        RequestError::TimedOut => {
            let seconds = timeout.as_secs();
            told(
                Outcome::TimedOut,
                &format!("the server `{server}` did not answer within {seconds} s and was told to stop. {doubt}"),
            )
        }
        RequestError::Cancelled => stopped(Stop::Cancelled),
        RequestError::Rpc { code, message, .. } => {
            let message = bounded(message, EXCERPT);
            told(Outcome::ToolError, &format!("the server `{server}` refused the call: {message} ({code})"))
        }
        RequestError::Unauthorized { .. } | RequestError::Forbidden { .. } => told(
            Outcome::NotSent,
            &format!(
                "the server `{server}` does not accept Gatehouse's credentials. An admin must check its headers. {nothing}"
            ),
        ),
        RequestError::Http { status, .. } => {
            let doubt = if error.certainly_not_carried_out() { nothing } else { doubt };
            told(Outcome::ToolError, &format!("the server `{server}` answered with HTTP status {status}. {doubt}"))
        }
        RequestError::TooLarge { most } => told(
            Outcome::ToolError,
            &format!(
                "the answer of the server `{server}` is larger than {most} bytes and was not read. Ask for less. {doubt}"
            ),
        ),
        // The details may name addresses that are nobody's business; the connection test shows them to an admin.
        RequestError::NotMcp(_) | RequestError::Protocol(_) => told(
            Outcome::ToolError,
            &format!(
                "the server `{server}` did not answer as an MCP server does. {doubt} An admin can see why with `gatehouse server test {server}`."
            ),
        ),
    }
}

/// The beginning of an error result's text, for the audit.
pub fn excerpt(output: &Output) -> String {
    let whole: Vec<u8> = output.pieces.iter().flatten().copied().take(1_000).collect();
    let text = String::from_utf8_lossy(&whole);
    let begin = text.find("\"text\":\"").map_or(0, |place| place + 8);
    let inside = &text[begin..];
    let end = inside.find("\"}").unwrap_or(inside.len());
    crate::audit::mask::mask_text(&bounded(&inside[..end], 500)).into_owned()
}

/// A text of somebody else's: at most `most` characters, without control and direction-changing characters.
pub fn bounded(text: &str, most: usize) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    let clean: String = text.chars().map(|c| if hidden(c) { '\u{fffd}' } else { c }).take(most + 1).collect();
    crate::catalog::clean::cut(&clean, most).into_owned()
}

fn told(outcome: Outcome, text: &str) -> Told {
    Told { outcome, error: text.to_owned(), output: results::refusal(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: Hints = Hints { read_only: true, destructive: false, idempotent: false, open_world: true };
    const WRITING: Hints = Hints { read_only: false, ..READING };

    #[test]
    fn a_lost_call_says_whether_it_may_have_been_carried_out() {
        let lost = RequestError::Lost("reset by 10.0.0.7:8080".to_owned());
        let told = failed("orders", &lost, WRITING, Duration::from_secs(1));
        assert_eq!(told.outcome, Outcome::Unknown);
        assert!(told.error.contains("may or may not have been carried out") && !told.error.contains("10.0.0.7"));
        assert!(failed("orders", &lost, READING, Duration::from_secs(1)).error.contains("can be repeated"));
    }

    #[test]
    fn what_a_server_says_is_bounded_and_cannot_hide_anything() {
        let message = format!("\u{202e}evil\u{0}{}", "x".repeat(5_000));
        let error = RequestError::Rpc { code: -32_000, message, data: None, http_status: 200 };
        let told = failed("s", &error, WRITING, Duration::from_secs(1));
        assert!(told.error.chars().count() < 2_200);
        assert!(!told.error.contains(['\u{202e}', '\u{0}']));
    }

    #[test]
    fn the_model_is_told_in_an_error_result() {
        let told = not_opened("s", "connection refused");
        assert!(told.output.is_error && told.outcome == Outcome::NotSent);
        let text = String::from_utf8(told.output.pieces.concat()).unwrap();
        assert!(
            text.contains("Error: the server `s` cannot be used now: connection refused. Nothing was carried out.")
        );
    }
}
