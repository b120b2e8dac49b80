//! How the gateway starts, and how it ends without losing anything.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use gatehouse_outbound::{ClientConfig, HttpClient, TlsSetupError};
use gatehouse_platform::{
    Context, RunningServer,
    grpc::{self, peer},
    running::Ended,
};
use gatehouse_types::ReplicaId;
use gatehouse_workspace::{SetupError, Workspaces};
use secrecy::ExposeSecret as _;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Config,
    audit::writer::{self, Writer},
    call::Calls,
    edge::{self, Edge, EdgeAccess, session_id::Signer},
    files::Files,
    grpc::{SERVICES, routes},
    peers::Cards,
    registry::State,
    retention,
    snapshot::{self, Snapshot},
    store::{self, DbError, Pool, replicas},
    upstream::{Upstream, Upstreams, processes::Processes, refresh::Refresher},
};

/// How often this replica says that it lives.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// So many heartbeats on end are more than a lease.
const BEATS_OF_A_LEASE: u32 = 3;
/// Calls that still run so long after shutdown began end with an answer.
const ANSWER_AFTER: Duration = Duration::from_secs(7);
/// How long calls, connections and the audit may take after the servers have ended.
const FINISH_WITHIN: Duration = Duration::from_secs(15);
/// What the keys that sign engines' session ids are derived for.
const SIGNING: &str = "gatehouse edge session id v1";

