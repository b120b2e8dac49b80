//! A gateway with canned answers. It remembers what it was asked, and whether a call was cancelled.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use gatehouse_platform::error::{Failure, FieldViolation, Reason, to_status};
use gatehouse_proto::gateway::v1::{self as pb, server::Transport};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use tokio::sync::Notify;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status,
    service::interceptor::InterceptedService,
    transport::{Identity, Server, ServerTlsConfig},
};

/// The key that may do everything.
pub(crate) const KEY: &str = "ghk_test";
/// A key of scope `sessions`.
pub(crate) const SMALL_KEY: &str = "ghk_small";
/// What a hostile server puts into its texts.
pub(crate) const HOSTILE: &str = "\u{1b}[2J\u{9b}31m\u{202e}gone";
/// The token of every session that is made.
pub(crate) const TOKEN: &str = "ghs_token";

pub(crate) type Answer<T> = Result<Response<T>, Status>;

/// The fake.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    seen: Mutex<Vec<String>>,
    /// Told when the stream of the tool `slow` was dropped.
    pub(crate) cancelled: Arc<Notify>,
}

#[derive(Debug, thiserror::Error)]
#[error("refused")]
struct Refused(Reason, String, Vec<FieldViolation>);

impl Failure for Refused {
    fn reason(&self) -> Reason {
        self.0
    }
    fn external(&self) -> String {
        self.1.clone()
    }
    fn fields(&self) -> Vec<FieldViolation> {
        self.2.clone()
    }
}

pub(crate) fn refuse<T>(reason: Reason, message: &str) -> Result<T, Status> {
    Err(to_status(Refused(reason, message.to_owned(), Vec::new())))
}

pub(crate) fn reply<T>(value: T) -> Answer<T> {
    Ok(Response::new(value))
}

fn check(request: Request<()>) -> Result<Request<()>, Status> {
    match request.metadata().get("authorization").and_then(|value| value.to_str().ok()) {
        Some("Bearer ghk_test") => Ok(request),
        Some("Bearer ghk_small") => refuse(Reason::PermissionDenied, "this needs a key of scope `admin`"),
        _ => refuse(Reason::Unauthenticated, "send an API key"),
    }
}

pub(crate) fn at(seconds: i64) -> Option<prost_types::Timestamp> {
    Some(prost_types::Timestamp { seconds: 1_796_000_000 + seconds, nanos: 0 })
}

impl Fake {
    /// Serves on a port of its own, until the test's runtime ends. Returns the endpoint.
    pub(crate) async fn serve(self: &Arc<Self>) -> String {
        format!("http://{}", self.serve_on(Server::builder()).await)
    }

    /// The same with TLS, for `localhost`. Returns the endpoint.
    pub(crate) async fn serve_tls(self: &Arc<Self>, certificate: &str, key: &str) -> String {
        let tls = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
        let address = self.serve_on(Server::builder().tls_config(tls).unwrap()).await;
        format!("https://localhost:{}", address.port())
    }

    async fn serve_on(self: &Arc<Self>, mut builder: Server) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = builder
            .add_service(pb::server_service_server::ServerServiceServer::from_arc(self.clone()).guarded())
            .add_service(pb::tool_service_server::ToolServiceServer::from_arc(self.clone()).guarded())
            .add_service(pb::profile_service_server::ProfileServiceServer::from_arc(self.clone()).guarded())
            .add_service(pb::session_service_server::SessionServiceServer::from_arc(self.clone()).guarded())
            .add_service(pb::call_service_server::CallServiceServer::from_arc(self.clone()).guarded())
            .add_service(pb::audit_service_server::AuditServiceServer::from_arc(self.clone()).guarded())
            .add_service(pb::file_service_server::FileServiceServer::from_arc(self.clone()).guarded())
            .add_service(pb::settings_service_server::SettingsServiceServer::from_arc(self.clone()).guarded())
            .add_service(pb::api_key_service_server::ApiKeyServiceServer::from_arc(self.clone()).guarded());
        tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
        address
    }

    /// The requests so far that are of this type: their debug text, which hides secrets, and their JSON, which has them.
    pub(crate) fn seen(&self, kind: &str) -> Vec<String> {
        self.seen.lock().unwrap().iter().filter(|text| text.starts_with(kind)).cloned().collect()
    }

    pub(crate) fn note<T: std::fmt::Debug + Message>(&self, request: Request<T>) -> T {
        let message = request.into_inner();
        let name = std::any::type_name::<T>().rsplit("::").next().unwrap();
        let pool = DescriptorPool::decode(gatehouse_proto::DESCRIPTORS).unwrap();
        let descriptor = pool.get_message_by_name(&format!("gatehouse.gateway.v1.{name}")).unwrap();
        let whole = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).unwrap();
        let json = serde_json::to_string(&whole).unwrap();
        self.seen.lock().unwrap().push(format!("{message:?} {json}"));
        message
    }
}

