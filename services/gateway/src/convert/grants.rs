//! Approvals for the rest of a session.

use gatehouse_proto::gateway::v1;
use gatehouse_types::GrantId;

use super::timestamp;
use crate::{
    error::Error,
    registry::{check::Fields, grant::Grant, text},
};

/// The session of a request, and which of its approvals to take back: one, or all.
pub fn grants_to_revoke(request: &v1::RevokeGrantsRequest) -> Result<(String, Option<GrantId>), Error> {
    let mut fields = Fields::new();
    let session = fields.take("session", text::lookup(&request.session));
    let grant =
        if request.grant_id.is_empty() { None } else { fields.take("grant_id", text::id(&request.grant_id).map(Some)) };
    fields.finish((session, grant))
}

impl From<Grant> for v1::Grant {
    fn from(grant: Grant) -> Self {
        Self {
            id: grant.id.to_string(),
            server: grant.server,
            tool: grant.tool,
            interaction_id: grant.interaction.to_string(),
            granted_by: grant.by,
            granted_at: Some(timestamp(grant.at)),
        }
    }
}
