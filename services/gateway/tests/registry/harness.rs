//! A gateway for one test.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use gatehouse_gateway::{
    audit::writer::Writer,
    call::Calls,
    files::Files,
    grpc::routes,
    peers::Cards,
    registry::State,
    snapshot::Snapshot,
    store::Pool,
    upstream::{Upstream, Upstreams, processes::Processes, refresh::Refresher},
};
use gatehouse_outbound::{ClientConfig, Guard, HttpClient};
use gatehouse_platform::{
    auth::{Caller, Scope},
    grpc::peer,
};
use gatehouse_proto::gateway::v1::{
    self, api_key_service_client::ApiKeyServiceClient, audit_service_client::AuditServiceClient,
    call_service_client::CallServiceClient, file_service_client::FileServiceClient,
    profile_service_client::ProfileServiceClient, server_service_client::ServerServiceClient,
    session_service_client::SessionServiceClient, settings_service_client::SettingsServiceClient,
    tool_service_client::ToolServiceClient,
};
use gatehouse_store::Keyring;
use gatehouse_testkit::Database;
use gatehouse_types::{ApiKeyId, Clock, ReplicaId};
use gatehouse_workspace::Workspaces;
use time::OffsetDateTime;
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{
    Code, Request, Status,
    service::{Interceptor, InterceptorLayer, interceptor::InterceptedService},
    transport::{Channel, Server, server::TcpIncoming},
};
use tonic_types::StatusExt as _;

use crate::store::closed_pool;

const ROLE: &str = "x-test-role";
pub(crate) const MCP_URL: &str = "http://127.0.0.1:7300/mcp";

/// Who calls.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    Nobody,
    Sessions,
    Admin,
    Service,
}

impl Role {
    const fn word(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Sessions => "sessions",
            Self::Admin => "admin",
            Self::Service => "service",
        }
    }
}

impl Interceptor for Role {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert(ROLE, self.word().parse().unwrap());
        Ok(request)
    }
}

/// Stands for the real authentication, which has tests of its own.
#[expect(clippy::unnecessary_wraps, reason = "the shape of an interceptor")]
fn authenticate(mut request: Request<()>) -> Result<Request<()>, Status> {
    let role = request.metadata().get(ROLE).and_then(|role| role.to_str().ok()).unwrap_or_default().to_owned();
    let key = |scope| Caller::ApiKey { id: ApiKeyId::new(), name: format!("key-{role}"), scope };
    let caller = match role.as_str() {
        "sessions" => key(Scope::Sessions),
        "admin" => key(Scope::Admin),
        "service" => Caller::Service,
        _ => return Ok(request),
    };
    request.extensions_mut().insert(caller);
    Ok(request)
}

/// A clock that moves by a millisecond with each look, so that no two things are made at once.
#[derive(Debug)]
struct Ticking(Mutex<OffsetDateTime>);

impl Clock for Ticking {
    fn now(&self) -> OffsetDateTime {
        let mut now = self.0.lock().unwrap();
        *now += Duration::from_millis(1);
        *now
    }
}

pub(crate) type As = InterceptedService<Channel, Role>;

/// A gateway of its own.
pub(crate) struct Gateway {
    serving: JoinHandle<()>,
    folder: PathBuf,
    pub(crate) channel: Channel,
    pub(crate) state: Arc<State>,
    // Dropped last: whatever is connected is gone by then.
    _database: Database,
}

impl Gateway {
    /// One that lists no tools by itself, so that a test sees only what it does.
    pub(crate) async fn start() -> Self {
        let database = Database::new().await;
        // Listing begins with a claim in the database; without one nothing is asked and nothing is stored.
        let closed = closed_pool(&database).await;
        Self::with(database, closed).await
    }

    /// One that lists the tools of servers as in service.
    pub(crate) async fn listing() -> Self {
        let database = Database::new().await;
        let pool = database.pool();
        Self::with(database, pool).await
    }