type Check = fn(Request<()>) -> Result<Request<()>, Status>;

/// Puts the check of keys in front of a service.
trait Guarded: Sized {
    fn guarded(self) -> InterceptedService<Self, Check> {
        InterceptedService::new(self, check)
    }
}

impl<T: tonic::server::NamedService> Guarded for T {}

fn server(name: &str, state: pb::ServerState) -> pb::Server {
    let url = format!("https://{name}.example/mcp");
    pb::Server {
        id: format!("id-{name}"),
        name: name.to_owned(),
        description: HOSTILE.to_owned(),
        enabled: true,
        transport: Some(Transport::StreamableHttp(pb::StreamableHttp {
            url,
            header_names: vec!["Authorization".into()],
        })),
        connect_timeout: Some(prost_types::Duration { seconds: 20, nanos: 0 }),
        request_timeout: Some(prost_types::Duration { seconds: 600, nanos: 0 }),
        max_concurrency: 256,
        status: Some(pb::ServerStatus {
            state: state.into(),
            message: if state == pb::ServerState::Failing { format!("refused {HOSTILE}") } else { String::new() },
            server_name: HOSTILE.to_owned(),
            ..pb::ServerStatus::default()
        }),
        tool_count: 4,
        created_at: at(0),
        ..pb::Server::default()
    }
}

fn report(ok: bool) -> pb::TestServerResponse {
    let took = Some(prost_types::Duration { seconds: 0, nanos: 1_500_000 });
    let step = |name: &str, ok: bool, message: &str| pb::TestStep {
        name: name.to_owned(),
        ok,
        took,
        message: message.to_owned(),
        reason: if ok { String::new() } else { "CONNECTION_REFUSED".to_owned() },
    };
    let mut report = pb::TestServerResponse { ok, ..pb::TestServerResponse::default() };
    report.steps.push(step("address", true, "127.0.0.1"));
    if ok {
        report.tools = Some(4);
        report.server_name = format!("orders {HOSTILE}");
    } else {
        report.steps.push(step("connect", false, &format!("nothing listens there {HOSTILE}")));
    }
    report
}

#[tonic::async_trait]
impl pb::server_service_server::ServerService for Fake {
    async fn create_server(&self, request: Request<pb::CreateServerRequest>) -> Answer<pb::CreateServerResponse> {
        let request = self.note(request);
        if request.url.starts_with("ftp:") {
            let field = FieldViolation::new("url", format!("takes http or https {HOSTILE}"));
            let other = FieldViolation::new("name", "takes a to z");
            return Err(to_status(Refused(Reason::InvalidArgument, "two fields are wrong".into(), vec![field, other])));
        }
        reply(pb::CreateServerResponse { server: Some(server(&request.name, pb::ServerState::Unknown)) })
    }

    async fn get_server(&self, request: Request<pb::GetServerRequest>) -> Answer<pb::GetServerResponse> {
        match self.note(request).server.as_str() {
            "orders" => reply(pb::GetServerResponse { server: Some(server("orders", pb::ServerState::Healthy)) }),
            _ => refuse(Reason::NotFound, "there is no such server"),
        }
    }

