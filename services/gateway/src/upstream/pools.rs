//! One HTTP client and one set of permits for each server.
//!
//! Servers never share TCP connections: what one principal has authenticated is never used for another.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gatehouse_mcp::client::{Endpoint, OpenError, Options, RequestError};
use gatehouse_outbound::{HttpClient, Target};
use gatehouse_types::{ServerId, Settings};
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::catalog::{Catalog, Server};

/// How long a call waits for a permit of its server.
const WAIT_FOR_PERMIT: Duration = Duration::from_secs(30);
/// Most calls that wait for a permit of one server.
const MOST_WAITING: usize = 10_000;

/// Clients and permits by server.
#[derive(Clone)]
pub(crate) struct Pools {
    http: HttpClient,
    servers: Arc<Mutex<HashMap<ServerId, Pool>>>,
}

struct Pool {
    config_hash: [u8; 32],
    http: HttpClient,
    permits: Arc<Semaphore>,
    most: u32,
    waiting: Arc<Semaphore>,
}

impl Pools {
    pub(crate) fn new(http: HttpClient) -> Self {
        Self { http, servers: Arc::default() }
    }

    /// The client whose connections belong to this server as it is configured now.
    pub(crate) fn client(&self, server: &Server) -> HttpClient {
        self.with(server, |pool| pool.http.clone())
    }

    /// A client for a server that is not registered, with connections of its own.
    pub(crate) fn separate(&self) -> HttpClient {
        self.http.separate_pool()
    }

    /// A permit for one request; `None` when too many wait, or none came free in time.
    pub(crate) async fn permit(&self, server: &Server) -> Option<OwnedSemaphorePermit> {
        let (permits, waiting) = self.with(server, |pool| (Arc::clone(&pool.permits), Arc::clone(&pool.waiting)));
        if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            return Some(permit);
        }
        let _turn = waiting.try_acquire().ok()?;
        timeout(WAIT_FOR_PERMIT, permits.acquire_owned()).await.ok()?.ok()
    }

    /// Lets go of the clients of servers that are gone.
    pub(crate) fn keep_only(&self, catalog: &Catalog) {
        self.lock().retain(|id, _| catalog.servers.contains_key(id));
    }

    fn with<T>(&self, server: &Server, read: impl FnOnce(&Pool) -> T) -> T {
        let hash = server.config_hash();
        let mut servers = self.lock();
        let current = servers.get(&server.id);
        if current.is_none_or(|pool| pool.config_hash != hash || pool.most != server.max_concurrency) {
            let pool = Pool {
                config_hash: hash,
                http: self.http.separate_pool(),
                permits: Arc::new(Semaphore::new(server.max_concurrency as usize)),
                most: server.max_concurrency,
                waiting: Arc::new(Semaphore::new(MOST_WAITING)),
            };
            servers.insert(server.id, pool);
        }
        read(&servers[&server.id])
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerId, Pool>> {
        // The map is whole after each statement.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a server is, with its headers.
pub(crate) fn endpoint(server: &Server) -> Result<Endpoint, OpenError> {
    let target = Target::parse(&server.url);
    let target = target.map_err(|wrong| OpenError::Request(RequestError::NotMcp(wrong.to_string())))?;
    let mut headers = HeaderMap::with_capacity(server.headers.len());
    for (name, value) in &server.headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| OpenError::BadHeader("a header's name cannot be sent"))?;
        let mut value = HeaderValue::from_str(value.expose_secret())
            .map_err(|_| OpenError::BadHeader("a header's value cannot be sent"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(Endpoint { target, headers })
}

/// The bounds of a connection to a server.
pub fn connection_options(server: &Server, settings: &Settings) -> Options {
    let random = gatehouse_types::ServerId::new().uuid().as_u128();
    Options {
        connect_timeout: server.connect_timeout,
        request_timeout: server.request_timeout,
        most_message_bytes: settings.max_result_bytes as usize,
        most_stream_bytes: u64::from(settings.max_result_bytes) * 8,
        // The low bits of a UUID of version 7 are random.
        id_base: u64::try_from(random & 0xf_ffff_ffff_ffff).unwrap_or(0),
        client_version: env!("CARGO_PKG_VERSION"),
        ..Options::default()
    }
}
