//! Two gateways on one database.

use std::{collections::HashMap, process::Command};

use gatehouse_proto::{
    gateway::v1::{
        CallOutcome, ListCallsRequest, PermissionMode, Policy, ProfileServer, RotateTokenRequest, UpdateProfileRequest,
        UpdateSessionRequest, UpdateToolRequest,
    },
    interaction::v1::{Decision, InteractionState, interaction},
};
use gatehouse_testkit::{
    eventually,
    mcp_server::{Act, FakeServer, Reply},
};
use http::StatusCode;
use serde_json::json;

use crate::support::{
    Engine, Gate, Options,
    admin_grpc::Admin,
    cards::People,
    engine::{Events, text_of},
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

/// Two gateways, a server with a tool that changes things, and a session in mode `ask` with an engine at each.
struct Pair {
    gate: Gate,
    admin: Admin,
    people: People,
    fake: FakeServer,
    session: String,
    here: Engine,
    replica: Replica,
    there: Engine,
}

impl Pair {
    async fn start() -> Self {
        let gate = Gate::start(Options::default()).await;
        let (admin, people) = (gate.admin(), gate.people());
        let fake = server(vec![reading_tool("echo"), writing_tool("change")], |_, _| None).await;
        admin.listed_server("s", &fake.url(), &[]).await;
        admin.profile("all", &["s"]).await;
        let (session, token) = admin.session("all", PermissionMode::Ask).await;
        let here = Engine::connect(&gate, &token).await;
        let replica = Replica::start(&gate).await;
        let mut there = Engine::at(&replica.url, &token);
        there.session.clone_from(&here.session);
        Self { gate, admin, people, fake, session, here, replica, there }
    }

    /// A call at the second gateway that waits for its card.
    async fn held(&self) -> Events {
        self.there.start_call("s__change", json!({"message": "x"})).await.events()
    }

    async fn policy(&self, policy: Policy) {
        let request = UpdateToolRequest {
            server: "s".into(),
            tool: "change".into(),
            policy: policy.into(),
            ..Default::default()
        };
        self.admin.tools().update_tool(request).await.unwrap();
    }

    async fn mode(&self, mode: PermissionMode) {
        let request = UpdateSessionRequest {
            session: self.session.clone(),
            permission_mode: Some(mode.into()),
            ..Default::default()
        };
        self.admin.sessions().update_session(request).await.unwrap();
    }

    async fn only(&self, tool: &str) {
        let member = ProfileServer { server: "s".into(), tools: vec![tool.into()], only_tools: true };
        let request = UpdateProfileRequest { profile: "all".into(), set_servers: vec![member], ..Default::default() };
        self.admin.profiles().update_profile(request).await.unwrap();
    }

    /// The very next call at the second gateway finds no such tool, and nothing goes out.
    async fn assert_there_is_no_tool(&self) {
        let sent = self.fake.requests_of("tools/call").len();
        let refused = self.there.call("s__change", json!({"message": "no"})).await;
        assert!(text_of(&refused).contains("there is no tool"), "{refused}");
        assert_eq!(self.fake.requests_of("tools/call").len(), sent);
    }
}

#[tokio::test]
async fn an_approval_or_a_policy_counts_at_every_replica_with_the_next_call() {
    let mut pair = Pair::start().await;
    let events = pair.held().await;
    let card = pair.people.card(&pair.session).await;
    assert!(pair.people.say(&card.id, Decision::ApproveForSession, "").await.unwrap().counted);
    assert_eq!(text_of(&events.answer().await["result"]), "x");
    assert_eq!(text_of(&pair.here.call("s__change", json!({"message": "y"})).await), "y");

    pair.policy(Policy::Confirm).await;
    let events = pair.held().await;
    let card = pair.people.card(&pair.session).await;
    let Some(interaction::Card::Approval(shown)) = &card.card else { panic!("{card:?}") };
    assert_eq!((shown.policy.as_str(), shown.may_remember), ("confirm", false));
    pair.policy(Policy::Deny).await;
    pair.people.becomes(&card.id, InteractionState::Superseded).await;
    let refused = events.answer().await;
    assert!(text_of(&refused["result"]).contains("there is no tool"), "{refused}");
    pair.policy(Policy::Allow).await;
    assert_eq!(text_of(&pair.there.call("s__change", json!({"message": "z"})).await), "z");
    pair.gate.stop().await;
}

#[tokio::test]
async fn a_mode_or_a_profile_counts_at_every_replica_with_the_next_call() {
    let mut pair = Pair::start().await;
    pair.policy(Policy::Allow).await;
    assert_eq!(text_of(&pair.there.call("s__change", json!({"message": "x"})).await), "x");
    pair.mode(PermissionMode::ReadOnly).await;
    pair.assert_there_is_no_tool().await;
    pair.mode(PermissionMode::Ask).await;
    assert_eq!(text_of(&pair.there.call("s__change", json!({"message": "y"})).await), "y");
    pair.only("echo").await;
    pair.assert_there_is_no_tool().await;
    pair.only("change").await;
    assert_eq!(text_of(&pair.there.call("s__change", json!({"message": "z"})).await), "z");
    pair.gate.stop().await;
}

#[tokio::test]
async fn the_card_of_a_replica_that_dies_is_closed_and_its_call_never_runs() {
    let mut pair = Pair::start().await;
    let _events = pair.held().await;
    let card = pair.people.card(&pair.session).await;
    pair.replica.running.kill();
    pair.people.becomes(&card.id, InteractionState::Interrupted).await;
    assert!(!pair.people.say(&card.id, Decision::Approve, "").await.unwrap().counted);
    assert!(pair.fake.requests_of("tools/call").is_empty());
    pair.gate.stop().await;
}

#[tokio::test]
async fn an_answer_that_comes_after_the_replica_died_counts_for_nothing() {
    let mut pair = Pair::start().await;
    let _events = pair.held().await;
    let card = pair.people.card(&pair.session).await;
    pair.replica.running.kill();
    // Nobody can know yet that the replica is gone.
    pair.people.approve(&card.id).await;
    let closed = pair.people.becomes(&card.id, InteractionState::Interrupted).await;
    assert_eq!(closed.approval_answer.unwrap().decision(), Decision::Approve, "what the person said is kept");
    let call = pair.admin.ended_call("change").await;
    assert_eq!((call.outcome(), call.decision.as_str()), (CallOutcome::Interrupted, "interrupted"), "{call:?}");
    assert!(pair.fake.requests_of("tools/call").is_empty());
    pair.gate.stop().await;
}