    async fn list_servers(&self, request: Request<pb::ListServersRequest>) -> Answer<pb::ListServersResponse> {
        // Two pages, so that paging is walked.
        match self.note(request).page_token.as_str() {
            "" => reply(pb::ListServersResponse {
                servers: vec![server("crm", pb::ServerState::Failing)],
                next_page_token: "2".to_owned(),
            }),
            _ => reply(pb::ListServersResponse {
                servers: vec![server("orders", pb::ServerState::Healthy)],
                next_page_token: String::new(),
            }),
        }
    }

    async fn update_server(&self, request: Request<pb::UpdateServerRequest>) -> Answer<pb::UpdateServerResponse> {
        let name = self.note(request).server;
        reply(pb::UpdateServerResponse { server: Some(server(&name, pb::ServerState::Healthy)) })
    }

    async fn delete_server(&self, request: Request<pb::DeleteServerRequest>) -> Answer<pb::DeleteServerResponse> {
        self.note(request);
        reply(pb::DeleteServerResponse {})
    }

    async fn test_server(&self, request: Request<pb::TestServerRequest>) -> Answer<pb::TestServerResponse> {
        reply(report(self.note(request).server != "broken"))
    }

    async fn refresh_server(&self, request: Request<pb::RefreshServerRequest>) -> Answer<pb::RefreshServerResponse> {
        let name = self.note(request).server;
        reply(pb::RefreshServerResponse { server: Some(server(&name, pb::ServerState::Healthy)), changed: true })
    }
}

fn tool() -> pb::Tool {
    pb::Tool {
        server: "orders".to_owned(),
        name: "get_order".to_owned(),
        exposed_name: "orders__get_order".to_owned(),
        description: format!("Reads an order {HOSTILE}"),
        effective: Some(pb::ToolHints { read_only: Some(true), open_world: Some(true), ..pb::ToolHints::default() }),
        overrides: Some(pb::ToolHints { read_only: Some(true), ..pb::ToolHints::default() }),
        input_schema_json: "{\"type\":\"object\"}".to_owned(),
        policy: pb::Policy::Confirm.into(),
        default_policy: pb::Policy::Allow.into(),
        effective_policy: pb::Policy::Confirm.into(),
        sources: Some(pb::HintSources {
            read_only: pb::HintSource::Admin.into(),
            destructive: pb::HintSource::Default.into(),
            idempotent: pb::HintSource::Server.into(),
            open_world: pb::HintSource::Default.into(),
        }),
        ..pb::Tool::default()
    }
}

#[tonic::async_trait]
impl pb::tool_service_server::ToolService for Fake {
    async fn list_tools(&self, request: Request<pb::ListToolsRequest>) -> Answer<pb::ListToolsResponse> {
        self.note(request);
        reply(pb::ListToolsResponse { tools: vec![tool()], next_page_token: String::new() })
    }

    async fn update_tool(&self, request: Request<pb::UpdateToolRequest>) -> Answer<pb::UpdateToolResponse> {
        self.note(request);
        reply(pb::UpdateToolResponse { tool: Some(tool()) })
    }
}

fn session() -> Option<pb::Session> {
    Some(pb::Session {
        id: "s-1".to_owned(),
        external_id: HOSTILE.to_owned(),
        profile: "shop".to_owned(),
        engine: pb::EngineKind::Codex.into(),
        created_at: at(0),
        ..pb::Session::default()
    })
}

fn token() -> Option<pb::SessionToken> {
    Some(pb::SessionToken { id: "t-1".to_owned(), prefix: "ghs_t".to_owned(), created_at: at(0), ..Default::default() })
}

fn run() -> Option<pb::Run> {
    Some(pb::Run { id: "r-1".to_owned(), began_at: at(0), ..pb::Run::default() })
}

