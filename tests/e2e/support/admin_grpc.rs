//! What an administrator or an internal service does over gRPC.

use std::collections::HashMap;

use gatehouse_proto::gateway::v1::{
    self as pb, api_key_service_client::ApiKeyServiceClient, audit_service_client::AuditServiceClient,
    call_service_client::CallServiceClient, profile_service_client::ProfileServiceClient,
    server_service_client::ServerServiceClient, session_service_client::SessionServiceClient,
    settings_service_client::SettingsServiceClient, tool_service_client::ToolServiceClient,
};
use gatehouse_testkit::eventually;
use serde_json::Value;
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::Channel,
};

use super::Gate;

/// Adds the API key to each request.
#[derive(Clone)]
pub(crate) struct Bearer(MetadataValue<Ascii>);

impl Bearer {
    /// With this credential.
    pub(crate) fn of(credential: &str) -> Self {
        Self(format!("Bearer {credential}").parse().unwrap())
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// A channel that carries a key.
pub(crate) type Wire = InterceptedService<Channel, Bearer>;

/// The gRPC clients of one gate. Made anew after a restart.
#[derive(Clone)]
pub(crate) struct Admin(Wire);

impl Admin {
    /// With any credential.
    pub(crate) fn with(gate: &Gate, credential: &str) -> Self {
        let channel = Channel::from_shared(gate.grpc_url()).unwrap().connect_lazy();
        Self(InterceptedService::new(channel, Bearer::of(credential)))
    }

    /// What clients of further services are made of.
    pub(crate) fn wire(&self) -> Wire {
        self.0.clone()
    }

    pub(crate) fn servers(&self) -> ServerServiceClient<Wire> {
        ServerServiceClient::new(self.0.clone())
    }

    pub(crate) fn profiles(&self) -> ProfileServiceClient<Wire> {
        ProfileServiceClient::new(self.0.clone())
    }

    pub(crate) fn sessions(&self) -> SessionServiceClient<Wire> {
        SessionServiceClient::new(self.0.clone())
    }

    pub(crate) fn tools(&self) -> ToolServiceClient<Wire> {
        ToolServiceClient::new(self.0.clone())
    }

    pub(crate) fn call_service(&self) -> CallServiceClient<Wire> {
        CallServiceClient::new(self.0.clone())
    }

    pub(crate) fn audit(&self) -> AuditServiceClient<Wire> {
        AuditServiceClient::new(self.0.clone())
    }

    pub(crate) fn settings(&self) -> SettingsServiceClient<Wire> {
        SettingsServiceClient::new(self.0.clone())
    }

    pub(crate) fn keys(&self) -> ApiKeyServiceClient<Wire> {
        ApiKeyServiceClient::new(self.0.clone())
    }

    /// Registers a server.
    pub(crate) async fn server(&self, name: &str, url: &str, headers: &[(&str, &str)]) -> pb::Server {
        let headers: HashMap<_, _> = headers.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        let request = pb::CreateServerRequest { name: name.into(), url: url.into(), headers, ..Default::default() };
        self.servers().create_server(request).await.unwrap().into_inner().server.unwrap()
    }

    /// Lists a server's tools now.
    pub(crate) async fn refresh(&self, server: &str) -> pb::Server {
        let request = pb::RefreshServerRequest { server: server.into() };
        self.servers().refresh_server(request).await.unwrap().into_inner().server.unwrap()
    }

    /// Registers a server and waits until its tools are listed.
    pub(crate) async fn listed_server(&self, name: &str, url: &str, headers: &[(&str, &str)]) -> pb::Server {
        self.server(name, url, headers).await;
        self.healthy(name).await
    }

    /// Waits until the listing that registering a server began has ended well.
    pub(crate) async fn healthy(&self, name: &str) -> pb::Server {
        eventually("the server is listed", async || {
            let server = self.show(name).await;
            let state = server.status.as_ref().unwrap().state();
            assert!(state != pb::ServerState::Failing, "{:?}", server.status);
            (state == pb::ServerState::Healthy).then_some(server)
        })
        .await
    }

    /// A server as it is now.
    pub(crate) async fn show(&self, name: &str) -> pb::Server {
        let request = pb::GetServerRequest { server: name.into() };
        self.servers().get_server(request).await.unwrap().into_inner().server.unwrap()
    }

    /// Makes a profile of whole servers.
    pub(crate) async fn profile(&self, name: &str, servers: &[&str]) {
        let servers = servers.iter().map(|&server| pb::ProfileServer { server: server.into(), ..Default::default() });
        let request = pb::CreateProfileRequest { name: name.into(), servers: servers.collect(), ..Default::default() };
        self.profiles().create_profile(request).await.unwrap();
    }

    /// Makes a session of a profile: its id and token. It lists at once what was registered before.
    pub(crate) async fn session(&self, profile: &str, mode: pb::PermissionMode) -> (String, String) {
        let request =
            pb::CreateSessionRequest { profile: profile.into(), permission_mode: mode.into(), ..Default::default() };
        let created = self.sessions().create_session(request).await.unwrap().into_inner();
        let id = created.session.unwrap().id;
        // The edge may take up to a second to see a new list; this RPC makes it look.
        let request = pb::GetToolsVersionRequest { session: id.clone() };
        self.sessions().get_tools_version(request).await.unwrap();
        (id, created.token)
    }

    /// Changes settings; values are JSON.
    pub(crate) async fn set(&self, settings: &[(&str, Value)]) {
        let set = settings.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())).collect();
        let request = pb::UpdateSettingsRequest { set, ..Default::default() };
        self.settings().update_settings(request).await.unwrap();
    }

    /// Overrides whether a tool counts as read-only.
    pub(crate) async fn read_only(&self, server: &str, tool: &str, read_only: bool) {
        let set = Some(pb::ToolHints { read_only: Some(read_only), ..Default::default() });
        let request = pb::UpdateToolRequest { server: server.into(), tool: tool.into(), set, ..Default::default() };
        self.tools().update_tool(request).await.unwrap();
    }

    /// The audit, the newest first.
    pub(crate) async fn calls(&self, filter: pb::ListCallsRequest) -> Vec<pb::Call> {
        self.audit().list_calls(filter).await.unwrap().into_inner().calls
    }

    /// Waits until the newest call of a tool has ended, and gives it.
    pub(crate) async fn ended_call(&self, tool: &str) -> pb::Call {
        let filter = pb::ListCallsRequest { tool: tool.into(), page_size: 1, ..Default::default() };
        eventually("the call has ended in the audit", async || {
            let call = self.calls(filter.clone()).await.pop()?;
            (call.outcome() != pb::CallOutcome::Running).then_some(call)
        })
        .await
    }
}

impl Gate {
    /// The clients with the admin key of the data folder.
    pub(crate) fn admin(&self) -> Admin {
        Admin::with(self, &self.admin_key())
    }
}
