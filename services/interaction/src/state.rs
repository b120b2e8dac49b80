//! Pure. Where a card stands, and what can become of it.
//!
//! ```text
//! open ─▶ answered ─▶ any of the words below
//!   └───▶ timed_out | cancelled | session_deleted | interrupted | superseded
//! ```
//!
//! A word that closes an answered card says that its answer was not used: the gateway that waited had ended, or would carry out
//! something else by now.

use time::OffsetDateTime;

/// A person's word on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// This call, once.
    Approve,
    /// This call, and later calls of this tool in this session.
    ApproveForSession,
    /// Not this call.
    Deny,
}

impl Decision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Approve, Self::ApproveForSession, Self::Deny];

    /// As stored and counted.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::ApproveForSession => "approve_for_session",
            Self::Deny => "deny",
        }
    }

    /// The reverse of [`Decision::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.as_str() == text)
    }
}

/// What a person says to a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The decision.
    pub decision: Decision,
    /// Why, for the model; may be empty.
    pub reason: String,
    /// Who answers.
    pub by: String,
}

/// The answer that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The decision.
    pub decision: Decision,
    /// Why, for the model; may be empty.
    pub reason: String,
    /// Who answered.
    pub by: String,
    /// When.
    pub at: OffsetDateTime,
}

/// A word that closes a card without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// Nobody answered in time.
    TimedOut,
    /// The engine cancelled the call, or went away.
    Cancelled,
    /// The session was deleted.
    SessionDeleted,
    /// The gateway that waited ended.
    Interrupted,
    /// What the card showed is no longer what would be carried out.
    Superseded,
}

/// The word of a state alone: what is stored, and what lists are filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    /// Waits for a person.
    Open,
    /// A person answered.
    Answered,
    /// Closed without an answer that is used.
    Ended(End),
}

impl Word {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Open,
        Self::Answered,
        Self::Ended(End::TimedOut),
        Self::Ended(End::Cancelled),
        Self::Ended(End::SessionDeleted),
        Self::Ended(End::Interrupted),
        Self::Ended(End::Superseded),
    ];

    /// As stored and counted.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Ended(End::TimedOut) => "timed_out",
            Self::Ended(End::Cancelled) => "cancelled",
            Self::Ended(End::SessionDeleted) => "session_deleted",
            Self::Ended(End::Interrupted) => "interrupted",
            Self::Ended(End::Superseded) => "superseded",
        }
    }

    /// The reverse of [`Word::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.as_str() == text)
    }
}

/// Where a card stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Waits for a person.
    Open,
    /// A person answered.
    Answered(Answer),
    /// Closed by a word.
    Ended {
        /// The word.
        end: End,
        /// When.
        at: OffsetDateTime,
        /// The answer that came before, and was not used.
        answer: Option<Answer>,
    },
}

/// What an answer comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answering {
    /// It counts: the card's new state.
    Counts(State),
    /// It came too late, but before the card was closed: the card's new state.
    Late(State),
    /// The card was closed before and stays as it is.
    Closed(State),
    /// The card does not allow to decide for the rest of the session. It stays open.
    MayNotRemember,
}

impl State {
    /// The word alone.
    pub const fn word(&self) -> Word {
        match self {
            Self::Open => Word::Open,
            Self::Answered(_) => Word::Answered,
            Self::Ended { end, .. } => Word::Ended(*end),
        }
    }

    /// Whether it waits for a person.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// The answer, when a person gave one.
    pub const fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Open => None,
            Self::Answered(answer) => Some(answer),
            Self::Ended { answer, .. } => answer.as_ref(),
        }
    }

    /// When it was answered or closed.
    pub fn closed_at(&self) -> Option<OffsetDateTime> {
        match self {
            Self::Open => None,
            Self::Answered(answer) => Some(answer.at),
            Self::Ended { at, .. } => Some(*at),
        }
    }

    /// An answer at `now`, to a card that may be answered before `expires_at` and for the rest of the session as
    /// `may_remember` says. A card that is closed already comes back before anything else is looked at.
    pub fn answered(
        self,
        reply: Reply,
        may_remember: bool,
        expires_at: OffsetDateTime,
        now: OffsetDateTime,
    ) -> Answering {
        match self {
            Self::Open if now >= expires_at => Answering::Late(Self::ended(End::TimedOut, now)),
            Self::Open if reply.decision == Decision::ApproveForSession && !may_remember => Answering::MayNotRemember,
            Self::Open => {
                let Reply { decision, reason, by } = reply;
                Answering::Counts(Self::Answered(Answer { decision, reason, by, at: now }))
            }
            closed => Answering::Closed(closed),
        }
    }

    /// The state once the gateway that waits closes the card by a word at `now`, or the state as it is, when a word has closed it
    /// before. An answer that the gateway has not used is kept, and counts no more.
    pub fn closed(self, end: End, now: OffsetDateTime) -> Result<Self, Self> {
        match self {
            Self::Open => Ok(Self::ended(end, now)),
            Self::Answered(answer) => Ok(Self::Ended { end, at: now, answer: Some(answer) }),
            closed @ Self::Ended { .. } => Err(closed),
        }
    }

    const fn ended(end: End, at: OffsetDateTime) -> Self {
        Self::Ended { end, at, answer: None }
    }
}

#[cfg(test)]
mod tests;