const MCP_URL: &str = "http://127.0.0.1:7300/mcp";

#[tonic::async_trait]
impl pb::session_service_server::SessionService for Fake {
    async fn create_session(&self, request: Request<pb::CreateSessionRequest>) -> Answer<pb::CreateSessionResponse> {
        if self.note(request).profile != "shop" {
            return refuse(Reason::NotFound, "there is no such profile");
        }
        reply(pb::CreateSessionResponse { session: session(), token: TOKEN.to_owned(), mcp_url: MCP_URL.to_owned() })
    }

    async fn get_session(&self, request: Request<pb::GetSessionRequest>) -> Answer<pb::GetSessionResponse> {
        self.note(request);
        let open_runs = run().into_iter().collect();
        reply(pb::GetSessionResponse { session: session(), mcp_url: MCP_URL.to_owned(), open_runs })
    }

    async fn list_sessions(&self, request: Request<pb::ListSessionsRequest>) -> Answer<pb::ListSessionsResponse> {
        self.note(request);
        reply(pb::ListSessionsResponse { sessions: session().into_iter().collect(), ..Default::default() })
    }

    async fn update_session(&self, request: Request<pb::UpdateSessionRequest>) -> Answer<pb::UpdateSessionResponse> {
        self.note(request);
        reply(pb::UpdateSessionResponse { session: session() })
    }

    async fn delete_session(&self, request: Request<pb::DeleteSessionRequest>) -> Answer<pb::DeleteSessionResponse> {
        self.note(request);
        reply(pb::DeleteSessionResponse {})
    }

    async fn issue_token(&self, request: Request<pb::IssueTokenRequest>) -> Answer<pb::IssueTokenResponse> {
        self.note(request);
        reply(pb::IssueTokenResponse { session_token: token(), token: TOKEN.to_owned() })
    }

    async fn rotate_token(&self, request: Request<pb::RotateTokenRequest>) -> Answer<pb::RotateTokenResponse> {
        self.note(request);
        reply(pb::RotateTokenResponse { session_token: token(), token: TOKEN.to_owned() })
    }

    async fn revoke_token(&self, request: Request<pb::RevokeTokenRequest>) -> Answer<pb::RevokeTokenResponse> {
        self.note(request);
        reply(pb::RevokeTokenResponse { revoked: 1 })
    }

    async fn list_tokens(&self, request: Request<pb::ListTokensRequest>) -> Answer<pb::ListTokensResponse> {
        self.note(request);
        reply(pb::ListTokensResponse { session_tokens: token().into_iter().collect() })
    }

    async fn begin_run(&self, request: Request<pb::BeginRunRequest>) -> Answer<pb::BeginRunResponse> {
        self.note(request);
        reply(pb::BeginRunResponse { run: run() })
    }

    async fn end_run(&self, request: Request<pb::EndRunRequest>) -> Answer<pb::EndRunResponse> {
        self.note(request);
        reply(pb::EndRunResponse { run: run() })
    }

    async fn list_grants(&self, request: Request<pb::ListGrantsRequest>) -> Answer<pb::ListGrantsResponse> {
        self.note(request);
        let grant = pb::Grant {
            id: "0190".to_owned(),
            server: "orders".to_owned(),
            tool: "add_note".to_owned(),
            granted_by: "ann\u{1b}[31m".to_owned(),
            ..pb::Grant::default()
        };
        reply(pb::ListGrantsResponse { grants: vec![grant] })
    }

    async fn revoke_grants(&self, request: Request<pb::RevokeGrantsRequest>) -> Answer<pb::RevokeGrantsResponse> {
        self.note(request);
        reply(pb::RevokeGrantsResponse { revoked: 1 })
    }

    async fn get_tools_version(
        &self,
        request: Request<pb::GetToolsVersionRequest>,
    ) -> Answer<pb::GetToolsVersionResponse> {
        self.note(request);
        reply(pb::GetToolsVersionResponse { version: "abc".to_owned(), tool_count: 1 })
    }
}