    async fn with(database: Database, listing: Pool) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("workspaces-{}", ApiKeyId::new()));
        fs::create_dir_all(&folder).unwrap();
        let started = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(Ticking(Mutex::new(started)));
        let keyring = Arc::new(Keyring::parse(&Keyring::generate().unwrap()).unwrap());
        let workspaces = Workspaces::folder(folder.clone());
        let files = Arc::new(Files::new(database.pool(), Arc::clone(&clock), Some(workspaces)));
        let upstream = upstream(database.pool(), listing, &keyring, &clock, &files).await;
        let state =
            Arc::new(State { pool: database.pool(), clock, keyring, files, mcp_url: MCP_URL.to_owned(), upstream });
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = incoming.local_addr().unwrap();
        let server = Server::builder().layer(InterceptorLayer::new(authenticate)).add_routes(routes(&state));
        let serving = tokio::spawn(async move { server.serve_with_incoming(incoming).await.unwrap() });
        let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
        Self { serving, folder, channel, state, _database: database }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn servers(&self) -> ServerServiceClient<As> {
        ServerServiceClient::with_interceptor(self.channel.clone(), Role::Admin)
    }

    pub(crate) fn tools(&self) -> ToolServiceClient<As> {
        ToolServiceClient::with_interceptor(self.channel.clone(), Role::Admin)
    }

    pub(crate) fn profiles(&self) -> ProfileServiceClient<As> {
        ProfileServiceClient::with_interceptor(self.channel.clone(), Role::Admin)
    }

    pub(crate) fn settings(&self) -> SettingsServiceClient<As> {
        SettingsServiceClient::with_interceptor(self.channel.clone(), Role::Admin)
    }

    pub(crate) fn keys(&self) -> ApiKeyServiceClient<As> {
        ApiKeyServiceClient::with_interceptor(self.channel.clone(), Role::Admin)
    }

    pub(crate) fn sessions(&self) -> SessionServiceClient<As> {
        SessionServiceClient::with_interceptor(self.channel.clone(), Role::Sessions)
    }

    pub(crate) fn calls(&self) -> CallServiceClient<As> {
        CallServiceClient::with_interceptor(self.channel.clone(), Role::Sessions)
    }

    pub(crate) fn files(&self) -> FileServiceClient<As> {
        FileServiceClient::with_interceptor(self.channel.clone(), Role::Sessions)
    }

    pub(crate) fn audit(&self) -> AuditServiceClient<As> {
        AuditServiceClient::with_interceptor(self.channel.clone(), Role::Sessions)
    }

    /// Registers a server with nothing special.
    pub(crate) async fn server(&self, name: &str) -> v1::Server {
        let request = v1::CreateServerRequest { name: name.to_owned(), url: url(name), ..Default::default() };
        self.servers().create_server(request).await.unwrap().into_inner().server.unwrap()
    }

    /// Makes a profile with these servers and all of their tools.
    pub(crate) async fn profile(&self, name: &str, servers: &[&str]) -> v1::Profile {
        let servers = servers.iter().map(|server| member(server)).collect();
        let request = v1::CreateProfileRequest { name: name.to_owned(), servers, ..Default::default() };
        self.profiles().create_profile(request).await.unwrap().into_inner().profile.unwrap()
    }

    /// Makes a session with this profile.
    pub(crate) async fn session(&self, profile: &str) -> v1::CreateSessionResponse {
        let request = v1::CreateSessionRequest { profile: profile.to_owned(), ..Default::default() };
        self.sessions().create_session(request).await.unwrap().into_inner()
    }
}

/// The side that speaks MCP; `listing` is where it stores tools. Servers may be at loopback addresses.
async fn upstream(
    pool: Pool,
    listing: Pool,
    keyring: &Arc<Keyring>,
    clock: &Arc<dyn Clock>,
    files: &Arc<Files>,
) -> Upstream {
    let snapshot = Snapshot::load(pool.clone(), Arc::clone(keyring), Arc::clone(clock)).await.unwrap();
    let snapshot = Arc::new(snapshot);
    let guard = Guard::new(["127.0.0.0/8"]).unwrap();
    let http = HttpClient::new(ClientConfig { guard, ..ClientConfig::default() }).unwrap();
    let shutdown = CancellationToken::new();
    // No homes: programs are registered and not run.
    let processes = Arc::new(Processes::new(None, gatehouse_stdio::Allowed::Strong, Arc::clone(clock)));
    let refresher =
        Arc::new(Refresher::new(Arc::clone(&snapshot), http, listing, Arc::clone(clock), processes, shutdown));
    let upstreams = Arc::new(Upstreams::new(
        Arc::clone(&snapshot),
        Arc::clone(&refresher),
        pool.clone(),
        Arc::clone(keyring),
        Arc::clone(clock),
    ));
    let (audit, _) = Writer::start(pool.clone());
    // Nobody listens there: what needs a person is refused.
    let nobody = peer::Config { url: "http://127.0.0.1:9".parse().unwrap(), tls: None, service_token: None };
    let cards = Cards::new(peer::channel(&nobody).unwrap(), TaskTracker::new());
    let calls = Calls {
        snapshot,
        upstreams,
        cards,
        files: Arc::clone(files),
        audit,
        pool,
        clock: Arc::clone(clock),
        replica: ReplicaId::new(),
        draining: CancellationToken::new(),
    };
    Upstream::new(Arc::new(calls), refresher, TaskTracker::new())
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.serving.abort();
        let removed = fs::remove_dir_all(&self.folder);
        if !std::thread::panicking() {
            removed.unwrap();
        }
    }
}

pub(crate) fn url(name: &str) -> String {
    format!("https://{name}.example.com/mcp")
}

pub(crate) fn member(server: &str) -> v1::ProfileServer {
    v1::ProfileServer { server: server.to_owned(), ..Default::default() }
}

/// The fields that a refusal names, in order. Fails when it is not `INVALID_ARGUMENT`.
pub(crate) fn wrong_fields<T: std::fmt::Debug>(answer: Result<tonic::Response<T>, Status>) -> Vec<String> {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let details = status.get_error_details();
    let violations = details.bad_request().unwrap().field_violations.clone();
    for violation in &violations {
        assert!(status.message().contains(&violation.field), "{status:?}");
        assert!(!violation.description.is_empty());
    }
    violations.into_iter().map(|violation| violation.field).collect()
}

/// The code of a refusal, which must say something and carry its reason.
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<tonic::Response<T>, Status>) -> Code {
    let status = answer.unwrap_err();
    assert!(!status.message().is_empty());
    assert_eq!(status.get_error_details().error_info().unwrap().domain, "gatehouse");
    status.code()
}
