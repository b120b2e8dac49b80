//! `CallService`.

use std::sync::Arc;

use gatehouse_proto::gateway::v1::{self, call_service_server::CallService};
use tonic::{Request, Response, Status};

use super::{answer, methods, upstream};
use crate::registry::State;

/// Calls on behalf of a session.
#[derive(Debug)]
pub(super) struct Calls(pub(super) Arc<State>);

#[tonic::async_trait]
impl CallService for Calls {
    type CallToolStream = upstream::CallStream;

    async fn list_offered_tools(
        &self,
        request: Request<v1::ListOfferedToolsRequest>,
    ) -> Result<Response<v1::ListOfferedToolsResponse>, Status> {
        answer(&methods::LIST_OFFERED_TOOLS, request, |request, _| upstream::offered_tools(&self.0, request)).await
    }

    async fn call_tool(&self, request: Request<v1::CallToolRequest>) -> Result<Response<Self::CallToolStream>, Status> {
        answer(&methods::CALL_TOOL, request, |request, _| upstream::call_tool(&self.0, request)).await
    }
}
