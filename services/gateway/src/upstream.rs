//! The side that speaks MCP to servers.
#![expect(clippy::unused_async, clippy::unused_self, reason = "the upstream side is written next to this")]

use futures_util::stream::BoxStream;
use gatehouse_types::{ServerId, SessionId};

use crate::{
    error::Error,
    registry::upstream::{CallEvent, CallRequest, Offered, TestReport, TestTarget, ToolsVersion},
};

/// Connections to servers.
#[derive(Debug, Default)]
pub struct Upstream {}

impl Upstream {
    /// Connects and reports step by step. A server that does not answer is a report.
    pub async fn test(&self, _target: TestTarget) -> Result<TestReport, Error> {
        Err(unavailable())
    }

    /// Lists a server's tools now and stores them. Gives whether anything changed.
    pub async fn refresh(&self, _server: ServerId) -> Result<bool, Error> {
        Err(unavailable())
    }

    /// A server was registered, changed or removed: its connections are closed, its tools listed in the background.
    pub fn server_changed(&self, _server: ServerId) {}

    /// A session was deleted: its calls are cancelled, its connections closed.
    pub fn session_ended(&self, _session: SessionId) {}

    /// What a session would be offered, in short.
    pub async fn tools_version(&self, _session: SessionId) -> Result<ToolsVersion, Error> {
        Err(unavailable())
    }

    /// What a session is offered.
    pub async fn offered_tools(&self, _session: SessionId) -> Result<Offered, Error> {
        Err(unavailable())
    }

    /// Calls a tool. Dropping the stream cancels the call.
    pub async fn call(
        &self,
        _session: SessionId,
        _request: CallRequest,
    ) -> Result<BoxStream<'static, Result<CallEvent, Error>>, Error> {
        Err(unavailable())
    }
}

fn unavailable() -> Error {
    Error::Unavailable("this gateway does not connect to servers yet".to_owned())
}