/// Why the service ends before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gRPC server does not start.
    #[error("the gRPC server does not start")]
    Grpc(#[from] grpc::Error),
    /// A server ended.
    #[error("a server ended")]
    Ended(#[from] Ended),
    /// The edge does not listen.
    #[error("GATEHOUSE_EDGE_LISTEN ({address}) cannot be listened on")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        why: std::io::Error,
    },
    /// The client for servers cannot be set up.
    #[error("the client for servers cannot be set up")]
    Client(#[from] TlsSetupError),
    /// The object store of workspaces cannot be set up.
    #[error("GATEHOUSE_WORKSPACE_ROOT cannot be used")]
    Workspaces(#[from] SetupError),
    /// What is registered cannot be read.
    #[error("what is registered cannot be read")]
    Snapshot(#[from] snapshot::Error),
    /// The database does not take this replica's heartbeat.
    #[error("the database does not take this replica's heartbeat")]
    Heartbeat(#[source] DbError),
    /// The interaction service cannot be called.
    #[error("the interaction service cannot be called")]
    Interaction(#[from] peer::Error),
    /// There is no key to sign with.
    #[error("the keyring holds no key to sign session ids with")]
    NoKey,
}

/// Serves until the context's shutdown has drained.
pub async fn serve(context: Context, config: Config) -> Result<(), Error> {
    let (running, edge_server, grpc_server) = start(&context, config).await?;
    let (draining, shutdown) = (running.calls.draining.clone(), context.shutdown.clone());
    let overdue = async move {
        shutdown.cancelled().await;
        sleep(ANSWER_AFTER).await;
        draining.cancel();
        std::future::pending::<()>().await;
    };
    let ended = async {
        let ended = (edge_server.wait().await, grpc_server.wait().await);
        // A server that failed ends the process as well.
        context.shutdown.cancel();
        running.finish(&context.pool).await;
        ended
    };
    let ended = tokio::select! {
        ended = ended => ended,
        () = overdue => (Ok(()), Ok(())),
    };
    ended.0?;
    Ok(ended.1?)
}

/// What runs behind the two servers.
struct Running {
    replica: ReplicaId,
    calls: Arc<Calls>,
    refresher: Arc<Refresher>,
    audit: writer::Tasks,
    tasks: TaskTracker,
}

async fn start(context: &Context, config: Config) -> Result<(Running, RunningServer, RunningServer), Error> {
    let (pool, clock, shutdown) = (&context.pool, &context.clock, &context.shutdown);
    let replica = ReplicaId::new();
    beat(pool, replica).await.map_err(Error::Heartbeat)?;
    let files = files(context, &config)?;
    let snapshot = Arc::new(Snapshot::load(pool.clone(), Arc::clone(&context.keyring), Arc::clone(clock)).await?);
    let http = HttpClient::new(ClientConfig {
        guard: config.guard,
        extra_ca_pem: config.upstream_ca.map(String::into_bytes),
        ..ClientConfig::default()
    })?;
    let tasks = TaskTracker::new();
    let processes = Arc::new(Processes::new(config.stdio_home, config.stdio_sandbox, Arc::clone(clock)));
    let refresher = Arc::new(Refresher::new(
        Arc::clone(&snapshot),
        http,
        pool.clone(),
        Arc::clone(clock),
        Arc::clone(&processes),
        shutdown.clone(),
    ));
    processes.tell(&refresher);
    let upstreams = Arc::new(Upstreams::new(
        Arc::clone(&snapshot),
        Arc::clone(&refresher),
        pool.clone(),
        Arc::clone(&context.keyring),
        Arc::clone(clock),
    ));
    let (writer, audit) = Writer::start(pool.clone());
    let calls = Arc::new(Calls {
        snapshot: Arc::clone(&snapshot),
        upstreams: Arc::clone(&upstreams),
        cards: Cards::new(peer::channel(&config.interaction)?, tasks.clone()),
        files: Arc::clone(&files),
        audit: writer,
        pool: pool.clone(),
        clock: Arc::clone(clock),
        replica,
        draining: CancellationToken::new(),
    });
    let keys = context.keyring.derive_all(SIGNING);
    let keys: Vec<[u8; 32]> = keys.iter().map(|key| *key.expose_secret()).collect();
    let signer = Signer::new(&keys).ok_or(Error::NoKey)?;
    let public_host = config.public_url.as_ref().and_then(|url| url.host_str());
    let access = EdgeAccess::new(public_host, &config.allowed_hosts, &config.allowed_origins);
    let edge = Arc::new(Edge::new(
        Arc::clone(&calls),
        Arc::clone(&refresher),
        access,
        signer,
        tasks.clone(),
        shutdown.clone(),
    ));

    tasks.spawn({
        let (snapshot, shutdown) = (snapshot, shutdown.clone());
        async move { snapshot.follow(shutdown).await }
    });
    tasks.spawn({
        let (upstreams, shutdown) = (upstreams, shutdown.clone());
        async move { upstreams.sweep(shutdown).await }
    });
    tasks.spawn({
        let edge = Arc::clone(&edge);
        async move { edge.sweep().await }
    });
    tasks.spawn(heartbeat(pool.clone(), replica, shutdown.clone()));
    tasks.spawn(retention::keep(pool.clone(), Arc::clone(&calls.snapshot), Arc::clone(clock), shutdown.clone()));

    let listening = edge::serve(edge, config.edge_listen, shutdown.clone()).await;
    let edge_server = listening.map_err(|why| Error::Listen { address: config.edge_listen, why })?;
    context.endpoints.announce("gateway.edge", edge_server.address());
    let base = config.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
    let base = base.unwrap_or_else(|| format!("http://{}", edge_server.address()));
    let state = Arc::new(State {
        pool: pool.clone(),
        clock: Arc::clone(clock),
        keyring: Arc::clone(&context.keyring),
        files,
        mcp_url: format!("{base}{}", edge::PATH),
        upstream: Upstream::new(Arc::clone(&calls), Arc::clone(&refresher), tasks.clone()),
    });
    let server = grpc::Server::new(crate::NAME, config.grpc).with_routes(routes(&state), &SERVICES);
    let grpc_server = server.start(context).await?;
    Ok((Running { replica, calls, refresher, audit, tasks }, edge_server, grpc_server))
}

/// Files of results, and where workspaces are.
fn files(context: &Context, config: &Config) -> Result<Arc<Files>, Error> {
    let workspaces = config.workspace_root.as_ref().map(Workspaces::at).transpose()?;
    Ok(Arc::new(Files::new(context.pool.clone(), Arc::clone(&context.clock), workspaces)))
}

impl Running {
    /// Waits for what still runs, in the order in which it depends on each other. Bounded: what hangs is left behind.
    async fn finish(self, pool: &Pool) {
        self.tasks.close();
        let upstreams = Arc::clone(&self.calls.upstreams);
        let rest = async {
            self.tasks.wait().await;
            self.refresher.finished().await;
            upstreams.let_go().await;
        };
        if timeout(FINISH_WITHIN, rest).await.is_err() {
            tracing::warn!("calls or connections did not end in time");
        }
        drop(self.calls);
        self.audit.finished().await;
        let left = async {
            let mut connection = pool.acquire().await?;
            replicas::leave(&mut connection, self.replica).await
        };
        if let Err(error) = left.await {
            tracing::warn!(error.message = %error, "this replica could not sign off; others will notice by themselves");
        }
    }
}

async fn beat(pool: &Pool, replica: ReplicaId) -> Result<(), DbError> {
    let mut connection = pool.acquire().await?;
    replicas::beat(&mut connection, replica, "").await
}

/// Says that this replica lives, and closes what dead ones have left behind.
async fn heartbeat(pool: Pool, replica: ReplicaId, shutdown: CancellationToken) {
    let mut tick = interval(HEARTBEAT);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Heartbeats on end. While the database is away nobody's is written, whatever keeps it away: a lapse means something only
    // after a lease in which others could have renewed theirs.
    let mut on_end: u32 = 0;
    while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
        let beaten = async {
            let mut connection = pool.acquire().await?;
            replicas::beat(&mut connection, replica, "").await?;
            let closed = if on_end > BEATS_OF_A_LEASE { replicas::close_orphans(&mut connection).await? } else { 0 };
            store::edge_sessions::forget_expired(&mut connection).await?;
            Ok::<u64, DbError>(closed)
        };
        match store::within(store::ANSWER_WITHIN, beaten).await {
            Ok(closed) => {
                on_end = on_end.saturating_add(1);
                if closed > 0 {
                    tracing::warn!(calls = closed, "calls of a replica that is gone were closed as interrupted");
                }
            }
            Err(error) => {
                on_end = 0;
                tracing::warn!(error.message = %error, "this replica's heartbeat was not written");
            }
        }
    }
}
