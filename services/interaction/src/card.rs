//! Pure. Cards: questions to people. A card shows what is asked and is bound to exactly that by hashes; where it stands is its
//! [`State`].

use std::{fmt, time::Duration};

use gatehouse_types::{CallId, Hints, InteractionId, Policy, ReplicaId, RunId, SessionId};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::state::State;

/// SHA-256.
pub type Hash = [u8; 32];

/// Asks whether a call may go out. `Debug` leaves the arguments out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Display name of the tool.
    pub title: String,
    /// Arguments: JSON with secrets masked, or the beginning of it. Hides nothing.
    pub arguments: String,
    /// Size of the whole arguments in bytes.
    pub arguments_bytes: u64,
    /// The hints that count.
    pub hints: Hints,
    /// The policy that asks.
    pub policy: Policy,
    /// Whether the answer may count for the rest of the session.
    pub may_remember: bool,
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approval").field("title", &self.title).field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// A card that shall be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCard {
    /// Its id, chosen by the caller.
    pub id: InteractionId,
    /// The session that calls.
    pub session_id: SessionId,
    /// Who inside the session calls; empty is the default actor.
    pub actor: String,
    /// The run that waits.
    pub run_id: Option<RunId>,
    /// The call that waits.
    pub call_id: CallId,
    /// The gateway replica that waits.
    pub replica_id: ReplicaId,
    /// Name of the server.
    pub server: String,
    /// Name of the tool at the server, fit to be shown.
    pub tool: String,
    /// What is asked.
    pub approval: Approval,
    /// Hash of the raw arguments.
    pub arguments_sha256: Hash,
    /// Hash of the terms.
    pub terms_sha256: Hash,
    /// How long it may stay open.
    pub timeout: Duration,
}

/// A card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Its id.
    pub id: InteractionId,
    /// Where it stands.
    pub state: State,
    /// The session that calls.
    pub session_id: SessionId,
    /// Who inside the session calls; empty is the default actor.
    pub actor: String,
    /// The run that waits.
    pub run_id: Option<RunId>,
    /// The call that waits.
    pub call_id: CallId,
    /// Name of the server.
    pub server: String,
    /// Name of the tool at the server.
    pub tool: String,
    /// What is asked.
    pub approval: Approval,
    /// Hash of the raw arguments.
    pub arguments_sha256: Vec<u8>,
    /// Hash of the terms.
    pub terms_sha256: Vec<u8>,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// From when on it counts as not answered.
    pub expires_at: OffsetDateTime,
    /// Grows with every change.
    pub version: i64,
}
