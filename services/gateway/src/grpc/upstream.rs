//! What needs the side that speaks MCP to servers.

use futures_util::{StreamExt as _, stream::BoxStream};
use gatehouse_platform::error::to_status;
use gatehouse_proto::gateway::v1;
use tonic::Status;

use crate::{
    convert::{call_request, lookup, test_target},
    error::Error,
    registry::{State, upstream::TestTarget},
    store,
};

/// Largest arguments of a call over gRPC in bytes; a smaller setting counts, too.
pub(super) const ARGUMENTS_BYTES: usize = 4 << 20;

/// The answers of a running call.
pub(super) type CallStream = BoxStream<'static, Result<v1::CallToolResponse, Status>>;

pub(super) async fn test_server(
    state: &State,
    request: v1::TestServerRequest,
) -> Result<v1::TestServerResponse, Error> {
    let target = match test_target(request)? {
        Ok(name) => {
            let mut connection = store::acquire(&state.pool).await?;
            TestTarget::Registered(store::servers::get(&mut connection, &name).await?.id)
        }
        Err(url) => url,
    };
    Ok(state.upstream.test(target).await?.into())
}

pub(super) async fn refresh_server(
    state: &State,
    request: v1::RefreshServerRequest,
) -> Result<v1::RefreshServerResponse, Error> {
    let key = lookup("server", &request.server)?;
    let mut connection = store::acquire(&state.pool).await?;
    let server = store::servers::get(&mut connection, &key).await?.id;
    // No connection to the database is held while a server is asked.
    drop(connection);
    let changed = state.upstream.refresh(server).await?;
    let mut connection = store::acquire(&state.pool).await?;
    let server = store::servers::get(&mut connection, &server.to_string()).await?;
    Ok(v1::RefreshServerResponse { server: Some(server.into()), changed })
}

pub(super) async fn tools_version(
    state: &State,
    request: v1::GetToolsVersionRequest,
) -> Result<v1::GetToolsVersionResponse, Error> {
    let session = session(state, &request.session).await?;
    Ok(state.upstream.tools_version(session).await?.into())
}

pub(super) async fn offered_tools(
    state: &State,
    request: v1::ListOfferedToolsRequest,
) -> Result<v1::ListOfferedToolsResponse, Error> {
    let session = session(state, &request.session).await?;
    Ok(state.upstream.offered_tools(session).await?.into())
}

/// Dropping the stream cancels the call.
pub(super) async fn call_tool(state: &State, request: v1::CallToolRequest) -> Result<CallStream, Error> {
    let call = call_request(request, ARGUMENTS_BYTES)?;
    let session = session(state, &call.session).await?;
    let events = state.upstream.call(session, call).await?;
    Ok(events.map(|event| event.map(v1::CallToolResponse::from).map_err(to_status)).boxed())
}

async fn session(state: &State, key: &str) -> Result<gatehouse_types::SessionId, Error> {
    let key = lookup("session", key)?;
    let mut connection = store::acquire(&state.pool).await?;
    Ok(store::sessions::get(&mut connection, &key).await?.id)
}
