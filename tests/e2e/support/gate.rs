//! One `gatehouse up` on a database and a data folder of its own.

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use gatehouse_testkit::{Database, eventually};
use serde_json::Value;

use super::process::{Folder, Running, quiet_port};

/// Where any free port will do.
const ANY_PORT: [&str; 5] = [
    "GATEHOUSE_GRPC_LISTEN",
    "GATEHOUSE_OPS_LISTEN",
    "GATEHOUSE_INTERACTION_LISTEN",
    "GATEHOUSE_OAUTH_LISTEN",
    "GATEHOUSE_TASK_POLLER_LISTEN",
];

/// How the process is started.
#[derive(Default)]
pub(crate) struct Options {
    /// Variables besides, or in place of, the harness's own.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// A running gateway. Its edge keeps its port over restarts.
pub(crate) struct Gate {
    // Fields go in this order: the process ends before its database and its folder.
    pub(crate) running: Running,
    pub(crate) database: Database,
    folder: Folder,
    variables: HashMap<&'static str, String>,
    endpoints: Value,
}

impl Gate {
    /// Starts `up` and waits until it is ready.
    pub(crate) async fn start(options: Options) -> Self {
        let (database, folder) = (Database::new().await, Folder::new());
        let mut variables: HashMap<_, _> = ANY_PORT.map(|name| (name, "127.0.0.1:0".to_owned())).into();
        variables.insert("GATEHOUSE_EDGE_LISTEN", format!("127.0.0.1:{}", quiet_port()));
        variables.insert("GATEHOUSE_UPSTREAM_ALLOW", "127.0.0.0/8,::1/128".to_owned());
        variables.insert("DATABASE_URL", database.url());
        variables.extend(options.variables);
        let running = launch(&folder, &variables);
        let mut gate = Self { running, database, folder, variables, endpoints: Value::Null };
        gate.wait_until_ready().await;
        gate
    }

    /// SIGKILL: nothing is tidied up.
    pub(crate) fn kill9(&mut self) {
        self.running.kill();
    }

    /// Starts it again, after it was killed or stopped.
    pub(crate) async fn restart(&mut self) {
        self.running = launch(&self.folder, &self.variables);
        self.wait_until_ready().await;
    }

    /// SIGTERM: it ends by itself, with exit code 0.
    pub(crate) async fn stop(&mut self) {
        self.running.signal("TERM");
        let status = self.running.ended().await;
        assert_eq!(status.code(), Some(0), "{}", self.printed());
        assert!(!self.data("endpoints.json").exists());
    }

    /// Everything that it has printed, over all restarts.
    pub(crate) fn printed(&self) -> String {
        self.running.printed()
    }

    /// A file in the data folder.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    /// URL of the MCP endpoint.
    pub(crate) fn mcp_url(&self) -> String {
        self.endpoint("mcp")
    }

    /// URL of the gRPC server.
    pub(crate) fn grpc_url(&self) -> String {
        self.endpoint("grpc")
    }

    /// URL of the interaction service's gRPC server.
    pub(crate) fn interaction_url(&self) -> String {
        self.endpoint("interaction")
    }

    /// The admin API key of the data folder.
    pub(crate) fn admin_key(&self) -> String {
        fs::read_to_string(self.data("admin.key")).unwrap().trim().to_owned()
    }

    /// Runs the command against this gateway and returns what it printed; it must succeed.
    pub(crate) async fn command(&self, arguments: &[&str]) -> String {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_gatehouse"));
        command.env_clear().env("TZ", "UTC").arg("--data").arg(self.folder.path().join("data")).args(arguments);
        let done = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
        let (out, err) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8_lossy(&done.stderr).into_owned());
        assert!(done.status.success(), "{arguments:?} {}: {out}{err}", done.status);
        out
    }

    /// What `/metrics` says.
    pub(crate) async fn metrics(&self) -> String {
        super::engine::fetch(&format!("{}/metrics", self.endpoint("ops"))).await
    }

    /// The sum of a metric over its labels; 0 when there is none.
    pub(crate) async fn metric(&self, name: &str) -> usize {
        let metrics = self.metrics().await;
        let lines = metrics.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
    }

    fn endpoint(&self, name: &str) -> String {
        self.endpoints[name].as_str().unwrap().to_owned()
    }

    async fn wait_until_ready(&mut self) {
        let file = self.data("endpoints.json");
        let running = &mut self.running;
        self.endpoints = eventually("endpoints.json is there", async || {
            let ended = running.has_ended();
            assert!(ended.is_none(), "{ended:?}: {}", running.printed());
            let endpoints: Value = serde_json::from_str(&fs::read_to_string(&file).ok()?).ok()?;
            // After a crash there may be the file of the process before.
            (endpoints["pid"] == running.pid()).then_some(endpoints)
        })
        .await;
    }
}

fn launch(folder: &Folder, variables: &HashMap<&'static str, String>) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).envs(variables);
    command.arg("--data").arg(folder.path().join("data")).arg("up");
    Running::start(command, folder.path().join("output"))
}
