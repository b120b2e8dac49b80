//! Pure. Calls in the audit, as they are read.

use std::time::Duration;

use gatehouse_types::{CallId, Hints, InteractionId, RunId, SessionId};
use time::OffsetDateTime;

/// How a call ended, or that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Still running: stored as NULL.
    Running,
    /// The tool answered.
    Ok,
    /// The tool answered with an error, or the server refused the call.
    ToolError,
    /// Refused before it went out.
    Denied,
    /// Took too long.
    TimedOut,
    /// The engine, a person or the end of the session cancelled it.
    Cancelled,
    /// The gateway died while it ran.
    Interrupted,
    /// It went out, and the answer never came.
    Unknown,
    /// It became a background call.
    Background,
    /// It could not be sent.
    NotSent,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Running,
        Self::Ok,
        Self::ToolError,
        Self::Denied,
        Self::TimedOut,
        Self::Cancelled,
        Self::Interrupted,
        Self::Unknown,
        Self::Background,
        Self::NotSent,
    ];

    /// The word that is stored; `None` while it runs.
    pub const fn stored(self) -> Option<&'static str> {
        match self {
            Self::Running => None,
            Self::Ok => Some("ok"),
            Self::ToolError => Some("tool_error"),
            Self::Denied => Some("denied"),
            Self::TimedOut => Some("timed_out"),
            Self::Cancelled => Some("cancelled"),
            Self::Interrupted => Some("interrupted"),
            Self::Unknown => Some("unknown"),
            Self::Background => Some("background"),
            Self::NotSent => Some("not_sent"),
        }
    }

    /// The outcome that is stored as this.
    pub fn from_stored(word: Option<&str>) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.stored() == word)
    }
}

/// One call in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its id.
    pub id: CallId,
    /// The session.
    pub session_id: SessionId,
    /// The actor; empty is the default one.
    pub actor: String,
    /// The run that was open when it came.
    pub run_id: Option<RunId>,
    /// Name of the server, as it was then.
    pub server: String,
    /// Name of the tool at the server.
    pub tool: String,
    /// Effective hints when it came.
    pub hints: Hints,
    /// How it ended.
    pub outcome: Outcome,
    /// When it came.
    pub started_at: OffsetDateTime,
    /// How long it took; `None` while it runs.
    pub duration: Option<Duration>,
    /// How often it was sent again.
    pub retries: u32,
    /// Size of the arguments in bytes.
    pub arguments_bytes: i64,
    /// SHA-256 of the whole arguments.
    pub arguments_sha256: Vec<u8>,
    /// Size of the result in bytes.
    pub result_bytes: i64,
    /// What went wrong; empty when nothing did.
    pub error: String,
    /// Trace id in hexadecimal; empty for none.
    pub trace_id: String,
    /// The tool's policy.
    pub policy: String,
    /// The session's permission mode.
    pub permission_mode: String,
    /// What was decided; see `calls.proto`.
    pub decision: String,
    /// Who answered; empty when nobody was asked.
    pub decided_by: String,
    /// When.
    pub decided_at: Option<OffsetDateTime>,
    /// The card.
    pub interaction: Option<InteractionId>,
    /// Paths of saved files.
    pub files: Vec<String>,
    /// Arguments and result; only when one call is asked for.
    pub payload: Option<Payload>,
}

/// What went in and what came out, masked and cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Arguments: JSON, or the beginning of it.
    pub arguments: String,
    /// Structured result: JSON, or the beginning of it.
    pub structured_result: Option<String>,
    /// What did not match or could not be done.
    pub notes: Vec<String>,
}

/// Which calls to list. What is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Id or external id of a session.
    pub session: Option<String>,
    /// Name of a server.
    pub server: Option<String>,
    /// Name of a tool at its server.
    pub tool: Option<String>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Not before.
    pub from: Option<OffsetDateTime>,
    /// Before.
    pub to: Option<OffsetDateTime>,
}

impl CallFilter {
    /// The filter as texts, so that a page's token is bound to it.
    pub fn parts(&self) -> [String; 6] {
        let time = |at: Option<OffsetDateTime>| at.map(|at| at.unix_timestamp_nanos().to_string()).unwrap_or_default();
        let outcome = self.outcome.map(|outcome| outcome.stored().unwrap_or("running").to_owned());
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        [
            text(&self.session),
            text(&self.server),
            text(&self.tool),
            outcome.unwrap_or_default(),
            time(self.from),
            time(self.to),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_comes_back_from_its_stored_word() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_stored(outcome.stored()), Some(outcome));
        }
        assert_eq!(Outcome::from_stored(Some("odd")), None);
    }
}
