//! What every service gets to live with.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use gatehouse_store::Keyring;
use gatehouse_types::Clock;
use secrecy::SecretString;
use sqlx::PgPool;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Authenticator;

/// What a service lives with. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Context {
    /// The database.
    pub pool: PgPool,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Seals and opens secrets at rest; signing keys derive from it.
    pub keyring: Arc<Keyring>,
    /// Cancelled when the process shall end: take no new work, end streams with an answer, finish what runs.
    pub shutdown: CancellationToken,
    /// Knows the callers.
    pub authenticator: Arc<Authenticator>,
    /// What this service shows to the others; none when only client certificates are used.
    pub service_token: Option<SecretString>,
    /// Where the servers of this process listen.
    pub endpoints: Endpoints,
    /// Where LISTEN works, when that is not the pool's server: a URL that may hold a password.
    pub listen_url: Option<SecretString>,
}

impl Context {
    /// A context around a database. [`crate::process`] does this for a process; tests do it for themselves.
    pub fn new(
        pool: PgPool,
        clock: Arc<dyn Clock>,
        keyring: Arc<Keyring>,
        service_token: Option<SecretString>,
    ) -> Self {
        let authenticator = Arc::new(Authenticator::new(pool.clone(), clock.clone(), service_token.as_ref()));
        Self {
            pool,
            clock,
            keyring,
            shutdown: CancellationToken::new(),
            authenticator,
            service_token,
            endpoints: Endpoints::default(),
            listen_url: None,
        }
    }
}

/// The real addresses of a process's servers, by name: `gateway.edge`, `gateway.grpc`, `oauth.grpc`, `ops`, ….
#[derive(Debug, Clone)]
pub struct Endpoints(Arc<watch::Sender<BTreeMap<String, SocketAddr>>>);

impl Default for Endpoints {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(BTreeMap::new())))
    }
}

impl Endpoints {
    /// Tells where a server listens, once it does.
    pub fn announce(&self, name: impl Into<String>, address: SocketAddr) {
        self.0.send_modify(|addresses| {
            addresses.insert(name.into(), address);
        });
    }

    /// Whether the server of this name listens.
    pub fn has(&self, name: &str) -> bool {
        self.0.borrow().contains_key(name)
    }

    /// Waits until the server of this name listens. Waits forever for one that never does: bound it.
    pub async fn get(&self, name: &str) -> SocketAddr {
        let mut addresses = self.0.subscribe();
        loop {
            if let Some(address) = addresses.borrow_and_update().get(name) {
                return *address;
            }
            if addresses.changed().await.is_err() {
                // The sender is part of `self`.
                std::future::pending::<()>().await;
            }
        }
    }
}
