//! A server with a handler that does what the test asks for.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gatehouse_platform::{
    Context, RunningServer,
    auth::{Scope, require},
    grpc::{self, Server, tls},
};
use gatehouse_proto::gateway::v1::{
    ListSettingsRequest, ListSettingsResponse, Setting, UpdateSettingsRequest, UpdateSettingsResponse,
    settings_service_server::{SettingsService, SettingsServiceServer},
};
use gatehouse_store::{Keyring, api_keys};
use gatehouse_testkit::Database;
use gatehouse_types::{ApiKeyId, SystemClock};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use secrecy::SecretString;
use tokio::sync::Semaphore;
use tonic::{
    Request, Response, Status,
    transport::{Channel, Endpoint},
};

/// The token that the services of a test share.
pub(crate) const SERVICE_TOKEN: &str = "a-service-token-of-more-than-32-characters";

/// A handler that answers with its caller, or hangs, or panics, as the request's `probe` says.
#[derive(Clone)]
pub(crate) struct Probe {
    hanging: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Probe {
    /// How many requests hang now.
    pub(crate) fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }

    /// Lets those that hang go on.
    pub(crate) fn release(&self) {
        self.gate.close();
    }
}

struct Hanging(Arc<AtomicUsize>);

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[expect(clippy::panic, reason = "that handlers may panic is what is tested")]
#[tonic::async_trait]
impl SettingsService for Probe {
    async fn list_settings(
        &self,
        request: Request<ListSettingsRequest>,
    ) -> Result<Response<ListSettingsResponse>, Status> {
        let caller = require(request.extensions(), Scope::Sessions)?;
        let text = |name: &str| request.metadata().get(name).map(|value| value.to_str().unwrap()).unwrap_or_default();
        match text("probe") {
            "panic" => panic!("inner words"),
            "hang" => {
                self.hanging.fetch_add(1, Ordering::SeqCst);
                let _hanging = Hanging(self.hanging.clone());
                // The gate has no permits; it opens by being closed.
                let _closed = self.gate.acquire().await;
            }
            _ => {}
        }
        let setting = Setting {
            key: caller.name().to_owned(),
            value_json: text("grpc-timeout").to_owned(),
            ..Default::default()
        };
        Ok(Response::new(ListSettingsResponse { settings: vec![setting] }))
    }

    async fn update_settings(
        &self,
        request: Request<UpdateSettingsRequest>,
    ) -> Result<Response<UpdateSettingsResponse>, Status> {
        require(request.extensions(), Scope::Admin)?;
        Ok(Response::new(UpdateSettingsResponse::default()))
    }
}

/// A running server and a plain channel to it.
pub(crate) struct Served {
    pub(crate) running: RunningServer,
    pub(crate) channel: Channel,
    pub(crate) probe: Probe,
}

pub(crate) fn context(database: &Database) -> Context {
    let keyring = Keyring::parse(&Keyring::generate().unwrap()).unwrap();
    Context::new(database.pool(), Arc::new(SystemClock), Arc::new(keyring), Some(SecretString::from(SERVICE_TOKEN)))
}

pub(crate) fn config(tls: Option<tls::ServerTls>) -> grpc::Config {
    grpc::Config { listen: "127.0.0.1:0".parse().unwrap(), tls }
}

pub(crate) async fn start(context: &Context) -> Served {
    start_with(context, config(None)).await
}

pub(crate) async fn start_with(context: &Context, config: grpc::Config) -> Served {
    let probe = Probe { hanging: Arc::default(), gate: Arc::new(Semaphore::new(0)) };
    let service = SettingsServiceServer::new(probe.clone())
        .max_decoding_message_size(grpc::MAX_DECODING_BYTES)
        .max_encoding_message_size(grpc::MAX_ENCODING_BYTES);
    let running = Server::new("test", config).add_service(service).start(context).await.unwrap();
    assert_eq!(context.endpoints.get("test.grpc").await, running.address());
    let channel = Endpoint::from_shared(format!("http://{}", running.address())).unwrap().connect_lazy();
    Served { running, channel, probe }
}

/// A request that shows a token.
pub(crate) fn asking<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

/// Stores an API key that is called like its secret.
pub(crate) async fn add_key(database: &Database, secret: &str, scope: Scope) {
    let scope = if scope == Scope::Admin { "admin" } else { "sessions" };
    sqlx::query("INSERT INTO api_keys (id, name, scope, hash, prefix, created_at) VALUES ($1, $2, $3, $4, '', now())")
        .bind(ApiKeyId::new().uuid())
        .bind(secret)
        .bind(scope)
        .bind(api_keys::hash(secret).as_slice())
        .execute(&database.pool())
        .await
        .unwrap();
}

/// A certificate authority of its own.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for `name`, signed by this authority.
    pub(crate) fn key_pair(&self, name: &str) -> tls::KeyPair {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        tls::KeyPair::new(certificate.pem(), SecretString::from(key.serialize_pem()))
    }

    pub(crate) fn server_tls(&self) -> tls::ServerTls {
        tls::ServerTls { own: self.key_pair("localhost"), client_ca: Some(self.pem()) }
    }
}
