//! What the model gets of a result, and where its files are.

use std::{collections::HashMap, fs, path::Path};

use gatehouse_proto::gateway::v1::{
    Call, CallOutcome, CreateSessionRequest, EngineKind, File, FileLocation, GetCallRequest, GetFileRequest,
    GetToolsVersionRequest, ListFilesRequest, PermissionMode, file_service_client::FileServiceClient,
    get_file_response::Part,
};
use gatehouse_testkit::{
    Bucket, eventually,
    mcp_server::{FakeServer, Reply, Request},
};
use serde_json::{Value, json};

use crate::support::{
    Engine, Gate, Options,
    admin_grpc::Admin,
    engine::{text_of, whole_text},
    fakes::server,
    peers::everything,
    process::Folder,
};

/// A gate with a root for workspaces, and a server whose tool `give` answers with the result that is its argument.
struct Stage {
    gate: Gate,
    admin: Admin,
    root: Folder,
    _fake: FakeServer,
}

fn given(request: &Request) -> Reply {
    Reply::result(request, &request.json()["params"]["arguments"]["result"])
}

fn tool(name: &str, output: &Value) -> Value {
    let mut tool = json!({
        "name": name, "description": "Gives.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
    });
    if output.is_object() {
        tool["outputSchema"] = output.clone();
    }
    tool
}

impl Stage {
    async fn set() -> Self {
        Self::set_with(Vec::new()).await
    }

