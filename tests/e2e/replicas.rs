//! Two gateways on one database.

use std::{collections::HashMap, process::Command};

use gatehouse_proto::{
    gateway::v1::{
        CallOutcome, ListCallsRequest, PermissionMode, Policy, RotateTokenRequest, UpdateSessionRequest,
        UpdateToolRequest,
    },
    interaction::v1::{Decision, InteractionState, interaction},
};
use gatehouse_testkit::{
    eventually,
    mcp_server::{Act, Reply},
};
use http::StatusCode;
use serde_json::json;

use crate::support::{
    Engine, Gate, Options,
    engine::text_of,
    fakes::{reading_tool, server, sessions_of_calls, writing_tool},
    process::{Folder, Running, quiet_port},
};

/// A second gateway on the database and with the keys of a gate.
struct Replica {
    running: Running,
    _folder: Folder,
    url: String,
}

impl Replica {
    async fn start(gate: &Gate) -> Self {
        let (folder, port) = (Folder::new(), quiet_port());
        let any = || "127.0.0.1:0".to_owned();
        let variables: HashMap<_, _> = [
            ("DATABASE_URL", gate.database.url()),
            ("GATEHOUSE_EDGE_LISTEN", format!("127.0.0.1:{port}")),
            ("GATEHOUSE_GRPC_LISTEN", any()),
            ("GATEHOUSE_OPS_LISTEN", any()),
            ("GATEHOUSE_INTERACTION_URL", gate.interaction_url()),
            ("GATEHOUSE_UPSTREAM_ALLOW", "127.0.0.0/8".to_owned()),
            ("GATEHOUSE_KEYRING_FILE", gate.data("keyring").display().to_string()),
            ("GATEHOUSE_SERVICE_TOKEN_FILE", gate.data("service-token").display().to_string()),
        ]
        .into();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).envs(variables).arg("gateway");
        let mut running = Running::start(command, folder.path().join("output"));
        eventually("the replica listens", async || {
            assert!(running.has_ended().is_none(), "{}", running.printed());
            running.listens_on(port).then_some(())
        })
        .await;
        Self { running, _folder: folder, url: format!("http://127.0.0.1:{port}/mcp") }
    }
}

#[tokio::test]
async fn what_changes_at_one_replica_holds_for_the_next_call_at_the_other() {
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let fake = server(vec![reading_tool("echo"), writing_tool("change")], |_, _| None).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (session, token) = admin.session("all", PermissionMode::Auto).await;
    let mut here = Engine::connect(&gate, &token).await;
    here.call("s__echo", json!({"message": "here"})).await;
    let mut replica = Replica::start(&gate).await;
    let mut there = Engine::at(&replica.url, &token);
    there.session = here.session.clone();
    assert_eq!(text_of(&there.call("s__echo", json!({"message": "there"})).await), "there");
    assert_eq!(sessions_of_calls(&fake).len(), 1, "the MCP session at the server is shared");

    for _ in 0..5 {
        there.call("s__change", json!({})).await;
        let before = fake.requests_of("tools/call").len();
        let rotated = RotateTokenRequest { session: session.clone(), ..Default::default() };
        let token = admin.sessions().rotate_token(rotated).await.unwrap().into_inner().token;
        let answer = there.start_call("s__change", json!({})).await;
        if answer.status == StatusCode::OK {
            let result = answer.message().await["result"].take();
            assert!(text_of(&result).contains("its token was replaced"), "{result}");
        } else {
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        }
        assert_eq!(fake.requests_of("tools/call").len(), before, "a revoked token calls nothing");
        here.set_token(&token);
        there.set_token(&token);
    }
    assert_eq!(here.delete().await, StatusCode::OK);
    eventually("the other replica knows that the MCP session has ended", async || {
        (there.request("ping", &json!({})).await.status == StatusCode::NOT_FOUND).then_some(())
    })
    .await;
    replica.running.signal("TERM");
    assert_eq!(replica.running.ended().await.code(), Some(0), "{}", replica.running.printed());
    gate.stop().await;
}

