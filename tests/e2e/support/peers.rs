//! Real servers and clients, as processes.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use gatehouse_testkit::eventually;
use serde_json::Value;

use super::process::{Folder, Running, quiet_port};

/// The token of the reference server.
pub(crate) const REFERENCE_TOKEN: &str = "e2e-reference-server-token";

/// A real server.
pub(crate) struct Peer {
    // The process ends before its folder.
    _running: Running,
    _folder: Folder,
    pub(crate) url: String,
}

/// A folder of the project.
pub(crate) fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).canonicalize().unwrap()
}

/// `@modelcontextprotocol/server-everything`.
pub(crate) async fn everything() -> Peer {
    let main = installed("@modelcontextprotocol/server-everything/dist/index.js");
    loop {
        let (folder, port) = (Folder::new(), quiet_port());
        let mut command = Command::new("node");
        command.arg(&main).arg("streamableHttp").env("PORT", port.to_string());
        let mut running = Running::start(command, folder.path().join("output"));
        // It says that it listens also when somebody else has the port, and ends a moment later.
        let ours = eventually("server-everything listens", async || {
            if running.has_ended().is_some() {
                return Some(false);
            }
            running.listens_on(port).then_some(true)
        });
        if ours.await {
            return Peer { _running: running, _folder: folder, url: format!("http://127.0.0.1:{port}/mcp") };
        }
    }
}

/// `examples/mcp-reference-server`, which takes [`REFERENCE_TOKEN`].
pub(crate) async fn reference() -> Peer {
    let folder = Folder::new();
    let server = project("examples/mcp-reference-server");
    assert!(server.join("node_modules").exists(), "run `./dev install` first");
    let mut command = Command::new("node");
    command.arg(server.join("server.mjs")).env("PORT", "0").env("REF_TOKEN", REFERENCE_TOKEN);
    let mut running = Running::start(command, folder.path().join("output"));
    let url = eventually("the reference server listens", async || {
        assert!(running.has_ended().is_none(), "{}", running.printed());
        let line: Value = serde_json::from_str(running.printed().lines().next()?).ok()?;
        line["url"].as_str().map(str::to_owned)
    });
    let url = url.await;
    Peer { _running: running, _folder: folder, url }
}

/// `@playwright/mcp` with Debian's Chromium, without a window.
pub(crate) async fn playwright() -> Peer {
    let main = project("tests/e2e/servers").join("node_modules/@playwright/mcp/cli.js");
    assert!(main.exists(), "run `./dev install` first");
    let (folder, port) = (Folder::new(), quiet_port());
    let mut command = Command::new("node");
    command.arg(main).args(["--port", &port.to_string(), "--headless", "--isolated", "--no-sandbox"]);
    command.args(["--executable-path", "/usr/bin/chromium", "--output-dir"]).arg(folder.path());
    // The browser's profile is there, too, and goes with the folder.
    command.env("TMPDIR", folder.path());
    let running = Running::start(command, folder.path().join("output"));
    // It answers only to this name.
    listening(running, folder, &format!("localhost:{port}"), port).await
}

/// The server of `tests/e2e/servers/fastmcp_server.py`, on `FastMCP`.
pub(crate) async fn fastmcp() -> Peer {
    let servers = project("tests/e2e/servers");
    let python = servers.join(".venv-sdk1/bin/python");
    assert!(python.exists(), "run `./dev install` first");
    let (folder, port) = (Folder::new(), quiet_port());
    let mut command = Command::new(python);
    command.arg(servers.join("fastmcp_server.py")).arg(port.to_string()).env("HOME", folder.path());
    let running = Running::start(command, folder.path().join("output"));
    listening(running, folder, &format!("127.0.0.1:{port}"), port).await
}

async fn listening(mut running: Running, folder: Folder, host: &str, port: u16) -> Peer {
    super::within(std::time::Duration::from_mins(1), "the server listens", async || {
        assert!(running.has_ended().is_none(), "{}", running.printed());
        running.listens_on(port).then_some(())
    })
    .await;
    Peer { _running: running, _folder: folder, url: format!("http://{host}/mcp") }
}

/// An official client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    TypeScript,
    /// The package for 2026-07-28.
    TypeScript2,
    Python,
    Inspector,
}

impl Client {
    /// Lists the tools and makes the calls, as `tests/e2e/clients/arguments.mjs` says.
    pub(crate) async fn run(self, url: &str, token: &str, era: &str, calls: &Value) -> Value {
        let clients = project("tests/e2e/clients");
        let (program, script) = match self {
            Self::TypeScript => (PathBuf::from("node"), "ts_client.mjs"),
            Self::TypeScript2 => (PathBuf::from("node"), "ts2_client.mjs"),
            Self::Python => (clients.join(".venv/bin/python"), "py_client.py"),
            Self::Inspector => (PathBuf::from("node"), "inspector_client.mjs"),
        };
        let mut command = tokio::process::Command::new(program);
        command.arg(clients.join(script)).args([url, &calls.to_string(), "--era", era]).env("MCP_TOKEN", token);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self:?} {}: {words}", output.status);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

pub(crate) fn installed(package: &str) -> PathBuf {
    let path = project("tests/e2e/clients").join("node_modules").join(package);
    assert!(path.exists(), "run `./dev install` first");
    path
}
