//! Real servers behind the gateway: each is listed, makes a meaningful call, and its files are where they belong.

mod programs;

use std::{fs, path::PathBuf, time::Duration};

use gatehouse_proto::gateway::v1::{
    CallOutcome, CreateSessionRequest, GetToolsVersionRequest, PermissionMode, Policy, UpdateToolRequest,
};
use gatehouse_testkit::{
    eventually,
    mcp_server::{FakeServer, Reply},
};
use serde_json::{Value, json};

use crate::support::{
    Engine, Gate, Options,
    admin_grpc::Admin,
    engine::whole_text,
    peers::{fastmcp, playwright},
    process::Folder,
    within,
};

/// A gate, and an engine in a session of mode `auto` that has one real server.
struct Stage {
    gate: Gate,
    admin: Admin,
    engine: Engine,
    root: Folder,
}

impl Stage {
    async fn with(url: &str) -> Self {
        let root = Folder::new();
        let variables = vec![("GATEHOUSE_WORKSPACE_ROOT", root.path().display().to_string())];
        let gate = Gate::start(Options { variables }).await;
        let admin = gate.admin();
        admin.listed_server("real", url, &[]).await;
        admin.profile("all", &["real"]).await;
        let request = CreateSessionRequest {
            profile: "all".into(),
            permission_mode: PermissionMode::Auto.into(),
            workspace: "w".into(),
            ..Default::default()
        };
        let created = admin.sessions().create_session(request).await.unwrap().into_inner();
        let version = GetToolsVersionRequest { session: created.session.unwrap().id };
        admin.sessions().get_tools_version(version).await.unwrap();
        let engine = Engine::connect(&gate, &created.token).await;
        Self { gate, admin, engine, root }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let result = self.engine.call(&format!("real__{tool}"), arguments).await;
        assert!(result.get("isError").is_none(), "{result}");
        result
    }

    /// The one file that the newest call of a tool saved.
    async fn saved(&self, tool: &str) -> PathBuf {
        let files = eventually("the call is recorded with its files", async || {
            let call = self.admin.ended_call(tool).await;
            assert_eq!(call.outcome(), CallOutcome::Ok, "{call:?}");
            (!call.files.is_empty()).then_some(call.files)
        })
        .await;
        assert_eq!(files.len(), 1, "{files:?}");
        self.root.path().join("w").join(&files[0])
    }
}

#[tokio::test]
async fn playwright_shows_a_page_as_text_and_as_an_image() {
    let page = "<!doctype html><title>Shop</title><h1>Open orders</h1><button>Ship it</button>";
    let answer = move |_: &_| Some(Reply::new(200, "text/html", page));
    let (server, site) = (playwright().await, FakeServer::start(answer).await.unwrap());
    let mut stage = Stage::with(&server.url).await;
    assert!(stage.engine.names().await.contains(&"real__browser_snapshot".to_owned()));
    // It says of itself that it is destructive: a person would be asked each time.
    let request = UpdateToolRequest {
        server: "real".into(),
        tool: "browser_navigate".into(),
        policy: Policy::Allow.into(),
        ..Default::default()
    };
    stage.admin.tools().update_tool(request).await.unwrap();
    stage.call("browser_navigate", json!({"url": site.url()})).await;
    let seen = whole_text(&stage.call("browser_snapshot", json!({})).await);
    assert!(seen.contains("Open orders") && seen.contains("Ship it"), "{seen}");
    let shot = stage.call("browser_take_screenshot", json!({})).await;
    let image = shot["content"].as_array().unwrap().iter().find(|block| block["type"] == "image").cloned();
    assert!(image.is_some_and(|image| image["data"].as_str().unwrap().len() > 1_000), "{}", whole_text(&shot));
    // Larger than the model may see: a file in the workspace.
    stage.admin.set(&[("results.maxMediaBytes", json!(1_024))]).await;
    within(Duration::from_secs(10), "the setting counts", async || {
        let shot = stage.call("browser_take_screenshot", json!({"fullPage": true})).await;
        whole_text(&shot).contains("An image that is not shown").then_some(())
    })
    .await;
    let bytes = fs::read(stage.saved("browser_take_screenshot").await).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"\xff\xd8"), "{:?}", &bytes[..8]);
    stage.gate.stop().await;
}

#[tokio::test]
async fn fastmcp_gives_structured_results_images_and_files() {
    let server = fastmcp().await;
    let mut stage = Stage::with(&server.url).await;
    let stock = whole_text(&stage.call("stock", json!({"item": "bolts"})).await);
    assert_eq!(serde_json::from_str::<Value>(&stock).unwrap(), json!({"bolts": 40}), "told once: {stock}");
    let label = stage.call("label", json!({"item": "bolts"})).await;
    assert_eq!(label["content"][0]["type"], "image", "{label}");
    let report = whole_text(&stage.call("report", json!({})).await);
    let file = stage.saved("report").await;
    assert!(report.contains("stock.csv") && file.ends_with("stock.csv"), "{report} {}", file.display());
    assert_eq!(fs::read_to_string(file).unwrap(), "item,count\nbolts,40\n");
    stage.gate.stop().await;
}
