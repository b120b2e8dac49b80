//! Pure: whether a call runs, and whether it is sent again.

use std::sync::Arc;

use bytes::Bytes;
use gatehouse_mcp::client::RequestError;
use gatehouse_types::Hints;

use super::words;
use crate::catalog::{Offer, Tool};

/// What becomes of a call.
#[derive(Debug)]
pub enum Decision<'a> {
    /// It goes to this tool.
    Run(&'a Arc<Tool>),
    /// It does not go out.
    Refuse(Refusal),
}

/// Why a call does not go out, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The offer has no tool of this name.
    #[error("there is no tool `{0}` in this session. List the tools again; it may have been removed or switched off.")]
    NoSuchTool(String),
    /// The arguments are not a JSON object.
    #[error("the arguments must be a JSON object.")]
    ArgumentsNotAnObject,
    /// The arguments are too large.
    #[error("the arguments have {size} bytes; at most {most} are taken. Send less, or send a file's path instead.")]
    ArgumentsTooLarge {
        /// Their size in bytes.
        size: usize,
        /// The bound in bytes.
        most: u32,
    },
}

/// Decides about a call. `arguments` is JSON text, or empty for none; without an offer (the profile is gone) nothing runs.
pub fn decide<'a>(offer: Option<&'a Offer>, name: &str, arguments: &Bytes, most: u32) -> Decision<'a> {
    let Some(tool) = offer.and_then(|offer| offer.find(name)) else {
        return Decision::Refuse(Refusal::NoSuchTool(words::bounded(name, 128)));
    };
    if arguments.len() > most as usize {
        return Decision::Refuse(Refusal::ArgumentsTooLarge { size: arguments.len(), most });
    }
    if !arguments.is_empty() && arguments.first() != Some(&b'{') {
        return Decision::Refuse(Refusal::ArgumentsNotAnObject);
    }
    Decision::Run(tool)
}

/// What follows a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Send it once more, on a fresh connection.
    Again,
    /// Do not.
    Stop,
}

/// Whether a failed request is sent again: once, when it is certain that nothing was carried out, or when the tool is
/// read-only or idempotent and the connection was lost.
pub fn retry(error: &RequestError, hints: Hints, retries: i32) -> Retry {
    let certain = match error {
        RequestError::SessionGone => true,
        RequestError::NotSent(error) => error.certainly_not_carried_out(),
        _ => false,
    };
    let lost = matches!(error, RequestError::Lost(_) | RequestError::NotSent(_));
    let harmless = hints.read_only || hints.idempotent;
    if retries == 0 && (certain || (lost && harmless)) { Retry::Again } else { Retry::Stop }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(read_only: bool, idempotent: bool) -> Hints {
        Hints { read_only, destructive: false, idempotent, open_world: true }
    }

    #[test]
    fn a_call_is_sent_again_once_when_nothing_was_carried_out_or_repeating_does_no_harm() {
        let (plain, reading, idempotent) = (hints(false, false), hints(true, false), hints(false, true));
        for (error, hints, expected) in [
            (RequestError::SessionGone, plain, Retry::Again),
            (RequestError::SessionGone, reading, Retry::Again),
            (RequestError::Lost(String::new()), plain, Retry::Stop),
            (RequestError::Lost(String::new()), reading, Retry::Again),
            (RequestError::Lost(String::new()), idempotent, Retry::Again),
            (RequestError::TimedOut, reading, Retry::Stop),
            (RequestError::Cancelled, reading, Retry::Stop),
            (RequestError::Protocol(String::new()), idempotent, Retry::Stop),
            (RequestError::Http { status: 503, retry_after: None }, reading, Retry::Stop),
        ] {
            assert_eq!(retry(&error, hints, 0), expected, "{error:?}");
            assert_eq!(retry(&error, hints, 1), Retry::Stop, "{error:?}");
        }
    }

    #[test]
    fn without_an_offer_nothing_runs() {
        let decision = decide(None, "a__b", &Bytes::new(), 10);
        assert!(matches!(decision, Decision::Refuse(Refusal::NoSuchTool(name)) if name == "a__b"));
    }
}
