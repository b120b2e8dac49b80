//! `gatehouse up`: everything in one process.

use std::{error::Error as StdError, io::Write as _, path::Path, process::ExitCode, time::Duration};

use gatehouse_platform::{
    Context,
    config::Source,
    grpc::peer,
    pool,
    process::{self, Process},
    telemetry::{self, Telemetry},
};
use gatehouse_store::Keyring;
use gatehouse_types::secret::{API_KEY_PREFIX, generate};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    data::DataFolder,
    endpoints::{Endpoints, File},
    error::Error,
    postgres::{Cluster, Running},
};

const NAME: &str = "up";
/// What runs in it.
const SERVICES: [&str; 4] =
    [gatehouse_gateway::NAME, gatehouse_interaction::NAME, gatehouse_oauth::NAME, gatehouse_task_poller::NAME];
const INTERACTION_URL: &str = "GATEHOUSE_INTERACTION_URL";
/// Longest wait until all services listen.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const SERVICE_TOKEN_PREFIX: &str = "ghv_";

/// Secrets of the data folder: variable, file, and how a new one is made.
const ADMIN_KEY_FILE: &str = "admin.key";
const KEYRING_FILE: &str = "keyring";
const SERVICE_TOKEN_FILE: &str = "service-token";

/// Runs `up` until Ctrl-C or SIGTERM.
pub(super) fn run(data: Option<&Path>, config_file: Option<&Path>) -> ExitCode {
    match prepare(data, config_file) {
        Ok(prepared) => process::block_on(live(prepared)),
        // As every process: it has an exit code of its own.
        Err(Error::Config(problems)) => process::report(&problems),
        Err(error) => process::report(&error),
    }
}

/// Everything that is decided before anything starts.
struct Prepared {
    data: DataFolder,
    cluster: Option<Cluster>,
    telemetry: telemetry::Config,
    process: process::Config,
    services: Services,
}

struct Services {
    gateway: gatehouse_gateway::Config,
    interaction: gatehouse_interaction::Config,
    oauth: gatehouse_oauth::Config,
    task_poller: gatehouse_task_poller::Config,
}

fn prepare(data: Option<&Path>, config_file: Option<&Path>) -> Result<Prepared, Error> {
    let mut source = Source::from_process(config_file);
    let configured = source.text("GATEHOUSE_DATA").map(Path::new).map(Path::to_owned);
    let data = DataFolder::open(data.or(configured.as_deref()))?;
    fill_secrets(&mut source, &data)?;
    let cluster = match source.text("DATABASE_URL") {
        Some(_) => None,
        None => Some(Cluster::prepare(data.path(), &data.folder("logs")?)?),
    };
    if let Some(cluster) = &cluster {
        source.set("DATABASE_URL", cluster.url());
    }
    let mut services = Services {
        gateway: gatehouse_gateway::Config::load(&source),
        interaction: gatehouse_interaction::Config::load(&source),
        oauth: gatehouse_oauth::Config::load(&source),
        task_poller: gatehouse_task_poller::Config::load(&source),
    };
    services.join_up(&source);
    let telemetry = telemetry::Config::load(&source);
    let process = process::Config::load(&source, 0);
    source.finish()?;
    // Whatever makes `load` return nothing was noted.
    let process = process.ok_or_else(|| gatehouse_platform::config::Problems(Vec::new()))?;
    Ok(Prepared { data, cluster, telemetry, process, services })
}

/// What the environment does not bring, the data folder keeps.
fn fill_secrets(source: &mut Source, data: &DataFolder) -> Result<(), Error> {
    let given = |source: &Source, variable: &str| {
        source.text(variable).is_some() || source.text(&format!("{variable}_FILE")).is_some()
    };
    for (variable, file) in [
        ("GATEHOUSE_KEYRING", KEYRING_FILE),
        ("GATEHOUSE_SERVICE_TOKEN", SERVICE_TOKEN_FILE),
        ("GATEHOUSE_ADMIN_KEY", ADMIN_KEY_FILE),
    ] {
        if given(source, variable) {
            continue;
        }
        let secret = data.secret(file, || match variable {
            "GATEHOUSE_KEYRING" => Keyring::generate(),
            "GATEHOUSE_SERVICE_TOKEN" => generate(SERVICE_TOKEN_PREFIX),
            _ => generate(API_KEY_PREFIX),
        })?;
        source.set(variable, secrecy::ExposeSecret::expose_secret(&secret));
    }
    Ok(())
}

