//! What the handlers of the gateway's gRPC services share.

use std::{path::PathBuf, sync::Arc};

use gatehouse_types::Clock;
use time::OffsetDateTime;

use crate::{
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
    /// Folder that workspaces are under; `None` when the operator configured none.
    pub workspace_root: Option<PathBuf>,
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
