//! A folder, a fake gateway and the built command.

use std::{path::PathBuf, process::Stdio, sync::Arc};

use gatehouse_types::{Id, SessionId};
use serde_json::Value;
use tokio::process::Command;

use super::grpc_fake::{Fake, KEY};

/// What a run of the command left.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// Standard output as one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// One test's surroundings; the folder goes when it is dropped.
pub(crate) struct World {
    pub(crate) fake: Arc<Fake>,
    pub(crate) folder: PathBuf,
    pub(crate) endpoint: String,
}

impl World {
    /// With the data folder of a running gateway in the current folder.
    pub(crate) async fn new() -> Self {
        let fake = Arc::new(Fake::default());
        let endpoint = fake.serve().await;
        let id: SessionId = Id::new();
        let folder = std::env::temp_dir().join(format!("gatehouse-cli-{id}"));
        std::fs::create_dir_all(folder.join(".gatehouse")).unwrap();
        let world = Self { fake, folder, endpoint };
        let endpoints = serde_json::json!({
            "mcp": "http://x/mcp", "grpc": world.endpoint, "interaction": world.endpoint, "ops": "http://x", "pid": 1
        });
        world.write(".gatehouse/endpoints.json", &endpoints.to_string());
        world.write(".gatehouse/admin.key", &format!("{KEY}\n"));
        world
    }

    /// Writes a file into the current folder.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    /// What is in a file of the current folder.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(name)).unwrap()
    }

    /// The names in the current folder.
    pub(crate) fn names(&self) -> std::collections::BTreeSet<std::ffi::OsString> {
        std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    /// The command, with nothing of the surroundings of the tests.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse"));
        command.args(arguments).current_dir(&self.folder).env_clear().env("HOME", &self.folder).env("TZ", "UTC");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs the command to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Done {
        finish(self.command(arguments)).await
    }
}

/// Runs a command to its end.
pub(crate) async fn finish(mut command: Command) -> Done {
    let output = command.output().await.unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
