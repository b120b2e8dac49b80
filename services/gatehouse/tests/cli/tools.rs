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
