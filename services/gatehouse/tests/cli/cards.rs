//! Cards on the command line.

use std::time::Duration;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    time::timeout,
};

use super::world::World;

const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn cards_are_listed_over_all_pages_and_a_session_is_found_by_its_external_id() {
    let world = World::new().await;
    let done = world.run(&["cards", "--state", "all", "--session", "chat-1"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines[0].starts_with("CARD      SESSION  SERVER  TOOL"), "{done:?}");
    assert!(lines[1].starts_with(r"open      s-1      orders  refund \x1b[2J\x9b31m\u{202e}gone  open"), "{done:?}");
    assert!(lines[1].ends_with('…') && lines[2].contains("answered: deny"), "{done:?}");
    let seen = &world.fake.seen("ListInteractionsRequest")[0];
    assert!(seen.contains(r#"session_id: "s-1""#), "{seen}");
    let open = world.run(&["cards", "--limit", "1", "--json"]).await;
    assert_eq!((open.json()["interactions"].as_array().unwrap().len(), &open.json()["more"]), (1, &true.into()));
    assert!(world.fake.seen("ListInteractionsRequest")[2].contains("state: Open"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_a_deleted_session_stands_for_itself_and_another_unknown_one_is_refused() {
    let world = World::new().await;
    let deleted = "0198f1c2-0000-7000-8000-000000000000";
    assert_eq!(world.run(&["cards", "--session", deleted]).await.code, 0);
    assert!(world.fake.seen("ListInteractionsRequest")[0].contains(deleted));
    let unknown = world.run(&["cards", "--session", "01-chat"]).await;
    assert!(unknown.code == 1 && unknown.stderr.contains("gatehouse session list"), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_shown_with_everything_that_matters_for_the_answer() {
    let world = World::new().await;
    let done = world.run(&["cards", "show", "answered"]).await;
    insta::assert_snapshot!(done.stdout, @r#"
    Card:     answered
    State:    answered: deny
    Server:   orders
    Tool:     refund \x1b[2J\x9b31m\u{202e}gone
    Title:    Refund an order \x1b[2J\x9b31m\u{202e}gone
    It:       may destroy something
    Besides:  reaches beyond its server; twice may do more than once
    Policy:   ask: can be approved for the rest of the session
    Session:  s-1
    Actor:    default actor
    Call:     c-1
    Made:     2026-11-30 00:53:20
    Closed:   2026-11-30 00:53:40
    Answer:       deny
    Reason:       not this one \x1b[2J\x9b31m\u{202e}gone
    Answered by:  Ada \x1b[2J\x9b31m\u{202e}gone
    Answered:     2026-11-30 00:53:40
    Arguments (52 B):
      {
        "order": "A-1 \u001b[2J\u009b31m\u202egone",
        "amount": 12.500,
        "lines": [
          1,
          2
        ]
      }
    "#);
    let document = world.run(&["cards", "show", "open", "--json"]).await.json();
    assert_eq!(document["interaction"]["state"], "INTERACTION_STATE_OPEN");
    let long = world.run(&["cards", "show", "long"]).await;
    assert!(long.stdout.contains("only the beginning of the arguments: the whole has 30.0 KB"), "{long:?}");
    let unknown = world.run(&["cards", "show", "nothing"]).await;
    assert!(unknown.code == 1 && unknown.stderr.contains("`gatehouse cards` shows those"), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_sent_as_given_and_one_that_does_not_count_says_why_and_fails() {
    let world = World::new().await;
    let done = world.run(&["answer", "open", "deny", "--reason", "ask first", "--as", "Ada"]).await;
    assert_eq!((done.code, done.stdout.as_str()), (0, "Denied: the call does not go out, and the model is told.\n"));
    let seen = &world.fake.seen("AnswerInteractionRequest")[0];
    for part in ["decision: Deny", r#"reason: "ask first""#, r#"answered_by: "Ada""#] {
        assert!(seen.contains(part), "{part} {seen}");
    }
    let late = world.run(&["answer", "answered", "approve"]).await;
    assert_eq!(late.code, 1, "{late:?}");
    insta::assert_snapshot!(late.stdout, @r"
    The card was answered before; your answer changed nothing.
    Answer:       deny
    Reason:       not this one \x1b[2J\x9b31m\u{202e}gone
    Answered by:  Ada \x1b[2J\x9b31m\u{202e}gone
    Answered:     2026-11-30 00:53:40
    ");
    let script = world.run(&["answer", "answered", "approve", "--json"]).await;
    assert_eq!((script.code, &script.json()["counted"]), (1, &false.into()), "{script:?}");
    let unknown = world.run(&["answer", "nothing", "approve"]).await;
    assert!(unknown.code == 1 && unknown.stderr.contains("there is no such card"), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_terminal_or_with_a_reason_that_goes_nowhere_is_a_wrong_command_line() {
    let world = World::new().await;
    for (arguments, words) in [
        (&["answer", "open"][..], "add the answer"),
        (&["answer", "open", "approve", "--reason", "x"], "goes with `deny`"),
        (&["answer", "open", "yes"], "possible values"),
        (&["cards", "--follow", "--state", "all"], "cannot be used with"),
    ] {
        let done = world.run(arguments).await;
        assert!(done.code == 2 && done.stderr.contains(words) && done.stdout.is_empty(), "{arguments:?} {done:?}");
    }
    assert!(world.fake.seen("").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateways_endpoint_alone_is_not_enough_and_the_message_says_what_to_give() {
    let world = World::new().await;
    let other = std::sync::Arc::clone(&world.fake).serve().await;
    let key = ["--data", ".gatehouse"];
    let alone = world.run(&[&["cards", "--endpoint", &other], &key[..]].concat()).await;
    assert_eq!(alone.code, 2);
    assert!(alone.stderr.contains("give --interaction-endpoint (GATEHOUSE_INTERACTION_ENDPOINT) too"), "{alone:?}");
    let both = ["cards", "--endpoint", &world.endpoint, "--interaction-endpoint", &other];
    assert_eq!(world.run(&[&both[..], &key].concat()).await.code, 0);
    // The folder's gateway knows nothing of another interaction's sessions.
    let session = ["cards", "--interaction-endpoint", &other, "--session", "chat-1"];
    let lost = world.run(&[&session[..], &key].concat()).await;
    assert!(lost.code == 2 && lost.stderr.contains("give --endpoint (GATEHOUSE_ENDPOINT) too"), "{lost:?}");
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let silent = world.run(&[&["cards", "--interaction-endpoint", &dead], &key[..]].concat()).await;
    assert!(silent.code == 1 && silent.stderr.contains("or give --interaction-endpoint"), "{silent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn following_goes_on_when_the_server_comes_back_says_what_was_missed_and_nothing_twice() {
    let world = World::new().await;
    let mut child = world.command(&["cards", "--follow", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let line = timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
        let card: Value = serde_json::from_str(&line).unwrap();
        seen.push(format!("{} {}", card["id"].as_str().unwrap(), card["state"].as_str().unwrap()));
    }
    assert_eq!(
        seen,
        ["open INTERACTION_STATE_OPEN", "open INTERACTION_STATE_ANSWERED", "other INTERACTION_STATE_OPEN"]
    );
    let id = child.id().unwrap().to_string();
    assert!(tokio::process::Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    let status = timeout(LIMIT, child.wait()).await.unwrap().unwrap();
    let rest = timeout(LIMIT, lines.next_line()).await.unwrap().unwrap();
    assert_eq!((status.code(), rest), (Some(130), None));
}