    /// With variables besides, or in place of, the root in a folder.
    async fn set_with(more: Vec<(&'static str, String)>) -> Self {
        let root = Folder::new();
        let mut variables = vec![("GATEHOUSE_WORKSPACE_ROOT", root.path().display().to_string())];
        variables.extend(more);
        let gate = Gate::start(Options { variables }).await;
        let admin = gate.admin();
        let order = json!({
            "type": "object", "required": ["id"], "properties": {
                "id": {"type": "string", "description": "the order's id"},
                "secret": {"type": "string", "maxLength": 3},
            },
        });
        let broken = json!({"type": "object", "properties": {"a": {"$ref": "https://elsewhere.example/schema.json"}}});
        let tools = vec![tool("give", &Value::Null), tool("order", &order), tool("broken", &broken)];
        let fake = server(tools, |request, _| Some(given(request))).await;
        admin.listed_server("s", &fake.url(), &[]).await;
        admin.profile("all", &["s"]).await;
        Self { gate, admin, root, _fake: fake }
    }

    /// An engine in a session of its own, and the session's id.
    async fn engine(&self, workspace: &str, engine: EngineKind, locale: &str) -> (Engine, String) {
        let request = CreateSessionRequest {
            profile: "all".into(),
            permission_mode: PermissionMode::Ask.into(),
            workspace: workspace.into(),
            engine: engine.into(),
            locale: locale.into(),
            ..Default::default()
        };
        let created = self.admin.sessions().create_session(request).await.unwrap().into_inner();
        let session = created.session.unwrap().id;
        let version = GetToolsVersionRequest { session: session.clone() };
        self.admin.sessions().get_tools_version(version).await.unwrap();
        (Engine::connect(&self.gate, &created.token).await, session)
    }

    async fn files(&self, session: &str) -> Vec<File> {
        let request = ListFilesRequest { session: session.into(), ..Default::default() };
        FileServiceClient::new(self.admin.wire()).list_files(request).await.unwrap().into_inner().files
    }

    async fn bytes(&self, session: &str, path: &str) -> Vec<u8> {
        let request = GetFileRequest { session: session.into(), path: path.into() };
        let mut parts = FileServiceClient::new(self.admin.wire()).get_file(request).await.unwrap().into_inner();
        let mut bytes = Vec::new();
        while let Some(message) = parts.message().await.unwrap() {
            if let Some(Part::Chunk(chunk)) = message.part {
                bytes.extend(chunk);
            }
        }
        bytes
    }

    /// The newest call of a tool, with all that is recorded of it.
    async fn audit(&self, tool: &str) -> Call {
        let call = self.admin.ended_call(tool).await.id;
        self.admin.audit().get_call(GetCallRequest { call_id: call }).await.unwrap().into_inner().call.unwrap()
    }

    /// Waits until the newest call of a tool has ended in this way.
    async fn audit_of(&self, tool: &str, is: impl Fn(&Call) -> bool) -> Call {
        eventually("the call is in the audit", async || {
            let call = self.audit(tool).await;
            is(&call).then_some(call)
        })
        .await
    }

    fn on_disk(&self, workspace: &str, path: &str) -> Vec<u8> {
        fs::read(self.root.path().join(workspace).join(path)).unwrap()
    }
}

async fn give(engine: &Engine, tool: &str, result: Value) -> Value {
    engine.call(tool, json!({ "result": result })).await
}

fn texts(result: &Value) -> Vec<&str> {
    result["content"].as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect()
}

#[tokio::test]
async fn structured_results_are_told_once_checked_and_described() {
    let mut stage = Stage::set().await;
    let (engine, _) = stage.engine("", EngineKind::ClaudeCode, "en").await;
    let tools: HashMap<String, Value> =
        engine.list().await.into_iter().map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool)).collect();
    let order = &tools["s__order"];
    let description = order["description"].as_str().unwrap();
    assert!(order.get("outputSchema").is_none(), "{order}");
    assert!(description.starts_with("Gives.") && description.contains("the order's id"), "{description}");
    assert!(order["_meta"]["anthropic/maxResultSizeChars"].as_u64().unwrap() >= 100_000, "{order}");

    let structured = json!({"id": "o-1", "lines": [1, 2.50]});
    let fenced = "```json\n{\"lines\": [1.0, 2.5], \"id\": \"o-1\"}\n```";
    let result = json!({"content": [{"type": "text", "text": fenced}], "structuredContent": structured});
    let same = give(&engine, "s__order", result).await;
    assert_eq!(texts(&same), [fenced], "the same value is not repeated");
    let only = give(&engine, "s__order", json!({"content": [], "structuredContent": structured})).await;
    assert_eq!(serde_json::from_str::<Value>(text_of(&only)).unwrap(), structured);
    assert!(only.get("structuredContent").is_none());
    let call = stage.audit("order").await;
    assert!(call.notes.is_empty() && call.structured_result_json.contains("o-1"), "{call:?}");

    // A result that does not match goes to the model all the same; the audit keeps what was wrong, without its values.
    let wrong = json!({"content": [], "structuredContent": {"id": 5, "secret": "hunter-22-planted"}});
    let told = give(&engine, "s__order", wrong).await;
    assert!(text_of(&told).contains("hunter-22-planted") && told.get("isError").is_none(), "{told}");
    let call = stage.audit_of("order", |call| !call.notes.is_empty()).await;
    let notes = call.notes.join("\n");
    assert!(notes.contains("/id") && notes.contains("/secret") && !notes.contains("hunter-22"), "{notes}");
    assert_eq!(call.outcome(), CallOutcome::Ok);
    let failed = json!({"content": [{"type": "text", "text": "no such order"}], "isError": true});
    assert_eq!(text_of(&give(&engine, "s__order", failed).await), "Error: no such order");
    let call = stage.audit_of("order", |call| call.outcome() == CallOutcome::ToolError).await;
    assert!(call.notes.is_empty(), "errors are not validated: {call:?}");

    let unusable = give(&engine, "s__broken", json!({"content": [], "structuredContent": {"a": 1}})).await;
    assert_eq!(text_of(&unusable), r#"{"a":1}"#);
    let call = stage.audit("broken").await;
    assert!(call.outcome() == CallOutcome::Ok && call.notes.len() == 1, "a broken schema is a note: {call:?}");
    stage.gate.stop().await;
}

