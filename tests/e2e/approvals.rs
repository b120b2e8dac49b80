//! Calls that a person must approve, from the engine to the server and back.

mod ends;

use std::time::Duration;

use gatehouse_proto::{
    gateway::v1::{
        self as pb, BeginRunRequest, CallOutcome, GetSessionRequest, ListCallsRequest, ListGrantsRequest,
        PermissionMode, RevokeGrantsRequest, RunState, ToolHints, UpdateSessionRequest, UpdateToolRequest,
    },
    interaction::v1::{Decision, InteractionState, interaction},
};
use gatehouse_testkit::{eventually, mcp_server::FakeServer};
use serde_json::{Value, json};

use crate::support::{
    Engine, Gate, Options,
    admin_grpc::Admin,
    cards::People,
    engine::{Events, text_of},
    fakes::{reading_tool, server, writing_tool},
    within,
};

/// A gate, a server that counts, and a session in mode `ask`.
struct Stage {
    gate: Gate,
    admin: Admin,
    people: People,
    fake: FakeServer,
    session: String,
    engine: Engine,
}

fn destructive(name: &str) -> Value {
    let mut tool = writing_tool(name);
    tool["annotations"] = json!({"destructiveHint": true, "readOnlyHint": true});
    tool
}

impl Stage {
    async fn set() -> Self {
        Self::set_with(Options::default(), PermissionMode::Ask).await
    }

    async fn set_with(options: Options, mode: PermissionMode) -> Self {
        let gate = Gate::start(options).await;
        let (admin, people) = (gate.admin(), gate.people());
        let fake = server(vec![reading_tool("echo"), writing_tool("change"), destructive("drop")], |_, _| None).await;
        admin.listed_server("s", &fake.url(), &[]).await;
        admin.profile("all", &["s"]).await;
        let (session, token) = admin.session("all", mode).await;
        let engine = Engine::connect(&gate, &token).await;
        Self { gate, admin, people, fake, session, engine }
    }

    /// A call that waits for its card.
    async fn held(&self, tool: &str, message: &str) -> Events {
        let arguments = json!({"message": message, "password": "hunter-22-planted"});
        self.engine.call_with_progress(tool, arguments, json!("p")).await.events()
    }

    fn sent(&self) -> usize {
        self.fake.requests_of("tools/call").len()
    }

    async fn audit(&self, tool: &str) -> pb::Call {
        self.admin.ended_call(tool).await
    }

