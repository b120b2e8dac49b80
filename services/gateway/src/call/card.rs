//! Pure: approval cards, as the path of a call sees them.

use gatehouse_types::{CallId, Hints, InteractionId, Policy, ReplicaId, RunId, SessionId};
use time::OffsetDateTime;

use super::terms::Hash;

/// A card to open.
#[derive(Debug, Clone)]
pub struct NewCard {
    /// Its id.
    pub id: InteractionId,
    /// The session.
    pub session: SessionId,
    /// The actor; empty is the default one.
    pub actor: String,
    /// The run that waits.
    pub run: Option<RunId>,
    /// The call that waits.
    pub call: CallId,
    /// The replica that waits.
    pub replica: ReplicaId,
    /// Name of the server.
    pub server: String,
    /// Name of the tool at the server.
    pub tool: String,
    /// Display name of the tool.
    pub title: String,
    /// Arguments, masked and cut.
    pub arguments: String,
    /// Size of the whole arguments in bytes.
    pub arguments_bytes: i64,
    /// Hints that count.
    pub hints: Hints,
    /// Policy that asks.
    pub policy: Policy,
    /// Whether a yes for the rest of the session is an answer.
    pub may_remember: bool,
    /// What the approval is bound to.
    pub binding: Binding,
    /// How long it may stay open.
    pub timeout_sec: u32,
}

/// What an approval is bound to: exactly these arguments under exactly these terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// See [`super::terms::arguments`].
    pub arguments: Hash,
    /// See [`super::terms::terms`].
    pub terms: Hash,
}

/// How a card ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// A person answered.
    Answered(Answered),
    /// Nobody did.
    Closed(Closed),
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// What they said.
    pub answer: Answer,
    /// Who.
    pub by: String,
    /// When.
    pub at: OffsetDateTime,
    /// What the card was bound to, as it is stored.
    pub binding: Binding,
}

/// What a person can say to an approval card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, to this call.
    Approve,
    /// Yes, to this and later calls of the tool in this session.
    ApproveForSession,
    /// No, with a reason for the model that may be empty.
    Deny(String),
}

/// Why a card was closed without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Closed {
    /// Nobody answered in time.
    TimedOut,
    /// The engine cancelled the call.
    Cancelled,
    /// The session was deleted.
    SessionDeleted,
    /// The gateway that waited ended.
    Interrupted,
    /// Its terms moved.
    Superseded,
}

impl Closed {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::TimedOut, Self::Cancelled, Self::SessionDeleted, Self::Interrupted, Self::Superseded];

    /// The word for the audit.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::SessionDeleted => "session_deleted",
            Self::Interrupted => "interrupted",
            Self::Superseded => "superseded",
        }
    }
}