#[tokio::test]
async fn what_is_too_long_is_a_file_in_the_workspace() {
    let mut stage = Stage::set().await;
    let (engine, session) = stage.engine("team/a", EngineKind::ClaudeCode, "en").await;
    let long = "门é😀\n".repeat(30_000);
    let result = json!({"content": [
        {"type": "text", "text": "first"}, {"type": "text", "text": long},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    ]});
    let told = give(&engine, "s__give", result).await;
    let words = texts(&told);
    let shown: usize = words[..2].iter().map(|text| text.chars().count()).sum();
    assert!(words[0] == "first" && long.starts_with(words[1]), "{}", &words[1][..20]);
    assert!((99_000..=100_000).contains(&shown), "{shown}");
    assert!(words[2].contains("of its 120005 characters are shown"), "{}", words[2]);
    assert_eq!(told["content"].as_array().unwrap().last().unwrap()["type"], "image", "a small image stays");
    let files = stage.files(&session).await;
    assert_eq!(files.len(), 1);
    assert!(words[2].contains(&files[0].path), "{}", words[2]);
    assert_eq!(stage.on_disk("team/a", &files[0].path), format!("first\n{long}").as_bytes());
    let call = stage.audit("give").await;
    assert_eq!(call.files, [files[0].path.clone()]);
    assert_eq!(
        files[0].path,
        format!(".agent/mcp/{}/{}", call.id, Path::new(&files[0].path).file_name().unwrap().display())
    );
    assert_eq!(stage.on_disk("team/a", ".agent/mcp/.gitignore"), b"*\n");

    // Codex shows less; images are files when they are larger than the setting.
    stage.admin.set(&[("results.maxMediaBytes", json!(1_000))]).await;
    let (codex, session) = stage.engine("team/b", EngineKind::Codex, "zh-CN").await;
    let image = "QUFB".repeat(1_000);
    let result = json!({"content": [
        {"type": "text", "text": "z".repeat(60_000)}, {"type": "image", "data": image, "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///x/report.pdf", "name": "report", "mimeType": "application/pdf", "size": 2_000},
    ]});
    let told = give(&codex, "s__give", result).await;
    let all = whole_text(&told);
    assert!(
        all.len() < 40_000 && all.contains("文本在此截断") && all.contains("未显示的图片：image/png，3.0 KB"),
        "{all}"
    );
    assert!(told["content"].as_array().unwrap().iter().all(|block| block["type"] == "text"), "{told}");
    let files = stage.files(&session).await;
    assert_eq!(files.iter().filter(|file| all.contains(&file.path)).count(), 2, "{files:?} {all}");
    let image = files.iter().find(|file| file.media_type == "image/png").unwrap();
    assert_eq!(stage.bytes(&session, &image.path).await, "AAA".repeat(1_000).as_bytes());
    stage.gate.stop().await;
}

#[tokio::test]
async fn embedded_resources_are_files_and_nothing_is_lost_without_a_workspace() {
    let mut stage = Stage::set().await;
    let resource = |uri: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "text": text}});
    let result = json!({"content": [
        resource("file:///r/Q3%20report.csv", "a,b"), resource("x:///..%2f..%2fetc/passwd", "root"),
        resource("file:///r/Q3%20report.csv", "second"), {"type": "resource", "resource": {"uri": "a:b", "blob": "!!"}},
    ]});
    let (engine, session) = stage.engine("w", EngineKind::ClaudeCode, "en").await;
    let told = give(&engine, "s__give", result.clone()).await;
    let all = whole_text(&told);
    let files = stage.files(&session).await;
    assert_eq!(files.len(), 3, "{files:?}");
    for file in &files {
        assert!(all.contains(&file.path) && file.location() == FileLocation::Workspace, "{all} {file:?}");
        let name = Path::new(&file.path).file_name().unwrap().to_str().unwrap();
        assert!(!name.starts_with('.') && !name.contains(['%', '/']), "{name}");
        assert_eq!(stage.on_disk("w", &file.path), stage.bytes(&session, &file.path).await);
    }
    assert!(all.contains("is not valid base64"), "{all}");
    assert!(!stage.audit("give").await.notes.is_empty());

    // An agent that plants a link leads nobody out: the file goes to the database, and the call's result is not lost.
    let outside = Folder::new();
    let trap = stage.root.path().join("trap");
    fs::create_dir_all(&trap).unwrap();
    std::os::unix::fs::symlink(outside.path(), trap.join(".agent")).unwrap();
    let (engine, session) = stage.engine("trap", EngineKind::ClaudeCode, "en").await;
    let told = whole_text(&give(&engine, "s__give", json!({"content": [resource("a:b/c.txt", "kept")]})).await);
    assert!(told.contains("a symbolic link stands in the way") && told.contains("the user can get it"), "{told}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    let files = stage.files(&session).await;
    assert_eq!((files.len(), files[0].location()), (1, FileLocation::Platform));
    assert_eq!(stage.bytes(&session, &files[0].path).await, b"kept");

    // A session without a workspace; and the quota.
    stage.admin.set(&[("files.maxBytesPerSession", json!(1_048_576))]).await;
    let (engine, session) = stage.engine("", EngineKind::ClaudeCode, "en").await;
    let told = whole_text(&give(&engine, "s__give", json!({"content": [resource("a:b/c.txt", "kept")]})).await);
    assert!(told.contains("not in this workspace"), "{told}");
    let big = resource("a:b/big.txt", &"x".repeat(1_048_577));
    let told = whole_text(&give(&engine, "s__give", json!({"content": [{"type": "text", "text": "hi"}, big]})).await);
    assert!(told.starts_with("hi") && told.contains("files of this session may take at most 1048576 bytes"), "{told}");
    assert_eq!(stage.files(&session).await.len(), 1);
    stage.gate.stop().await;
    // After a restart what was kept is still there.
    stage.gate.restart().await;
    stage.admin = stage.gate.admin();
    let files = stage.files(&session).await;
    assert_eq!(stage.bytes(&session, &files[0].path).await, b"kept");
    stage.gate.stop().await;
}

