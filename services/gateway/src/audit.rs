//! The record of every call.
//!
//! A call that may change something has its row committed before it goes out; in the same statement its decision is checked
//! against the change counters. Ends, and the rows of read-only calls, are written in batches by [`writer::Writer`]: a full
//! queue slows calls and never drops rows; a crash may lose one flush interval of read-only calls.

pub mod mask;
pub mod writer;

use gatehouse_types::{CallId, InteractionId, ReplicaId, RunId, ServerId, SessionId};
use time::OffsetDateTime;

/// A call as it came.
#[derive(Debug, Clone)]
pub struct Started {
    /// Its id.
    pub id: CallId,
    /// The session.
    pub session: SessionId,
    /// `sessions.epoch` that the decision was made at.
    pub session_epoch: i64,
    /// The actor; empty is the default one.
    pub actor: String,
    /// The run that was open.
    pub run: Option<RunId>,
    /// The server; `None` when the tool was not found.
    pub server_id: Option<ServerId>,
    /// The server's name; empty when the tool was not found.
    pub server: String,
    /// The tool's name at the server, or the name that was asked for when it was not found.
    pub tool: String,
    /// Effective hints as bits.
    pub hints: i16,
    /// When it came.
    pub started_at: OffsetDateTime,
    /// Arguments, masked and cut.
    pub arguments: String,
    /// Size of the arguments in bytes.
    pub arguments_bytes: i64,
    /// SHA-256 of the whole arguments.
    pub arguments_sha256: [u8; 32],
    /// W3C trace id in hexadecimal, or empty.
    pub trace_id: String,
    /// The replica that runs it.
    pub replica: ReplicaId,
    /// The tool's policy; empty when the tool was not found.
    pub policy: &'static str,
    /// The session's permission mode.
    pub mode: &'static str,
    /// What was decided about it.
    pub decided: Decided,
}

/// Who decided about a call, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decided {
    /// `allowed`, `granted`, `approved`, `approved_for_session`, `denied`, [`WAITING`] while a person is asked, or the word that
    /// closed the card; empty when the call was refused before anything was decided.
    pub word: &'static str,
    /// The person; empty when nobody was asked.
    pub by: String,
    /// When the person answered.
    pub at: Option<OffsetDateTime>,
    /// The card.
    pub interaction: Option<InteractionId>,
}

/// [`Decided::word`] while a person is asked.
pub const WAITING: &str = "waiting";

/// How a call ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The outcome.
    pub outcome: Outcome,
    /// How long it took.
    pub duration_us: i64,
    /// How often it was sent again.
    pub retries: i32,
    /// Size of the result that the engine got.
    pub result_bytes: i64,
    /// Structured result, masked and cut.
    pub structured_result: Option<String>,
    /// What went wrong, for people; empty when nothing did.
    pub error: String,
    /// Paths of saved files.
    pub files: Vec<String>,
    /// What did not match the output schema, and what could not be checked or saved.
    pub notes: Vec<String>,
}

/// How a call can end (`calls.outcome`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
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
    /// It went out, and the answer never came.
    Unknown,
    /// It could not be sent: nothing was carried out.
    NotSent,
    /// The gateway ended while a person was asked: nothing was carried out.
    Interrupted,
}

impl Outcome {
    /// As stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Denied => "denied",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
            Self::NotSent => "not_sent",
            Self::Interrupted => "interrupted",
        }
    }
}
