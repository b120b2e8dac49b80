//! What the handlers of the gateway's gRPC services share.

use std::sync::Arc;

use gatehouse_types::Clock;
use time::OffsetDateTime;

use crate::{
    files::Files,
    store::{Keyring, Pool},
    upstream::Upstream,
};

/// What the handlers share. One for a process.
#[derive(Debug)]
pub struct State {
    /// Connections to Postgres.
    pub pool: Pool,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Seals the values of headers.
    pub keyring: Arc<Keyring>,
    /// Files of results, and the root of workspaces.
    pub files: Arc<Files>,
    /// The MCP endpoint, as engines reach it.
    pub mcp_url: String,
    /// The side that speaks MCP to servers.
    pub upstream: Upstream,
}

impl State {
    /// The time now.
    pub fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }
}