#[tokio::test]
async fn the_calls_of_a_replica_that_dies_are_interrupted_and_only_those() {
    let mut gate = Gate::start(Options::default()).await;
    let admin = gate.admin();
    let fake = server(vec![writing_tool("change")], |_, _| Some(Reply::raw(vec![Act::Hang]))).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (session, token) = admin.session("all", PermissionMode::Auto).await;
    let here = Engine::connect(&gate, &token).await;
    let mut replica = Replica::start(&gate).await;
    let mut there = Engine::at(&replica.url, &token);
    there.session = here.session.clone();
    let _here = here.start_call("s__change", json!({"at": "here"})).await.events();
    let params = json!({"name": "s__change", "arguments": {"at": "there"}});
    let message = json!({"jsonrpc": "2.0", "id": "there", "method": "tools/call", "params": params});
    let _there = there.post(&message).await.events();
    replica.running.kill();
    let of_session = ListCallsRequest { session: session.clone(), ..Default::default() };
    let calls = crate::support::within(std::time::Duration::from_secs(45), "one call is closed", async || {
        let calls = admin.calls(of_session.clone()).await;
        calls.iter().any(|call| call.outcome() == CallOutcome::Interrupted).then_some(calls)
    })
    .await;
    let outcomes: Vec<_> = calls.iter().map(gatehouse_proto::gateway::v1::Call::outcome).collect();
    assert_eq!(outcomes, [CallOutcome::Interrupted, CallOutcome::Running], "the newest first: {calls:?}");
    gate.stop().await;
}

#[tokio::test]
async fn approvals_policies_and_modes_hold_at_every_replica() {
    let mut gate = Gate::start(Options::default()).await;
    let (admin, people) = (gate.admin(), gate.people());
    let fake = server(vec![reading_tool("echo"), writing_tool("change")], |_, _| None).await;
    admin.listed_server("s", &fake.url(), &[]).await;
    admin.profile("all", &["s"]).await;
    let (session, token) = admin.session("all", PermissionMode::Ask).await;
    let here = Engine::connect(&gate, &token).await;
    let mut replica = Replica::start(&gate).await;
    let mut there = Engine::at(&replica.url, &token);
    there.session = here.session.clone();
    let held = async || there.start_call("s__change", json!({"message": "x"})).await.events();
    let policy = async |policy: Policy| {
        let request = UpdateToolRequest {
            server: "s".into(),
            tool: "change".into(),
            policy: policy.into(),
            ..Default::default()
        };
        admin.tools().update_tool(request).await.unwrap();
    };

    // A yes for the session, given at one, counts at the other with the very next call.
    let events = held().await;
    let card = people.card(&session).await;
    assert!(people.say(&card.id, Decision::ApproveForSession, "").await.unwrap().counted);
    assert_eq!(text_of(&events.answer().await["result"]), "x");
    assert_eq!(text_of(&here.call("s__change", json!({"message": "y"})).await), "y");
    // So does a policy; the card shows it although this replica may not have heard of it when the call came.
    policy(Policy::Confirm).await;
    let events = held().await;
    let card = people.card(&session).await;
    let Some(interaction::Card::Approval(shown)) = &card.card else { panic!("{card:?}") };
    assert_eq!((shown.policy.as_str(), shown.may_remember), ("confirm", false));
    policy(Policy::Deny).await;
    people.becomes(&card.id, InteractionState::Superseded).await;
    let refused = events.answer().await;
    assert!(text_of(&refused["result"]).contains("there is no tool"), "{refused}");
    policy(Policy::Allow).await;
    assert_eq!(text_of(&here.call("s__change", json!({"message": "z"})).await), "z");
    let sent = fake.requests_of("tools/call").len();
    let read_only = UpdateSessionRequest {
        session: session.clone(),
        permission_mode: Some(PermissionMode::ReadOnly.into()),
        ..Default::default()
    };
    admin.sessions().update_session(read_only).await.unwrap();
    let refused = there.call("s__change", json!({"message": "no"})).await;
    assert!(text_of(&refused).contains("there is no tool"), "{refused}");
    assert_eq!(fake.requests_of("tools/call").len(), sent);

    // A replica that dies while it waits: its card is closed, and nothing runs.
    policy(Policy::Confirm).await;
    admin.read_only("s", "change", true).await;
    let _events = held().await;
    let card = people.card(&session).await;
    replica.running.kill();
    people.becomes(&card.id, InteractionState::Interrupted).await;
    assert!(!people.say(&card.id, Decision::Approve, "").await.unwrap().counted);
    assert_eq!(fake.requests_of("tools/call").len(), sent);
    gate.stop().await;
}