#[tokio::test]
async fn results_of_a_real_server_are_told_and_saved() {
    let everything = everything().await;
    let mut stage = Stage::set().await;
    stage.admin.listed_server("everything", &everything.url, &[]).await;
    stage.admin.profile("real", &["everything"]).await;
    let request = CreateSessionRequest {
        profile: "real".into(),
        permission_mode: PermissionMode::Auto.into(),
        workspace: "real".into(),
        ..Default::default()
    };
    let created = stage.admin.sessions().create_session(request).await.unwrap().into_inner();
    let session = created.session.unwrap().id;
    stage.admin.sessions().get_tools_version(GetToolsVersionRequest { session: session.clone() }).await.unwrap();
    let engine = Engine::connect(&stage.gate, &created.token).await;
    let call = async |tool: &str, arguments: Value| engine.call(&format!("everything__{tool}"), arguments).await;

    let weather = call("get-structured-content", json!({"location": "New York"})).await;
    assert_eq!(texts(&weather).len(), 1, "told once: {weather}");
    assert!(stage.audit("get-structured-content").await.notes.is_empty());
    let image = call("get-tiny-image", json!({})).await;
    assert!(image["content"].as_array().unwrap().iter().any(|block| block["type"] == "image"), "{image}");
    let links = whole_text(&call("get-resource-links", json!({"count": 2})).await);
    assert!(links.matches("Resource link: ").count() == 2, "{links}");
    let resource = call("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})).await;
    let files = stage.files(&session).await;
    assert_eq!(files.len(), 1, "{resource}");
    assert!(whole_text(&resource).contains(&files[0].path), "{resource} {files:?}");
    assert!(!stage.on_disk("real", &files[0].path).is_empty());
    let call = stage.audit("get-resource-reference").await;
    assert_eq!((&call.files, &call.id), (&vec![files[0].path.clone()], &files[0].call_id));
    let file = stage.files(&session).await.remove(0);
    assert_eq!((file.server.as_str(), file.tool.as_str()), ("everything", "get-resource-reference"));
    stage.gate.stop().await;
}

#[tokio::test]
async fn files_of_a_session_in_a_bucket_are_saved_there_and_come_back() {
    let bucket = Bucket::start().await.unwrap();
    let mut variables = vec![("GATEHOUSE_WORKSPACE_ROOT", "s3://bucket/spaces".to_owned())];
    variables.extend(bucket.variables());
    let mut stage = Stage::set_with(variables).await;
    let (engine, session) = stage.engine("team/one", EngineKind::Other, "en").await;
    let resource = json!({"uri": "file:///a/report.csv", "mimeType": "text/csv", "text": "a,b\n1,2\n"});
    let result = json!({"content": [{"type": "resource", "resource": resource}]});
    let told = text_of(&engine.call("s__give", json!({ "result": result })).await).to_owned();
    let call = stage.audit_of("give", |call| !call.files.is_empty()).await;
    let path = &call.files[0];
    assert!(told.contains(path.as_str()) && path.ends_with("/report.csv"), "{told}");
    let key = format!("/bucket/spaces/team/one/{path}");
    assert_eq!(bucket.objects().get(&key).map(|bytes| bytes.to_vec()), Some(b"a,b\n1,2\n".to_vec()));
    assert!(bucket.objects().contains_key("/bucket/spaces/team/one/.agent/mcp/.gitignore"));
    assert_eq!(stage.bytes(&session, path).await, b"a,b\n1,2\n");
    assert_eq!(stage.files(&session).await[0].location(), FileLocation::Workspace);
    stage.gate.stop().await;
}
