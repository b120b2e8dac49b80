//! `ServerService`.

use std::sync::Arc;

use gatehouse_proto::gateway::v1::{self, server_service_server::ServerService};
use tonic::{Request, Response, Status};

use super::{answer, methods, paged, upstream};
use crate::{
    convert::{Change, ListServers, lookup},
    error::Error,
    registry::{
        State,
        server::{NewServer, Server, ServerChange},
    },
    store::{self, Made},
};

/// The registry of servers.
#[derive(Debug)]
pub(super) struct Servers(pub(super) Arc<State>);

impl Servers {
    async fn create(&self, request: v1::CreateServerRequest) -> Result<v1::CreateServerResponse, Error> {
        let new = NewServer::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let made = store::servers::create(&mut transaction, &self.0.keyring, &new, self.0.now()).await?;
        store::commit(transaction).await?;
        if let Made::New(server) = &made {
            tracing::info!(server.id = %server.id, server.name = server.name, "server registered");
            self.0.upstream.server_changed(server.id);
        }
        Ok(v1::CreateServerResponse { server: Some(made.into_inner().into()) })
    }

    /// With what is to be seen of its process, when it is a program.
    fn shown(&self, server: Server) -> v1::Server {
        let process = self.0.upstream.process(server.id);
        v1::Server { process: process.map(v1::ServerProcess::from), ..v1::Server::from(server) }
    }

    async fn get(&self, request: v1::GetServerRequest) -> Result<v1::GetServerResponse, Error> {
        let key = lookup("server", &request.server)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let server = store::servers::get(&mut connection, &key).await?;
        Ok(v1::GetServerResponse { server: Some(self.shown(server)) })
    }

    async fn list(&self, request: v1::ListServersRequest) -> Result<v1::ListServersResponse, Error> {
        let list = ListServers::try_from(request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let rows = store::servers::list(&mut connection, list.after.as_deref(), list.size).await?;
        let (rows, next_page_token) = paged(rows, list.size, ListServers::token);
        let servers = rows.into_iter().map(|server| self.shown(server)).collect();
        Ok(v1::ListServersResponse { servers, next_page_token })
    }

    async fn update(&self, request: v1::UpdateServerRequest) -> Result<v1::UpdateServerResponse, Error> {
        let Change { key, change } = Change::<ServerChange>::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let keyring = &self.0.keyring;
        let server = store::servers::update(&mut transaction, keyring, &key, &change, self.0.now()).await?;
        store::commit(transaction).await?;
        if !change.is_empty() {
            tracing::info!(server.id = %server.id, server.name = server.name, "server changed");
            self.0.upstream.server_changed(server.id);
        }
        Ok(v1::UpdateServerResponse { server: Some(server.into()) })
    }

    async fn delete(&self, request: v1::DeleteServerRequest) -> Result<v1::DeleteServerResponse, Error> {
        let key = lookup("server", &request.server)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let id = store::servers::delete(&mut transaction, &key).await?;
        store::commit(transaction).await?;
        tracing::info!(server.id = %id, "server removed");
        self.0.upstream.server_changed(id);
        Ok(v1::DeleteServerResponse {})
    }
}

#[tonic::async_trait]
impl ServerService for Servers {
    async fn create_server(
        &self,
        request: Request<v1::CreateServerRequest>,
    ) -> Result<Response<v1::CreateServerResponse>, Status> {
        answer(&methods::CREATE_SERVER, request, |request, _| self.create(request)).await
    }

    async fn get_server(
        &self,
        request: Request<v1::GetServerRequest>,
    ) -> Result<Response<v1::GetServerResponse>, Status> {
        answer(&methods::GET_SERVER, request, |request, _| self.get(request)).await
    }

    async fn list_servers(
        &self,
        request: Request<v1::ListServersRequest>,
    ) -> Result<Response<v1::ListServersResponse>, Status> {
        answer(&methods::LIST_SERVERS, request, |request, _| self.list(request)).await
    }

    async fn update_server(
        &self,
        request: Request<v1::UpdateServerRequest>,
    ) -> Result<Response<v1::UpdateServerResponse>, Status> {
        answer(&methods::UPDATE_SERVER, request, |request, _| self.update(request)).await
    }

    async fn delete_server(
        &self,
        request: Request<v1::DeleteServerRequest>,
    ) -> Result<Response<v1::DeleteServerResponse>, Status> {
        answer(&methods::DELETE_SERVER, request, |request, _| self.delete(request)).await
    }

    async fn test_server(
        &self,
        request: Request<v1::TestServerRequest>,
    ) -> Result<Response<v1::TestServerResponse>, Status> {
        answer(&methods::TEST_SERVER, request, |request, _| upstream::test_server(&self.0, request)).await
    }

    async fn refresh_server(
        &self,
        request: Request<v1::RefreshServerRequest>,
    ) -> Result<Response<v1::RefreshServerResponse>, Status> {
        answer(&methods::REFRESH_SERVER, request, |request, _| upstream::refresh_server(&self.0, request)).await
    }
}