async fn live(prepared: Prepared) -> Result<(), Error> {
    let telemetry = Telemetry::start(NAME, &prepared.telemetry)?;
    let shutdown = CancellationToken::new();
    process::on_signals(shutdown.clone()).map_err(|why| Error::Io("signals cannot be handled", why))?;
    let Prepared { data, cluster, process, services, .. } = prepared;
    let mut running = match cluster {
        None => None,
        Some(cluster) => match cluster.start(&shutdown).await {
            Ok(running) => Some(running),
            // Ctrl-C before anything ran is a clean end.
            Err(super::postgres::Error::Interrupted) => return Ok(()),
            Err(error) => return Err(error.into()),
        },
    };
    let ended = tokio::select! {
        ended = with_database(&data, process, services, &telemetry, &shutdown) => ended,
        error = died(&mut running) => {
            shutdown.cancel();
            Err(error.into())
        }
    };
    if let Some(running) = running {
        running.stop().await;
    }
    telemetry.shutdown().await;
    ended
}

async fn died(running: &mut Option<Running>) -> super::postgres::Error {
    match running {
        Some(running) => running.died().await,
        None => std::future::pending().await,
    }
}

async fn with_database(
    data: &DataFolder,
    config: process::Config,
    services: Services,
    telemetry: &Telemetry,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let pool = pool::connect("migrate", &config.database_url).await?;
    gatehouse_store::migrate(&pool).await?;
    pool.close().await;
    let process = Process::start(NAME, &SERVICES, config, telemetry.metrics(), shutdown.clone()).await?;
    let tls =
        Tls { gateway: services.gateway.grpc.tls.is_some(), interaction: services.interaction.grpc.tls.is_some() };
    let mut tasks = services.start(&process.context, data.path());
    let announced = tokio::time::timeout(START_TIMEOUT, announce(data, &process.context, tls));
    let file = tokio::select! {
        file = announced => file.map_err(|_| Error::Slow(START_TIMEOUT.as_secs())).flatten(),
        Some(ended) = tasks.join_next() => Err(early(ended)),
        () = shutdown.cancelled() => Ok(None),
    };
    let ended = match &file {
        Ok(_) => tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            Some(ended) = tasks.join_next() => if shutdown.is_cancelled() { outcome(ended) } else { Err(early(ended)) },
        },
        Err(_) => Ok(()),
    };
    shutdown.cancel();
    // No longer ready: the commands must not find it while it drains.
    let started = file.map(drop);
    let drained = drain(&mut tasks).await;
    process.finish().await;
    started.and(ended).and(drained)
}

/// Which gRPC servers have TLS.
#[derive(Debug, Clone, Copy)]
struct Tls {
    gateway: bool,
    interaction: bool,
}

