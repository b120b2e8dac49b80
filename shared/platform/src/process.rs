//! A process from start to end: configuration, telemetry, pool, ops server, service, drain, exit code.

use std::{
    error::Error as StdError,
    io::{self, Write as _},
    net::SocketAddr,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use gatehouse_store::{Keyring, api_keys, api_keys::FirstKey, migrate};
use gatehouse_types::{SystemClock, secret::API_KEY_PREFIX};
use metrics_exporter_prometheus::PrometheusHandle;
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::PgPool;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Context, RunningServer,
    config::{Problems, Source},
    error::chain,
    ops, pool,
    running::Ended,
    telemetry::{self, Telemetry},
};

/// Exit code of a process whose configuration is wrong.
pub const EXIT_CONFIG: u8 = 2;
/// Fewest characters of a token that an operator brings.
const MIN_TOKEN_CHARS: usize = 32;
/// How long the connections to the database may take to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
const SCHEMA_PAUSE: Duration = Duration::from_millis(500);
const DEFAULT_OPS_PORT: u16 = 7310;

/// What every process is told, whatever its service.
#[derive(Debug)]
pub struct Config {
    /// The database.
    pub database_url: SecretString,
    /// Where LISTEN works, when a pooler stands in front of the database.
    pub listen_url: Option<SecretString>,
    /// Keys for secrets at rest.
    pub keyring: Arc<Keyring>,
    /// The services' shared token.
    pub service_token: Option<SecretString>,
    /// The first admin key.
    pub admin_key: Option<SecretString>,
    /// Where the ops server listens.
    pub ops_listen: SocketAddr,
}

