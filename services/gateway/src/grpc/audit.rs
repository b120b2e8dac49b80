//! `AuditService`.

use std::sync::Arc;

use gatehouse_proto::gateway::v1::{self, audit_service_server::AuditService};
use tonic::{Request, Response, Status};

use super::{answer, methods, paged};
use crate::{
    convert::{ListCalls, call_key},
    error::Error,
    registry::State,
    store,
};

/// The record of every call.
#[derive(Debug)]
pub(super) struct Audit(pub(super) Arc<State>);

impl Audit {
    async fn list(&self, request: v1::ListCallsRequest) -> Result<v1::ListCallsResponse, Error> {
        let list = ListCalls::try_from(request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let rows = store::audit::list(&mut connection, &list.filter, list.after, list.size).await?;
        let (calls, next_page_token) = paged(rows, list.size, |last| list.token(last));
        Ok(v1::ListCallsResponse { calls, next_page_token })
    }

    async fn get(&self, request: v1::GetCallRequest) -> Result<v1::GetCallResponse, Error> {
        let id = call_key(&request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let call = store::audit::get(&mut connection, id).await?;
        Ok(v1::GetCallResponse { call: Some(call.into()) })
    }
}

#[tonic::async_trait]
impl AuditService for Audit {
    async fn list_calls(
        &self,
        request: Request<v1::ListCallsRequest>,
    ) -> Result<Response<v1::ListCallsResponse>, Status> {
        answer(&methods::LIST_CALLS, request, |request, _| self.list(request)).await
    }

    async fn get_call(&self, request: Request<v1::GetCallRequest>) -> Result<Response<v1::GetCallResponse>, Status> {
        answer(&methods::GET_CALL, request, |request, _| self.get(request)).await
    }
}
