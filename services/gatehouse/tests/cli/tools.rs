//! `tools`: what is asked of the gateway, and what people see.

use super::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn the_list_says_what_counts_and_who_says_so() {
    let world = World::new().await;
    insta::assert_snapshot!(world.run(&["tools", "list"]).await.stdout, @r"
    TOOL              POLICY    HINTS                   DESCRIPTION
    orders get_order  confirm*  read-only* open-world~  Reads an order \x1b[2J\x9b31m\u{202e}gone

    * set by an admin, ~ declared by nobody
    ");
    let whole = world.run(&["tools", "list", "--schema"]).await.stdout;
    assert!(whole.contains("confirm (set by an admin; from its hints: allow)"), "{whole}");
    assert!(whole.contains("read-only (admin), open-world (default)"), "{whole}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_chosen_and_taken_back_in_the_same_request_as_hints() {
    let world = World::new().await;
    world.run(&["tools", "set", "orders", "x", "--policy", "deny", "--read-only", "false"]).await;
    world.run(&["tools", "set", "orders", "x", "--policy", "unset", "--idempotent", "unset"]).await;
    let seen = world.fake.seen("UpdateToolRequest");
    assert!(seen[0].contains(r#""policy":"POLICY_DENY""#) && seen[0].contains(r#""readOnly":false"#), "{seen:?}");
    assert!(seen[1].contains(r#""clear":["idempotent","policy"]"#), "{seen:?}");
    let refused = world.run(&["tools", "set", "orders", "x", "--policy", "never"]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn risks_are_shown_with_what_was_and_what_is_and_nothing_of_them_is_obeyed() {
    let world = World::new().await;
    let short = world.run(&["tools", "--risks"]).await.stdout;
    insta::assert_snapshot!(short, @r"
    orders get_order  changed since it was acknowledged 2026-11-30 00:53:20 by ada
      looser hint          /annotations/readOnlyHint  (nothing) → true
      instructs the model  /description               You must \x1b[2J\x9b31m\u{202e}gone
    ");
    assert_eq!(short, world.run(&["tools", "list", "--risks"]).await.stdout);
    assert!(world.fake.seen("ListToolsRequest").iter().all(|seen| seen.contains(r#""riskyOnly":true"#)));
    let both = world.run(&["tools", "--risks", "list"]).await;
    assert_eq!(both.code, 2, "{both:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_is_what_was_listed_and_only_after_a_yes() {
    let world = World::new().await;
    let unasked = world.run(&["tools", "acknowledge", "orders"]).await;
    assert_eq!(unasked.code, 2, "{unasked:?}");
    assert!(unasked.stderr.contains("--yes") && world.fake.seen("AcknowledgeToolsRequest").is_empty(), "{unasked:?}");
    let done = world.run(&["tools", "acknowledge", "orders", "get_order", "--yes"]).await;
    assert_eq!((done.code, done.stdout.as_str()), (0, "Acknowledged 1 tool.\n"), "{done:?}");
    let seen = world.fake.seen("AcknowledgeToolsRequest");
    assert!(seen[0].contains(r#""tools":[{"name":"get_order","fingerprint":"ab12"}]"#), "{seen:?}");
    let unknown = world.run(&["tools", "acknowledge", "orders", "nope", "--yes"]).await;
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(unknown.stderr.contains("there is no tool `nope`"), "{unknown:?}");
}
