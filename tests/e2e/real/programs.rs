//! Real servers that are programs, each in its sandbox: listed, called, and with their files where they belong.

use std::{collections::HashMap, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use gatehouse_proto::gateway::v1 as pb;
use gatehouse_testkit::mcp_server::{FakeServer, Reply};
use serde_json::{Value, json};

use crate::support::{
    Engine, Gate, Options,
    admin_grpc::Admin,
    engine::whole_text,
    peers::{installed, project},
    process::Folder,
};

/// A gate with some programs, and an engine in a session of mode `auto` that has all of them.
struct Programs {
    gate: Gate,
    admin: Admin,
    engine: Engine,
    _homes: Folder,
}

/// A program with what it needs of the file system.
fn program(words: &[&str], open: &[(&Path, bool)], env: &[(&str, &str)]) -> pb::StdioCommand {
    let open = open.iter().map(|(path, write)| pb::OpenedPath { path: path.display().to_string(), write: *write });
    let stdio = pb::Stdio {
        program: words[0].to_owned(),
        args: words[1..].iter().map(|word| (*word).to_owned()).collect(),
        open: open.collect(),
        ..Default::default()
    };
    let env: HashMap<String, String> =
        env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    pb::StdioCommand { stdio: Some(stdio), env }
}

/// What a command prints.
fn said(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A Node.js server of the tests' packages. The packages are a link into a cache, where the program looks for its own parts.
fn node(main: &Path, args: &[&str], open: &[(&Path, bool)], env: &[(&str, &str)]) -> pb::StdioCommand {
    let main = main.canonicalize().unwrap();
    let packages = main.ancestors().find(|path| path.ends_with("node_modules")).unwrap().to_owned();
    let node = said(Path::new("node"), &["-p", "process.execPath"]);
    let words = [&[node.as_str(), main.to_str().unwrap()], args].concat();
    let prefix = Path::new(&node).parent().and_then(Path::parent).unwrap().to_owned();
    let mut open = [&[(packages.as_path(), false)], open].concat();
    if !prefix.starts_with("/usr") {
        open.push((&prefix, false));
    }
    program(&words, &open, env)
}

/// A server of one of the tests' environments of Python.
fn python(
    environment: &str,
    name: &str,
    args: &[&str],
    open: &[(&Path, bool)],
    env: &[(&str, &str)],
) -> pb::StdioCommand {
    let folder = project("tests/e2e/servers").join(environment).canonicalize().unwrap();
    let (python, script) = (folder.join("bin/python"), folder.join("bin").join(name));
    let base = said(&python, &["-c", "import sys; print(sys.base_prefix)"]);
    let words = [&[python.to_str().unwrap(), script.to_str().unwrap()], args].concat();
    let mut open = [&[(folder.as_path(), false)], open].concat();
    if !base.starts_with("/usr") {
        open.push((Path::new(&base), false));
    }
    program(&words, &open, env)
}

/// A folder that the programs' users may write to.
fn shared_folder() -> Folder {
    let folder = Folder::new();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

impl Programs {
    async fn start(programs: Vec<(&str, pb::StdioCommand)>) -> Self {
        let homes = Folder::new();
        let variables = vec![("GATEHOUSE_STDIO_HOME", homes.path().join("stdio").display().to_string())];
        let gate = Gate::start(Options { variables }).await;
        let admin = gate.admin();
        let names: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
        for (name, stdio) in programs {
            let request = pb::CreateServerRequest { name: name.into(), stdio: Some(stdio), ..Default::default() };
            admin.servers().create_server(request).await.unwrap();
            let refreshed = admin.servers().refresh_server(pb::RefreshServerRequest { server: name.into() }).await;
            let server = refreshed.unwrap().into_inner().server.unwrap();
            assert!(server.tool_count > 0, "{server:?}");
        }
        admin.profile("all", &names).await;
        let (_, token) = admin.session("all", pb::PermissionMode::Auto).await;
        let engine = Engine::connect(&gate, &token).await;
        Self { gate, admin, engine, _homes: homes }
    }

    /// The text of a call that works.
    async fn call(&self, tool: &str, arguments: Value) -> String {
        let result = self.engine.call(tool, arguments).await;
        assert!(result.get("isError").is_none(), "{tool}: {result}");
        whole_text(&result)
    }

    /// Lets a tool that calls itself destructive run at once.
    async fn allow(&self, server: &str, tool: &str) {
        let request = pb::UpdateToolRequest {
            server: server.into(),
            tool: tool.into(),
            policy: pb::Policy::Allow.into(),
            ..Default::default()
        };
        self.admin.tools().update_tool(request).await.unwrap();
    }
}

#[tokio::test]
async fn servers_on_node_read_and_write_what_was_opened_for_them() {
    let package = |name: &str| {
        project("tests/e2e/servers").join("node_modules/@modelcontextprotocol").join(name).join("dist/index.js")
    };
    let data = shared_folder();
    fs::write(data.path().join("order.txt"), "17 bolts").unwrap();
    let folder = data.path().to_str().unwrap();
    let mut programs = Programs::start(vec![
        ("files", node(&package("server-filesystem"), &[folder], &[(data.path(), true)], &[])),
        ("memory", node(&package("server-memory"), &[], &[], &[("MEMORY_FILE_PATH", "/home/server/memory.json")])),
        ("thinking", node(&package("server-sequential-thinking"), &[], &[], &[])),
        ("everything", node(&installed("@modelcontextprotocol/server-everything/dist/index.js"), &["stdio"], &[], &[])),
    ])
    .await;
    let read = programs.call("files__read_text_file", json!({"path": format!("{folder}/order.txt")})).await;
    assert!(read.contains("17 bolts"), "{read}");
    programs.allow("files", "write_file").await;
    programs.call("files__write_file", json!({"path": format!("{folder}/new.txt"), "content": "18 nuts"})).await;
    assert_eq!(fs::read_to_string(data.path().join("new.txt")).unwrap(), "18 nuts");
    let outside = programs.engine.call("files__read_text_file", json!({"path": "/etc/passwd"})).await;
    assert_eq!(outside["isError"], true, "{outside}");

    let entity = json!({"name": "Ada", "entityType": "person", "observations": ["orders bolts"]});
    programs.allow("memory", "create_entities").await;
    programs.call("memory__create_entities", json!({"entities": [entity]})).await;
    assert!(programs.call("memory__read_graph", json!({})).await.contains("orders bolts"));
    let thought = json!({"thought": "count", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    assert!(programs.call("thinking__sequentialthinking", thought).await.contains("thoughtNumber"));
    assert!(programs.call("everything__echo", json!({"message": "over pipes"})).await.contains("over pipes"));

    // What a program keeps in its home is there after a restart.
    programs.gate.stop().await;
    programs.gate.restart().await;
    assert!(programs.call("memory__read_graph", json!({})).await.contains("orders bolts"));
    programs.gate.stop().await;
}

#[tokio::test]
async fn servers_on_python_work_with_a_repository_a_database_and_a_page() {
    let repository = shared_folder();
    let git = |args: &[&str]| said(Path::new("git"), &[&["-C", repository.path().to_str().unwrap()], args].concat());
    git(&["init", "--quiet"]);
    fs::write(repository.path().join("readme"), "hello").unwrap();
    git(&["add", "."]);
    git(&["-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "--quiet", "-m", "First words"]);
    let page = |_: &_| Some(Reply::new(200, "text/html", "<!doctype html><title>Shop</title><p>Open orders: 17</p>"));
    let site = FakeServer::start(page).await.unwrap();
    let at = repository.path().to_str().unwrap();
    // Git distrusts a repository of another user.
    let trust = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "safe.directory"), ("GIT_CONFIG_VALUE_0", "*")];
    let mut fetch = python(".venv", "mcp-server-fetch", &["--allow-private-ips", "--ignore-robots-txt"], &[], &[]);
    fetch.stdio.as_mut().unwrap().network = true;
    let mut programs = Programs::start(vec![
        ("git", python(".venv", "mcp-server-git", &["--repository", at], &[(repository.path(), false)], &trust)),
        ("time", python(".venv", "mcp-server-time", &["--local-timezone", "UTC"], &[], &[])),
        ("fetch", fetch),
        ("sqlite", python(".venv-sdk1", "mcp-server-sqlite", &["--db-path", "/home/server/t.db"], &[], &[])),
    ])
    .await;
    let log = programs.call("git__git_log", json!({"repo_path": at})).await;
    assert!(log.contains("First words"), "{log}");
    let time = programs.call("time__get_current_time", json!({"timezone": "UTC"})).await;
    assert!(time.contains("UTC"), "{time}");
    let shop = programs.call("fetch__fetch", json!({"url": site.url()})).await;
    assert!(shop.contains("Open orders: 17"), "{shop}");
    programs.call("sqlite__create_table", json!({"query": "CREATE TABLE orders (id integer, what text)"})).await;
    programs.call("sqlite__write_query", json!({"query": "INSERT INTO orders VALUES (17, 'bolts')"})).await;
    let rows = programs.call("sqlite__read_query", json!({"query": "SELECT * FROM orders"})).await;
    assert!(rows.contains("bolts"), "{rows}");
    programs.gate.stop().await;
}
