//! The gateway's gRPC services: what was asked. Each handler checks the caller, converts the request, and asks the
//! store.

mod audit;
mod calls;
mod files;
mod keys;
pub mod methods;
mod profiles;
mod servers;
mod sessions;
mod settings;
mod tools;
mod upstream;

use std::sync::Arc;

use gatehouse_platform::{
    auth::{Caller, require},
    error::to_status,
};
use gatehouse_proto::gateway::v1::{
    api_key_service_server::ApiKeyServiceServer, audit_service_server::AuditServiceServer,
    call_service_server::CallServiceServer, file_service_server::FileServiceServer,
    profile_service_server::ProfileServiceServer, server_service_server::ServerServiceServer,
    session_service_server::SessionServiceServer, settings_service_server::SettingsServiceServer,
    tool_service_server::ToolServiceServer,
};
use tonic::{Request, Response, Status, service::Routes};

use self::methods::Method;
use crate::{
    error::Error,
    registry::{State, page},
};

/// Largest request of the registry in bytes. A profile that names 1,000 tools of each of 200 servers is made in
/// steps.
const REQUEST_BYTES: usize = 4 << 20;
/// Largest request of a call in bytes: its arguments and what is around them.
const CALL_REQUEST_BYTES: usize = upstream::ARGUMENTS_BYTES + (64 << 10);

/// All services of the gateway. A layer outside must put the [`Caller`] into each request: handlers refuse one
/// without.
pub fn routes(state: &Arc<State>) -> Routes {
    let share = || Arc::clone(state);
    let calls = CallServiceServer::new(calls::Calls(share()));
    let servers = ServerServiceServer::new(servers::Servers(share()));
    let profiles = ProfileServiceServer::new(profiles::Profiles(share()));
    let sessions = SessionServiceServer::new(sessions::Sessions(share()));
    Routes::new(servers.max_decoding_message_size(REQUEST_BYTES))
        .add_service(ToolServiceServer::new(tools::Tools(share())).max_decoding_message_size(REQUEST_BYTES))
        .add_service(profiles.max_decoding_message_size(REQUEST_BYTES))
        .add_service(SettingsServiceServer::new(settings::Settings(share())).max_decoding_message_size(REQUEST_BYTES))
        .add_service(ApiKeyServiceServer::new(keys::Keys(share())).max_decoding_message_size(REQUEST_BYTES))
        .add_service(sessions.max_decoding_message_size(REQUEST_BYTES))
        .add_service(FileServiceServer::new(files::Files(share())).max_decoding_message_size(REQUEST_BYTES))
        .add_service(AuditServiceServer::new(audit::Audit(share())).max_decoding_message_size(REQUEST_BYTES))
        .add_service(calls.max_decoding_message_size(CALL_REQUEST_BYTES))
}

/// Names of the services of [`routes`].
pub const SERVICES: [&str; 9] = [
    "gatehouse.gateway.v1.ServerService",
    "gatehouse.gateway.v1.ToolService",
    "gatehouse.gateway.v1.ProfileService",
    "gatehouse.gateway.v1.SettingsService",
    "gatehouse.gateway.v1.ApiKeyService",
    "gatehouse.gateway.v1.SessionService",
    "gatehouse.gateway.v1.FileService",
    "gatehouse.gateway.v1.AuditService",
    "gatehouse.gateway.v1.CallService",
];

/// Checks the caller, lets `work` answer within the method's deadline, and maps its error.
async fn answer<Q, A, F>(
    method: &Method,
    request: Request<Q>,
    work: impl FnOnce(Q, Caller) -> F,
) -> Result<Response<A>, Status>
where
    F: Future<Output = Result<A, Error>>,
{
    let caller = require(request.extensions(), method.scope)?.clone();
    let work = work(request.into_inner(), caller);
    let answer = match method.deadline {
        Some(deadline) => tokio::time::timeout(deadline, work).await.unwrap_or(Err(Error::DeadlineExceeded)),
        None => work.await,
    };
    answer.map(Response::new).map_err(to_status)
}

/// A page of rows that were read with one more than its size: its items on the wire, and the token of the next page.
fn paged<T, W: From<T>>(rows: Vec<T>, size: usize, token: impl FnOnce(&T) -> String) -> (Vec<W>, String) {
    let (rows, more) = page::cut(rows, size);
    let next = if more { rows.last().map(token).unwrap_or_default() } else { String::new() };
    (rows.into_iter().map(W::from).collect(), next)
}
