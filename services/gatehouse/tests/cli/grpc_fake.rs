//! A gateway with canned answers. It remembers what it was asked, and whether a call was cancelled.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use gatehouse_platform::error::{Failure, FieldViolation, Reason, to_status};
use gatehouse_proto::{
    gateway::v1::{self as pb, server::Transport},
    interaction::v1::interaction_service_server::InteractionServiceServer,
};
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
            .add_service(pb::api_key_service_server::ApiKeyServiceServer::from_arc(self.clone()).guarded())
            .add_service(InteractionServiceServer::from_arc(self.clone()).guarded());
        tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
        address
    }

    /// The requests so far that are of this type: their debug text, which hides secrets, and their JSON, which has them.
    pub(crate) fn seen(&self, kind: &str) -> Vec<String> {
        self.seen.lock().unwrap().iter().filter(|text| text.starts_with(kind)).cloned().collect()
    }

    pub(crate) fn note<T: std::fmt::Debug + Message>(&self, request: Request<T>) -> T {
        let message = request.into_inner();
        let mut path = std::any::type_name::<T>().split("::");
        let (service, name) = (path.nth(1).unwrap(), path.last().unwrap());
        let pool = DescriptorPool::decode(gatehouse_proto::DESCRIPTORS).unwrap();
        let descriptor = pool.get_message_by_name(&format!("gatehouse.{service}.v1.{name}")).unwrap();
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
