//! The Postgres of `up`: a cluster of its own in the data folder, from the machine's binaries.
//!
//! It listens on a Unix socket only, in a folder that nobody but its owner (and root) can enter; inside that folder no
//! password is needed. [`binaries`] finds the programs, [`user`] the account they run under, [`leftover`] deals with
//! what a killed `up` left behind.

mod binaries;
mod leftover;
mod user;

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::{ExitStatus, Output, Stdio},
    time::Duration,
};

use binaries::Binaries;
use gatehouse_types::secret::random_bytes;
use tokio::{
    process::{Child, Command},
    sync::oneshot,
    task::JoinHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use user::User;

use super::store::{self, DbError};

/// Name of the cluster's superuser and of the database.
const NAME: &str = "gatehouse";
const PORT: u16 = 5432;
/// Longest path of a Unix socket that every system takes, in bytes.
const MAX_SOCKET_PATH: usize = 100;
/// Where sockets go whose cluster's own path is too long; not `TMPDIR`, which may be as long.
const TEMPORARY: &str = "/tmp";
const TEMPORARY_PREFIX: &str = "gatehouse-sockets-";
/// Longest wait for a start, recovery after a crash included.
const START_TIMEOUT: Duration = Duration::from_mins(5);
const START_PAUSE: Duration = Duration::from_millis(50);
/// Longest wait for a fast shutdown, after which an immediate one follows.
const STOP_SECONDS: &str = "30";
/// The log starts anew above this size, in bytes; the one before it is kept.
const MAX_LOG_BYTES: u64 = 10 << 20;
const LOG_TAIL_LINES: usize = 5;

/// The cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "no Postgres from {} to {} was found on this machine: install Debian's package (`apt-get install postgresql`), or \
         set DATABASE_URL to use another one",
        binaries::OLDEST,
        binaries::NEWEST
    )]
    NoBinaries,
    #[error(
        "the data folder was made by Postgres {made_by}, and this machine has {}: install Postgres {made_by} (Debian: \
         `postgresql-{made_by}`), or choose another data folder", .found.join(" and ")
    )]
    OtherVersion { made_by: String, found: Vec<String> },
    #[error(
        "Postgres does not run as root, and there is no user `postgres` on this machine; start `up` as another user"
    )]
    NoUser,
    #[error(
        "Postgres runs as user {user} and cannot enter {folder}: allow it with `chmod o+x {folder}`, choose a data folder \
         that it can reach (--data), or start `up` as another user than root"
    )]
    Unreachable { user: String, folder: String },
    #[error("{path} cannot be {what}")]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        why: io::Error,
    },
    #[error("{program} failed: {words}")]
    Program { program: &'static str, words: String },
    #[error("Postgres ended ({status}) while it started; the end of {log}:\n{tail}")]
    EndedEarly { status: ExitStatus, log: String, tail: String },
    #[error("Postgres ended by itself ({status}); the end of {log}:\n{tail}")]
    Died { status: String, log: String, tail: String },
    #[error("Postgres did not answer within {} s; its log is {log}", START_TIMEOUT.as_secs())]
    Silent { log: String },
    #[error("the cluster's database could not be made")]
    Database(#[source] DbError),
    #[error("the system gave no random bytes")]
    NoRandomness(#[from] gatehouse_types::secret::NoRandomness),
    #[error("shutdown was asked for while Postgres started")]
    Interrupted,
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |why| Error::Io { what, path, why }
}

/// A cluster that is ready to start: binaries, account, folders and address are decided.
#[derive(Debug)]
pub(super) struct Cluster {
    binaries: Binaries,
    user: User,
    folder: PathBuf,
    sockets: PathBuf,
    /// Whether the folder of the socket is one of our own under the system's temporary folder.
    sockets_are_temporary: bool,
    log: PathBuf,
}

impl Cluster {
    /// Decides everything about the cluster in `data`; makes folders, starts nothing.
    pub(super) fn prepare(data: &Path, logs: &Path) -> Result<Self, Error> {
        let user = User::for_folder(data)?;
        let folder = user.reachable_folder(data, "postgres")?;
        let binaries = binaries::choose(binaries::find(), made_by(&folder)?)?;
        let log = logs.join("postgres.log");
        let in_cluster = folder.as_os_str().len() + "/.s.PGSQL.".len() + PORT.to_string().len();
        let sockets_are_temporary = in_cluster > MAX_SOCKET_PATH;
        let sockets = if sockets_are_temporary { temporary_folder(&user)? } else { folder.clone() };
        Ok(Self { binaries, user, folder, sockets, sockets_are_temporary, log })
    }

    /// The URL of its database, for `DATABASE_URL`.
    pub(super) fn url(&self) -> String {
        self.url_of(NAME)
    }

    fn url_of(&self, database: &str) -> String {
        let host: String = url::form_urlencoded::byte_serialize(self.sockets.as_os_str().as_bytes()).collect();
        // `+` would be read as a plus in a path by some parsers.
        format!("postgres://{NAME}@localhost:{PORT}/{database}?host={}", host.replace('+', "%20"))
    }

    /// Makes the cluster when there is none, ends what a killed `up` left behind, starts Postgres and waits until it
    /// answers.
    pub(super) async fn start(self, shutdown: &CancellationToken) -> Result<Running, Error> {
        if made_by(&self.folder)?.is_none() {
            self.initialise().await?;
        }
        leftover::end(&self).await?;
        let mut child = self.spawn()?;
        if let Err(error) = self.wait_until_up(&mut child, shutdown).await {
            self.stop(&mut child).await;
            return Err(error);
        }
        tracing::info!(postgres.version = self.binaries.major, "Postgres is up");
        Ok(Running::watch(self, child))
    }

    /// `initdb` into a folder of another name, so that a half-made cluster is never taken for a whole one.
    async fn initialise(&self) -> Result<(), Error> {
        let part = self.folder.with_extension("part");
        if part.exists() {
            fs::remove_dir_all(&part).map_err(failed("removed", &part))?;
        }
        self.user.private_folder(&part)?;
        tracing::info!(postgres.version = self.binaries.major, folder = %self.folder.display(), "making a Postgres cluster");
        let arguments =
            ["--username", NAME, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--data-checksums"];
        let made = self.run("initdb", arguments.map(OsStr::new).into_iter().chain(["-D".as_ref(), part.as_os_str()]));
        succeeded("initdb", &made.await?)?;
        fs::rename(&part, &self.folder).map_err(failed("made", &self.folder))
    }

    fn spawn(&self) -> Result<Child, Error> {
        let log = self.open_log()?;
        let for_stderr = log.try_clone().map_err(failed("opened", &self.log))?;
        let sockets = self.sockets.as_os_str().to_owned();
        let mut socket_setting = std::ffi::OsString::from("unix_socket_directories=");
        socket_setting.push(sockets);
        let mut command = self.command("postgres");
        command.arg("-D").arg(&self.folder).arg("-c").arg(socket_setting);
        for setting in
            ["listen_addresses=", "unix_socket_permissions=0700", "logging_collector=off", "log_destination=stderr"]
        {
            command.args(["-c", setting]);
        }
        command.args(["-c", &format!("port={PORT}")]);
        // A group of its own: Ctrl-C in the terminal is for `up`, which ends Postgres after everything that uses it.
        command.process_group(0).stdin(Stdio::null()).stdout(log).stderr(for_stderr);
        command.spawn().map_err(failed("started", &self.binaries.program("postgres")))
    }

    fn open_log(&self) -> Result<fs::File, Error> {
        if fs::metadata(&self.log).is_ok_and(|log| log.len() > MAX_LOG_BYTES) {
            fs::rename(&self.log, self.log.with_extension("log.1")).map_err(failed("moved", &self.log))?;
        }
        fs::OpenOptions::new().create(true).append(true).open(&self.log).map_err(failed("opened", &self.log))
    }

    /// A program of Postgres, under the account of the cluster, with nothing of our environment.
    fn command(&self, program: &'static str) -> Command {
        let mut command = Command::new(self.binaries.program(program));
        command.env_clear().env("LC_ALL", "C").current_dir("/");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        self.user.run_as(&mut command);
        command
    }

    async fn run(&self, program: &'static str, arguments: impl IntoIterator<Item = &OsStr>) -> Result<Output, Error> {
        let mut command = self.command(program);
        command.args(arguments).stdin(Stdio::null()).process_group(0);
        command.output().await.map_err(failed("started", &self.binaries.program(program)))
    }

    async fn wait_until_up(&self, child: &mut Child, shutdown: &CancellationToken) -> Result<(), Error> {
        let started = Instant::now();
        let url = self.url_of("postgres");
        loop {
            match store::connect(&url).await {
                Ok(answering) => return answering.make_database(NAME).await.map_err(Error::Database),
                Err(error) => tracing::debug!(error.message = %error, "Postgres does not answer yet"),
            }
            if let Some(status) = child.try_wait().map_err(failed("watched", &self.folder))? {
                return Err(Error::EndedEarly { status, log: self.log.display().to_string(), tail: self.log_tail() });
            }
            if started.elapsed() > START_TIMEOUT {
                return Err(Error::Silent { log: self.log.display().to_string() });
            }
            tokio::select! {
                () = shutdown.cancelled() => return Err(Error::Interrupted),
                () = tokio::time::sleep(START_PAUSE) => {}
            }
        }
    }

    fn log_tail(&self) -> String {
        let text = fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(LOG_TAIL_LINES).map(|line| format!("  {line}")).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Fast shutdown, then immediate, then by force. The next start recovers from any of them.
    async fn stop(&self, child: &mut Child) {
        for mode in ["fast", "immediate"] {
            if self.pg_ctl_stop(mode).await.is_ok() {
                break;
            }
        }
        if !matches!(child.try_wait(), Ok(Some(_)))
            && let Err(error) = tokio::time::timeout(Duration::from_secs(5), child.wait()).await
        {
            tracing::warn!(error.message = %error, "Postgres did not stop; it is killed");
            if let Err(error) = child.kill().await {
                tracing::error!(error.message = %error, "Postgres could not be killed");
            }
        }
        if self.sockets_are_temporary
            && let Err(error) = fs::remove_dir(&self.sockets)
        {
            tracing::warn!(error.message = %error, "the socket's folder could not be removed");
        }
    }

    async fn pg_ctl_stop(&self, mode: &str) -> Result<(), Error> {
        let arguments = ["stop", "-w", "-t", STOP_SECONDS, "-m", mode, "-D"].map(OsStr::new);
        let stopped = self.run("pg_ctl", arguments.into_iter().chain([self.folder.as_os_str()])).await?;
        succeeded("pg_ctl", &stopped)
    }
}

fn succeeded(program: &'static str, output: &Output) -> Result<(), Error> {
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Program { program, words: if words.is_empty() { output.status.to_string() } else { words } })
}

/// The major version that made the cluster, when there is one.
fn made_by(folder: &Path) -> Result<Option<String>, Error> {
    let path = folder.join("PG_VERSION");
    match fs::read_to_string(&path) {
        Ok(version) => Ok(Some(version.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", &path)(error)),
    }
}

/// A private folder with a short path, for the socket of a cluster whose own path is too long.
fn temporary_folder(user: &User) -> Result<PathBuf, Error> {
    let random = u64::from_be_bytes(random_bytes()?);
    let path = Path::new(TEMPORARY).join(format!("{TEMPORARY_PREFIX}{random:016x}"));
    user.private_folder(&path)?;
    Ok(path)
}

/// A cluster that runs. [`Running::stop`] ends it in order.
#[derive(Debug)]
pub(super) struct Running {
    stop: oneshot::Sender<()>,
    /// Ends with an error when Postgres died by itself.
    task: JoinHandle<Result<(), Error>>,
}

impl Running {
    fn watch(cluster: Cluster, mut child: Child) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            tokio::select! {
                status = child.wait() => {
                    let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                    Err(Error::Died { status, log: cluster.log.display().to_string(), tail: cluster.log_tail() })
                }
                _ = stopped => {
                    cluster.stop(&mut child).await;
                    Ok(())
                }
            }
        });
        Self { stop, task }
    }

    /// Waits until Postgres has died by itself. Cancel-safe.
    pub(super) async fn died(&mut self) -> Error {
        match (&mut self.task).await {
            Ok(Err(error)) => error,
            Ok(Ok(())) | Err(_) => std::future::pending().await,
        }
    }

    /// Stops Postgres and waits until it has stopped.
    pub(super) async fn stop(self) {
        // Postgres that died already needs no stop.
        let _ = self.stop.send(());
        if !self.task.is_finished() && self.task.await.is_err() {
            tracing::error!("the task that watches Postgres panicked");
        }
    }
}