    async fn policy(&self, tool: &str, policy: &str) {
        let request = UpdateToolRequest {
            server: "s".into(),
            tool: tool.into(),
            policy: policy_of(policy),
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
}

fn policy_of(word: &str) -> i32 {
    let policy = pb::Policy::from_str_name(&format!("POLICY_{}", word.to_ascii_uppercase())).unwrap();
    policy.into()
}

fn error_of(answer: &Value) -> String {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    text_of(&answer["result"]).to_owned()
}

#[tokio::test]
async fn a_call_is_held_until_it_is_approved_and_goes_out_once() {
    let mut stage = Stage::set().await;
    let begin = BeginRunRequest { session: stage.session.clone(), ..Default::default() };
    stage.admin.sessions().begin_run(begin).await.unwrap();
    let run = async || {
        let request = GetSessionRequest { session: stage.session.clone() };
        let mut runs = stage.admin.sessions().get_session(request).await.unwrap().into_inner().open_runs;
        runs.remove(0)
    };
    assert_eq!(run().await.state(), RunState::Running);
    assert_eq!(text_of(&stage.engine.call("s__echo", json!({"message": "free"})).await), "free", "reading asks nobody");

    let mut events = stage.held("s__change", "held").await;
    let progress = events.message().await.unwrap().data;
    let card = stage.people.card(&stage.session).await;
    let told = progress["params"]["message"].as_str().unwrap();
    assert_eq!(progress["params"]["progressToken"], "p");
    assert!(told.contains("waiting for approval of s__change"), "{told}");
    assert!(told.contains(&format!("gatehouse answer {} approve", card.id)), "it says how to answer: {told}");
    assert_eq!(run().await.state(), RunState::WaitingInput);
    assert_eq!(card.run_id, run().await.id);
    assert_eq!((card.server.as_str(), card.tool.as_str()), ("s", "change"));
    let Some(interaction::Card::Approval(shown)) = &card.card else { panic!("{card:?}") };
    assert!(shown.may_remember && !shown.read_only && !shown.destructive && shown.policy == "ask", "{shown:?}");
    assert!(shown.arguments_json.contains("held") && !shown.arguments_json.contains("hunter-22"), "{shown:?}");
    assert_eq!(stage.sent(), 1, "nothing went out");
    let waiting = stage.admin.calls(ListCallsRequest { tool: "change".into(), ..Default::default() }).await;
    assert!(waiting.len() <= 1 && waiting.iter().all(|call| call.outcome() == CallOutcome::Running), "{waiting:?}");

    stage.people.approve(&card.id).await;
    let answer = events.answer().await;
    assert_eq!(text_of(&answer["result"]), "held");
    assert_eq!(stage.sent(), 2, "once");
    assert_eq!(run().await.state(), RunState::Running);
    let call = stage.audit("change").await;
    assert_eq!((call.outcome(), call.decision.as_str()), (CallOutcome::Ok, "approved"), "{call:?}");
    assert_eq!((call.decided_by.as_str(), call.interaction_id.as_str()), ("ann@example.com", card.id.as_str()));
    assert_eq!((call.policy.as_str(), call.permission_mode.as_str()), ("ask", "ask"));
    assert_eq!((call.id.as_str(), call.decided_at.is_some()), (card.call_id.as_str(), true));

    // A second answer gets the first one back.
    let again = stage.people.say(&card.id, Decision::Deny, "too late").await.unwrap();
    assert!(!again.counted);
    assert_eq!(again.interaction.unwrap().approval_answer.unwrap().decision(), Decision::Approve);
    // An approval is used once.
    let second = stage.held("s__change", "held").await;
    let next = stage.people.card(&stage.session).await;
    assert_ne!(next.id, card.id);
    stage.people.approve(&next.id).await;
    second.answer().await;
    stage.gate.stop().await;
}

#[tokio::test]
async fn a_person_sees_and_answers_cards_in_a_terminal() {
    let mut stage = Stage::set().await;
    let (first, second) = (stage.held("s__change", "one").await, stage.held("s__drop", "two").await);
    let cards = stage.people.open(&stage.session, 2).await;
    let listed = stage.gate.command(&["cards", "--session", &stage.session]).await;
    for card in &cards {
        assert!(listed.contains(&card.id) && listed.contains(&card.tool), "{listed}");
        let shown = stage.gate.command(&["cards", "show", &card.id]).await;
        assert!(shown.contains("message") && !shown.contains("hunter-22"), "{shown}");
    }
    let of = |tool: &str| cards.iter().find(|card| card.tool == tool).unwrap().id.clone();
    stage.gate.command(&["answer", &of("change"), "approve"]).await;
    stage.gate.command(&["answer", &of("drop"), "deny", "--reason", "keep it"]).await;
    assert_eq!(text_of(&first.answer().await["result"]), "one");
    assert!(error_of(&second.answer().await).contains("keep it"));
    assert_eq!(stage.sent(), 1);
    assert!(!stage.gate.command(&["cards", "--session", &stage.session]).await.contains(&of("drop")));
    stage.gate.stop().await;
}

#[tokio::test]
async fn a_denied_call_never_goes_out_and_the_model_gets_the_reason() {
    let mut stage = Stage::set().await;
    for (reason, expected) in [("wrong order, take 17", "wrong order, take 17"), ("", "ask the user how to go on")] {
        let events = stage.held("s__change", "no").await;
        let card = stage.people.card(&stage.session).await;
        assert!(stage.people.say(&card.id, Decision::Deny, reason).await.unwrap().counted);
        let text = error_of(&events.answer().await);
        assert!(text.contains(expected) && text.contains("Nothing was carried out"), "{text}");
        let call = stage.audit("change").await;
        assert_eq!((call.outcome(), call.decision.as_str()), (CallOutcome::Denied, "denied"));
        assert_eq!(call.decided_by, "ann@example.com");
    }
    assert_eq!(stage.sent(), 0);
    stage.gate.stop().await;
}

#[tokio::test]
async fn an_approval_for_the_session_counts_until_it_is_taken_back_or_the_tool_changes() {
    let mut stage = Stage::set().await;
    let events = stage.held("s__change", "1").await;
    let card = stage.people.card(&stage.session).await;
    assert!(stage.people.say(&card.id, Decision::ApproveForSession, "").await.unwrap().counted);
    events.answer().await;
    let first = stage.audit("change").await;
    assert_eq!(first.decision, "approved_for_session");
    assert_eq!(text_of(&stage.engine.call("s__change", json!({"message": "2"})).await), "2");
    let second = eventually("the second call has ended", async || {
        let call = stage.audit("change").await;
        (call.id != first.id).then_some(call)
    })
    .await;
    assert_eq!((second.decision.as_str(), second.decided_by.as_str()), ("granted", "ann@example.com"));
    let list = async || {
        let request = ListGrantsRequest { session: stage.session.clone() };
        stage.admin.sessions().list_grants(request).await.unwrap().into_inner().grants
    };
    let grants = list().await;
    assert_eq!((grants.len(), grants[0].tool.as_str()), (1, "change"));
    assert_eq!(grants[0].interaction_id, card.id);

    // Another session asks for itself.
    let (other, token) = stage.admin.session("all", PermissionMode::Ask).await;
    let stranger = Engine::connect(&stage.gate, &token).await;
    let held = stranger.start_call("s__change", json!({})).await.events();
    let card = stage.people.card(&other).await;
    stage.people.say(&card.id, Decision::Deny, "").await.unwrap();
    held.answer().await;

    // Policy `confirm` does not care.
    stage.policy("change", "confirm").await;
    let events = stage.held("s__change", "3").await;
    let card = stage.people.card(&stage.session).await;
    let Some(interaction::Card::Approval(shown)) = &card.card else { panic!("{card:?}") };
    assert!(!shown.may_remember);
    let refused = stage.people.say(&card.id, Decision::ApproveForSession, "").await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused:?}");
    stage.people.approve(&card.id).await;
    events.answer().await;
    stage.policy("change", "ask").await;
    assert_eq!(text_of(&stage.engine.call("s__change", json!({"message": "4"})).await), "4", "still granted");

    let revoke = RevokeGrantsRequest { session: stage.session.clone(), grant_id: grants[0].id.clone() };
    assert_eq!(stage.admin.sessions().revoke_grants(revoke).await.unwrap().into_inner().revoked, 1);
    let events = stage.held("s__change", "5").await;
    let card = stage.people.card(&stage.session).await;
    stage.people.say(&card.id, Decision::Deny, "").await.unwrap();
    error_of(&events.answer().await);
    assert!(list().await.is_empty());
    stage.gate.stop().await;
}

#[tokio::test]
async fn destructive_beats_read_only_and_is_confirmed_in_every_mode() {
    let mut stage = Stage::set_with(Options::default(), PermissionMode::Auto).await;
    assert_eq!(text_of(&stage.engine.call("s__change", json!({"message": "auto"})).await), "auto");
    for mode in [PermissionMode::Auto, PermissionMode::Ask, PermissionMode::ReadOnly] {
        stage.mode(mode).await;
        let events = stage.held("s__drop", "all").await;
        let card = stage.people.card(&stage.session).await;
        let Some(interaction::Card::Approval(shown)) = &card.card else { panic!("{card:?}") };
        assert!(shown.destructive && shown.policy == "confirm" && !shown.may_remember, "{mode:?} {shown:?}");
        stage.people.approve(&card.id).await;
        assert_eq!(text_of(&events.answer().await["result"]), "all");
    }
    let names = within(Duration::from_secs(5), "only reading tools are listed", async || {
        let names = stage.engine.names().await;
        (names.len() == 2).then_some(names)
    })
    .await;
    assert_eq!(names, ["s__echo", "s__drop"]);
    assert!(error_of(&json!({"result": stage.engine.call("s__change", json!({})).await})).contains("no tool"));
    stage.gate.stop().await;
}

#[tokio::test]
async fn terms_that_move_close_the_card_and_open_one_fresh_one() {
    let mut stage = Stage::set().await;
    let events = stage.held("s__change", "x").await;
    let first = stage.people.card(&stage.session).await;
    let set = Some(ToolHints { idempotent: Some(true), ..Default::default() });
    let request = UpdateToolRequest { server: "s".into(), tool: "change".into(), set, ..Default::default() };
    stage.admin.tools().update_tool(request).await.unwrap();
    let old = stage.people.becomes(&first.id, InteractionState::Superseded).await;
    assert!(old.approval_answer.is_none());
    let second = stage.people.card(&stage.session).await;
    let Some(interaction::Card::Approval(shown)) = &second.card else { panic!("{second:?}") };
    assert!(second.id != first.id && shown.idempotent && second.call_id == first.call_id);
    // Too late for the old one: nobody approves what they did not see.
    assert!(!stage.people.say(&first.id, Decision::Approve, "").await.unwrap().counted);
    assert_eq!(stage.sent(), 0);

    // Policy `confirm`: a fresh card once more. Then a mode in which nobody is asked does not help; then policy `allow` does.
    stage.policy("change", "confirm").await;
    stage.people.becomes(&second.id, InteractionState::Superseded).await;
    let third = stage.people.card(&stage.session).await;
    stage.policy("change", "allow").await;
    stage.people.becomes(&third.id, InteractionState::Superseded).await;
    assert_eq!(text_of(&events.answer().await["result"]), "x", "nobody needs to be asked any more");
    assert_eq!(stage.sent(), 1);
    assert_eq!(stage.audit("change").await.decision, "allowed");
    stage.policy("change", "ask").await;

    // A tool that is denied while its card is open.
    let events = stage.held("s__change", "y").await;
    let card = stage.people.card(&stage.session).await;
    stage.policy("change", "deny").await;
    stage.people.becomes(&card.id, InteractionState::Superseded).await;
    assert!(error_of(&events.answer().await).contains("no tool `s__change`"));
    assert_eq!(stage.sent(), 1);
    assert!(stage.people.open(&stage.session, 0).await.is_empty());
    stage.gate.stop().await;
}

/// What is stored is not what was asked, whoever changed it: nobody has approved this call.
#[tokio::test]
async fn an_answer_to_other_arguments_or_terms_counts_for_nothing() {
    let mut stage = Stage::set().await;
    for column in ["arguments_sha256", "terms_sha256"] {
        let events = stage.held("s__change", column).await;
        let card = stage.people.card(&stage.session).await;
        let change = format!("UPDATE interactions SET {column} = sha256({column}) WHERE id = '{}'", card.id);
        sqlx::raw_sql(sqlx::AssertSqlSafe(change)).execute(&stage.gate.database.pool()).await.unwrap();
        stage.people.approve(&card.id).await;
        assert!(error_of(&events.answer().await).contains("Nothing was carried out"));
        stage.people.becomes(&card.id, InteractionState::Superseded).await;
    }
    assert_eq!(stage.sent(), 0);
    stage.gate.stop().await;
}

#[tokio::test]
async fn two_identical_calls_are_two_cards() {
    let mut stage = Stage::set().await;
    let (one, other) = tokio::join!(stage.held("s__change", "same"), stage.held("s__change", "same"));
    let cards = stage.people.open(&stage.session, 2).await;
    assert_ne!(cards[0].call_id, cards[1].call_id);
    stage.people.approve(&cards[0].id).await;
    stage.people.say(&cards[1].id, Decision::Deny, "once is enough").await.unwrap();
    let answers = tokio::join!(one.answer(), other.answer());
    let errors = [&answers.0, &answers.1].map(|answer| answer["result"]["isError"] == true);
    assert_eq!(errors.iter().filter(|error| **error).count(), 1);
    assert_eq!(stage.sent(), 1);
    stage.gate.stop().await;
}

#[tokio::test]
async fn a_session_in_chinese_is_spoken_to_in_chinese() {
    let mut stage = Stage::set().await;
    let update =
        UpdateSessionRequest { session: stage.session.clone(), locale: Some("zh-CN".into()), ..Default::default() };
    stage.admin.sessions().update_session(update).await.unwrap();
    let mut events = within(Duration::from_secs(5), "the language counts", async || {
        let mut events = stage.held("s__change", "x").await;
        let told = events.message().await.unwrap().data["params"]["message"].as_str().unwrap().to_owned();
        let card = stage.people.card(&stage.session).await;
        if told.contains("正在等待批准 s__change") {
            return Some((events, card));
        }
        stage.people.say(&card.id, Decision::Deny, "").await.unwrap();
        events.answer().await;
        None
    })
    .await;
    stage.people.say(&events.1.id, Decision::Deny, "数量不对").await.unwrap();
    let text = error_of(&events.0.answer().await);
    assert!(text.contains("用户没有批准这次调用") && text.contains("数量不对"), "{text}");
    events.1 = stage.people.get(&events.1.id).await;
    stage.gate.stop().await;
}