/// Why a process ends before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] Problems),
    /// Telemetry does not start.
    #[error("telemetry cannot start")]
    Telemetry(#[from] telemetry::Error),
    /// The database cannot be reached.
    #[error(transparent)]
    Pool(#[from] pool::Error),
    /// The schema is not the one of this version.
    #[error(transparent)]
    Schema(#[from] migrate::Error),
    /// The first admin key could not be stored.
    #[error("the first admin key could not be stored")]
    AdminKey(#[source] sqlx::Error),
    /// The ops server, the signal handlers or the runtime do not start.
    #[error("the process cannot start")]
    Io(#[from] io::Error),
    /// The ops server ended.
    #[error("the ops server ended")]
    Ops(#[source] Ended),
    /// The service failed.
    #[error("the {name} service failed")]
    Service {
        /// Its name.
        name: &'static str,
        /// Why.
        #[source]
        why: Box<dyn StdError + Send + Sync>,
    },
}

impl Config {
    /// From the source; whatever is wrong is noted there. `ops_offset` is added to the default port of the ops server.
    pub fn load(source: &Source, ops_offset: u16) -> Option<Self> {
        let database_url = source.text("DATABASE_URL").map(SecretString::from);
        if database_url.is_none() {
            source.missing("DATABASE_URL");
        }
        let default_ops = SocketAddr::from(([127, 0, 0, 1], DEFAULT_OPS_PORT + ops_offset));
        let ops_listen = source.value("GATEHOUSE_OPS_LISTEN", default_ops);
        let service_token = source.secret("GATEHOUSE_SERVICE_TOKEN");
        if service_token.as_ref().is_some_and(|token| !is_token(token.expose_secret())) {
            source.refuse("GATEHOUSE_SERVICE_TOKEN");
        }
        let admin_key = source.secret("GATEHOUSE_ADMIN_KEY");
        let rest = |key: &SecretString| key.expose_secret().strip_prefix(API_KEY_PREFIX).map(str::to_owned);
        if admin_key.as_ref().is_some_and(|key| !rest(key).is_some_and(|rest| is_token(&rest))) {
            source.refuse("GATEHOUSE_ADMIN_KEY");
        }
        let keyring = load_keyring(source);
        let listen_url = source.text("DATABASE_LISTEN_URL").map(SecretString::from);
        let keyring = Arc::new(keyring?);
        Some(Self { database_url: database_url?, listen_url, keyring, service_token, admin_key, ops_listen })
    }
}

fn load_keyring(source: &Source) -> Option<Keyring> {
    let Some(text) = source.secret("GATEHOUSE_KEYRING") else {
        // A file that was named and cannot be read is noted already.
        if source.text("GATEHOUSE_KEYRING_FILE").is_none() {
            source.missing("GATEHOUSE_KEYRING");
        }
        return None;
    };
    match Keyring::parse(&text) {
        Ok(keyring) => Some(keyring),
        Err(error) => {
            source.note("GATEHOUSE_KEYRING", error.to_string());
            source.refuse("GATEHOUSE_KEYRING");
            None
        }
    }
}

fn is_token(text: &str) -> bool {
    text.len() >= MIN_TOKEN_CHARS && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A process whose pool is open and whose ops server runs.
#[derive(Debug)]
pub struct Process {
    /// For its services.
    pub context: Context,
    ops: RunningServer,
}

impl Process {
    /// Opens the pool, waits for the database and its schema, stores the first admin key, and starts the ops server. The process
    /// counts as ready once the gRPC servers of these `services` listen: each service starts its own last.
    pub async fn start(
        name: &str,
        services: &[&str],
        config: Config,
        metrics: PrometheusHandle,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        let pool = pool::connect(name, &config.database_url).await?;
        wait_for_schema(&pool, &shutdown).await?;
        let mut context = Context::new(pool, Arc::new(SystemClock), config.keyring, config.service_token);
        context.shutdown = shutdown;
        context.listen_url = config.listen_url;
        if let Some(key) = &config.admin_key {
            ensure_admin_key(&context, key).await.map_err(Error::AdminKey)?;
        }
        let servers = services.iter().map(|service| format!("{service}.grpc")).collect();
        let ops = ops::start(&context, config.ops_listen, metrics, servers).await?;
        Ok(Self { context, ops })
    }

    /// Closes what [`Self::start`] opened, once the services have ended.
    pub async fn finish(self) {
        self.context.shutdown.cancel();
        drop(self.ops);
        // Closing waits for each connection's last word, and a dead one has none.
        if timeout(CLOSE_WITHIN, self.context.pool.close()).await.is_err() {
            tracing::warn!("connections to the database did not close in time");
        }
    }
}

/// Cancels `shutdown` at the first SIGTERM or SIGINT.
pub fn on_signals(shutdown: CancellationToken) -> io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal.name = name, "shutdown begins");
        shutdown.cancel();
    });
    Ok(())
}

/// A schema that is behind may be in the middle of its migration.
async fn wait_for_schema(pool: &PgPool, shutdown: &CancellationToken) -> Result<(), migrate::Error> {
    let started = Instant::now();
    let mut told = false;
    loop {
        match migrate::check(pool).await {
            Err(error @ migrate::Error::Older { .. }) => {
                if started.elapsed() > pool::STARTUP_WAIT || shutdown.is_cancelled() {
                    return Err(error);
                }
                if !told {
                    tracing::warn!(error.message = %error, "waiting for the schema");
                    told = true;
                }
            }
            other => return other,
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(SCHEMA_PAUSE) => {}
        }
    }
}

async fn ensure_admin_key(context: &Context, key: &SecretString) -> Result<(), sqlx::Error> {
    let mut transaction = gatehouse_store::begin(&context.pool).await?;
    let outcome = api_keys::ensure_first_admin_key(&mut transaction, key, context.clock.now()).await?;
    transaction.commit().await?;
    match outcome {
        FirstKey::Inserted => tracing::info!("the first admin key was stored"),
        FirstKey::Known => {}
        FirstKey::Revoked => tracing::warn!("the configured admin key is revoked and stays so"),
        FirstKey::OthersExist => {
            tracing::warn!("the configured admin key is unknown and was not stored, since other admin keys exist");
        }
    }
    Ok(())
}

/// Runs one service as a whole process and returns its exit code: 0 after a graceful shutdown, 1 when it failed, 2 when
/// the configuration is wrong. `ops_offset` is added to the default port of the ops server.
pub fn run<C, E, F>(
    name: &'static str,
    config_file: Option<&Path>,
    ops_offset: u16,
    load: impl FnOnce(&Source) -> C,
    serve: impl FnOnce(Context, C) -> F,
) -> ExitCode
where
    E: StdError + Send + Sync + 'static,
    F: Future<Output = Result<(), E>>,
{
    let source = Source::from_process(config_file);
    let config = Config::load(&source, ops_offset);
    let (telemetry, own) = (telemetry::Config::load(&source), load(&source));
    let config = match (source.finish(), config) {
        (Ok(()), Some(config)) => config,
        (Err(problems), _) => return report(&Error::Config(problems)),
        (Ok(()), None) => return report(&Error::Config(Problems(Vec::new()))),
    };
    block_on(async {
        let telemetry = Telemetry::start(name, &telemetry)?;
        let ended = run_service(name, config, telemetry.metrics(), |context| serve(context, own)).await;
        if let Err(error) = &ended {
            tracing::error!(error.message = chain(error), "the process ends");
        }
        telemetry.shutdown().await;
        ended
    })
}

async fn run_service<E, F>(
    name: &'static str,
    config: Config,
    metrics: PrometheusHandle,
    serve: impl FnOnce(Context) -> F,
) -> Result<(), Error>
where
    E: StdError + Send + Sync + 'static,
    F: Future<Output = Result<(), E>>,
{
    let shutdown = CancellationToken::new();
    on_signals(shutdown.clone())?;
    let process = Process::start(name, &[name], config, metrics, shutdown).await?;
    let served = serve(process.context.clone()).await;
    process.finish().await;
    served.map_err(|why| Error::Service { name, why: Box::new(why) })
}

/// Runs `process` on a new multi-threaded runtime and turns its outcome into an exit code, saying what went wrong.
pub fn block_on<E: StdError + 'static>(process: impl Future<Output = Result<(), E>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&Error::Io(error)),
    };
    match runtime.block_on(process) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

/// Says on stderr why the process ends, and returns the exit code for it: 2 for [`Problems`], else 1.
pub fn report(error: &(dyn StdError + 'static)) -> ExitCode {
    // When even stderr is gone, the exit code is all there is to say.
    let _ = writeln!(io::stderr(), "gatehouse: {}", chain(error));
    let wrong_config = error.is::<Problems>() || matches!(error.downcast_ref(), Some(Error::Config(_)));
    if wrong_config { ExitCode::from(EXIT_CONFIG) } else { ExitCode::FAILURE }
}
