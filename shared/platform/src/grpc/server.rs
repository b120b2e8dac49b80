//! A gRPC server with everything that each of ours has.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use http::{Request, Response};
use tokio::net::TcpListener;
use tonic::{body::Body, server::NamedService, service::Routes, transport::server::TcpIncoming};
use tonic_health::{ServingStatus, pb::FILE_DESCRIPTOR_SET as HEALTH};
use tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET as REFLECTION;

use super::{
    guard::{self, Guard},
    methods,
    observe::{ObserveLayer, Shared},
    tls::ServerTls,
};
use crate::{Context, RunningServer, config::Source};

pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most requests at once on one connection. A gateway has one, and each of its calls that wait for a person is a stream on it:
/// what waits must not keep others out, so the guard's bounds are the ones that count.
const MAX_STREAMS_PER_CONNECTION: u32 = 2_560;
const _: () = assert!(MAX_STREAMS_PER_CONNECTION as usize >= guard::MOST_UNARY + guard::MOST_STREAMS);
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// Names of the services that every server has.
const BUILT_IN: [&str; 2] = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"];

/// Where a server listens.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address and port; port 0 takes any.
    pub listen: SocketAddr,
    /// TLS; needed beyond loopback.
    pub tls: Option<ServerTls>,
}

/// A server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It would send secrets in the clear.
    #[error(
        "{0} is reachable from other machines, and gRPC there needs TLS: set GATEHOUSE_GRPC_TLS_CERT and \
         GATEHOUSE_GRPC_TLS_KEY, or listen on 127.0.0.1"
    )]
    PlainBeyondLoopback(SocketAddr),
    /// The address is taken, or not ours.
    #[error("{address} cannot be listened on")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        why: io::Error,
    },
    /// Certificate, key or authority are not what they should be.
    #[error("the TLS files of the gRPC server cannot be used")]
    Tls(#[source] tonic::transport::Error),
    /// The descriptors that are built in are broken.
    #[error("the built-in descriptors cannot be read")]
    Descriptors(#[from] prost::DecodeError),
    /// Reflection cannot be built from the descriptors.
    #[error("reflection cannot be built")]
    Reflection(#[from] tonic_reflection::server::Error),
}

impl Config {
    /// From the variable of the address, and `GATEHOUSE_GRPC_TLS_{CERT,KEY,CLIENT_CA}`. Notes an address beyond
    /// loopback without TLS.
    pub fn load(source: &Source, variable: &str, default: SocketAddr) -> Self {
        let config = Self { listen: source.value(variable, default), tls: ServerTls::load(source) };
        if let Err(error) = config.check() {
            source.note(variable, error.to_string());
        }
        config
    }

    fn check(&self) -> Result<(), Error> {
        let plain = self.tls.is_none() && !self.listen.ip().to_canonical().is_loopback();
        if plain { Err(Error::PlainBeyondLoopback(self.listen)) } else { Ok(()) }
    }
}

/// A server that is being put together. Every server has health (open) and reflection (any credential).
#[derive(Debug)]
pub struct Server {
    name: &'static str,
    config: Config,
    routes: Routes,
    services: Vec<&'static str>,
}

impl Server {
    /// The gRPC server of service `name`.
    pub fn new(name: &'static str, config: Config) -> Self {
        Self { name, config, routes: Routes::default(), services: Vec::new() }
    }

    /// Adds a service.
    #[must_use]
    pub fn add_service<S>(mut self, service: S) -> Self
    where
        S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.routes = self.routes.add_service(service);
        self.services.push(S::NAME);
        self
    }

    /// Takes services that were put together before; `names` are theirs. Comes before [`Server::add_service`].
    #[must_use]
    pub fn with_routes(mut self, routes: Routes, names: &[&'static str]) -> Self {
        self.routes = routes;
        self.services.extend(names);
        self
    }

    /// Binds and serves until the context's shutdown has drained. Announces its address as `<name>.grpc`.
    pub async fn start(mut self, context: &Context) -> Result<RunningServer, Error> {
        self.config.check()?;
        let listen = self.config.listen;
        let listener = TcpListener::bind(listen).await.map_err(|why| Error::Listen { address: listen, why })?;
        let address = listener.local_addr().map_err(|why| Error::Listen { address: listen, why })?;
        let (health, health_service) = tonic_health::server::health_reporter();
        for service in &self.services {
            health.set_service_status(service, ServingStatus::Serving).await;
        }
        self.routes = self.routes.add_service(health_service);
        self.add_reflection()?;

        let shared = Arc::new(Shared {
            methods: methods::all(&[gatehouse_proto::DESCRIPTORS, HEALTH, REFLECTION])?,
            guard: Guard::new(context.authenticator.clone()),
            shutdown: context.shutdown.clone(),
        });
        let mut server = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
            .max_concurrent_streams(MAX_STREAMS_PER_CONNECTION)
            .http2_max_header_list_size(MAX_HEADER_BYTES);
        if let Some(tls) = &self.config.tls {
            server = server.tls_config(tls.config()).map_err(Error::Tls)?;
        }
        let router = server.layer(ObserveLayer(shared)).add_routes(self.routes);
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).with_keepalive(Some(KEEPALIVE));
        let (services, shutdown) = (self.services, context.shutdown.clone());
        let drained = async move {
            shutdown.cancelled().await;
            for service in services.into_iter().chain([""]) {
                health.set_service_status(service, ServingStatus::NotServing).await;
            }
        };
        let serve = router.serve_with_incoming_shutdown(incoming, drained);
        let running = RunningServer::spawn(self.name, address, context.shutdown.clone(), serve);
        context.endpoints.announce(format!("{}.grpc", self.name), address);
        Ok(running)
    }

    fn add_reflection(&mut self) -> Result<(), Error> {
        let mut reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(gatehouse_proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(HEALTH);
        for service in self.services.iter().copied().chain(BUILT_IN) {
            reflection = reflection.with_service_name(service);
        }
        self.routes = std::mem::take(&mut self.routes).add_service(reflection.build_v1()?);
        Ok(())
    }
}