type Ended = (&'static str, Result<(), Box<dyn StdError + Send + Sync>>);

impl Services {
    /// The gateway calls interaction within this process: in the clear on loopback, where no certificate has to have the right
    /// name; by the URL that is configured where interaction listens to other machines.
    fn join_up(&mut self, source: &Source) {
        let listen = &mut self.interaction.grpc;
        if listen.listen.ip().is_loopback() {
            listen.tls = None;
        } else if source.text(INTERACTION_URL).is_none() {
            source.note(
                INTERACTION_URL,
                "is not set; where GATEHOUSE_INTERACTION_LISTEN is no loopback address, it takes the https URL that the \
                 certificate is for",
            );
        }
    }

    /// Starts all. The gateway ends first: while it drains it still closes cards at the services that it calls.
    fn start(self, context: &Context, data: &Path) -> JoinSet<Ended> {
        let mut tasks = JoinSet::new();
        let gateway = context.clone();
        let drained = CancellationToken::new();
        let called = || Context { shutdown: drained.clone(), ..context.clone() };
        let (interaction, oauth, task_poller) = (called(), called(), called());
        let drained = drained.drop_guard();
        let in_the_clear = self.interaction.grpc.tls.is_none();
        let mut gateway_config = self.gateway;
        gateway_config.stdio_home.get_or_insert_with(|| data.join("stdio"));
        tasks.spawn(async move {
            let _drained = drained;
            if in_the_clear {
                let name = format!("{}.grpc", gatehouse_interaction::NAME);
                let listens = gateway.endpoints.get(&name);
                // A service that does not start ends the process, and with it this wait.
                let Some(address) = gateway.shutdown.run_until_cancelled(listens).await else {
                    return (gatehouse_gateway::NAME, Ok(()));
                };
                gateway_config.interaction.url = peer::at(address);
            }
            (gatehouse_gateway::NAME, gatehouse_gateway::serve(gateway, gateway_config).await.map_err(Into::into))
        });
        tasks.spawn(async {
            (
                gatehouse_interaction::NAME,
                gatehouse_interaction::serve(interaction, self.interaction).await.map_err(Into::into),
            )
        });
        tasks.spawn(async {
            (gatehouse_oauth::NAME, gatehouse_oauth::serve(oauth, self.oauth).await.map_err(Into::into))
        });
        tasks.spawn(async {
            (
                gatehouse_task_poller::NAME,
                gatehouse_task_poller::serve(task_poller, self.task_poller).await.map_err(Into::into),
            )
        });
        tasks
    }
}

fn outcome(ended: Result<Ended, tokio::task::JoinError>) -> Result<(), Error> {
    match ended {
        Ok((_, Ok(()))) => Ok(()),
        Ok((name, Err(why))) => Err(Error::Service { name, why }),
        Err(why) => Err(Error::Service { name: "a", why: Box::new(why) }),
    }
}

fn early(ended: Result<Ended, tokio::task::JoinError>) -> Error {
    let name = ended.as_ref().map_or("a", |(name, _)| *name);
    outcome(ended).err().unwrap_or(Error::Ended(name))
}

/// Waits for all services; the first failure counts.
async fn drain(tasks: &mut JoinSet<Ended>) -> Result<(), Error> {
    let mut first = Ok(());
    while let Some(ended) = tasks.join_next().await {
        first = first.and(outcome(ended));
    }
    first
}

/// Once all services listen: writes `endpoints.json` and says where things are.
async fn announce(data: &DataFolder, context: &Context, tls: Tls) -> Result<Option<File>, Error> {
    let at = &context.endpoints;
    for name in [gatehouse_oauth::NAME, gatehouse_task_poller::NAME] {
        at.get(&format!("{name}.grpc")).await;
    }
    let grpc = (at.get("gateway.grpc").await, tls.gateway);
    let interaction = (at.get("interaction.grpc").await, tls.interaction);
    let endpoints = Endpoints::new(at.get("gateway.edge").await, grpc, interaction, at.get("ops").await);
    let file = File::write(data.path().join("endpoints.json"), &endpoints)
        .map_err(|why| Error::Io("endpoints.json cannot be written", why))?;
    let folder = data.path().display();
    let summary = format!(
        "Gatehouse is up.\n\
         \x20 MCP          {}\n\
         \x20 gRPC         {}\n\
         \x20 health       {}/readyz\n\
         \x20 data folder  {folder}\n\
         \n\
         Next, in another terminal:\n\
         \x20 gatehouse --data {folder} server add NAME URL\n\
         \x20 gatehouse --data {folder} profile add NAME --server NAME\n\
         \x20 gatehouse --data {folder} session create --profile NAME\n\
         \n\
         Ctrl-C stops everything.\n",
        endpoints.mcp, endpoints.grpc, endpoints.ops
    );
    // A closed stdout is no reason to end.
    let _ = std::io::stdout().write_all(summary.as_bytes());
    Ok(Some(file))
}
