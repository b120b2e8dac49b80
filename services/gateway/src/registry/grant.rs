//! Pure. Approvals for the rest of a session.

use gatehouse_types::{GrantId, InteractionId};
use time::OffsetDateTime;

/// A person's yes to the calls of one tool for the rest of a session, as long as its definition stays what they saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// Name of the server.
    pub server: String,
    /// Name of the tool there.
    pub tool: String,
    /// The card that was answered.
    pub interaction: InteractionId,
    /// Who answered.
    pub by: String,
    /// When.
    pub at: OffsetDateTime,
}
