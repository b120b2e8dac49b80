//! `files`: what is listed, and what is written where.

use super::{grpc_fake_files::CONTENT, world::World};

#[tokio::test(flavor = "multi_thread")]
async fn files_are_listed_with_where_they_are() {
    let world = World::new().await;
    insta::assert_snapshot!(world.run(&["files", "s-1"]).await.stdout, @r"
    TIME                 SERVER  TOOL    SIZE  TYPE                                  WHERE      PATH
    2026-11-30 00:53:20  orders  export  12 B  text/plain\x1b[2J\x9b31m\u{202e}gone  workspace  .agent/mcp/c-1/a.txt
    2026-11-30 00:53:20  orders  export  12 B  text/plain\x1b[2J\x9b31m\u{202e}gone  platform   .agent/mcp/c-1/b.txt
    ");
    assert_eq!(world.run(&["files"]).await.code, 2);
    assert_eq!(world.run(&["files", "get", "s-1"]).await.code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_to_its_name_and_replaces_another_only_by_force() {
    let world = World::new().await;
    let get = ["files", "get", "s-1", ".agent/mcp/c-1/a.txt"];
    let done = world.run(&get).await;
    assert_eq!((done.code, done.stdout.as_str()), (0, "Wrote a.txt (12 B).\n"));
    assert_eq!(world.read("a.txt"), CONTENT);
    world.write("a.txt", "mine");
    let refused = world.run(&get).await;
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("is there already") && refused.stderr.contains("--force"), "{refused:?}");
    assert_eq!(world.read("a.txt"), b"mine");
    assert_eq!(world.run(&[&get[..], &["--force"]].concat()).await.code, 0);
    assert_eq!(world.read("a.txt"), CONTENT);
    assert_eq!(world.run(&[&get[..], &["--out", "other.txt"]].concat()).await.code, 0);
    assert_eq!(world.read("other.txt"), CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_as_it_is_into_a_pipe() {
    let world = World::new().await;
    let get = ["files", "get", "s-1", ".agent/mcp/c-1/a.txt", "--out", "-"];
    let done = world.run(&get).await;
    assert_eq!((done.code, done.stdout.as_bytes()), (0, CONTENT));
    assert_eq!(world.run(&[&get[..], &["--json"]].concat()).await.code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_does_not_come_whole_leaves_nothing_and_what_was_there_stays() {
    let world = World::new().await;
    for path in ["gone", "broken", "cut"] {
        let before = world.names();
        let failed = world.run(&["files", "get", "s-1", path]).await;
        assert_eq!(failed.code, 1, "{path} {failed:?}");
        assert_eq!(world.names(), before, "{path}");
        world.write("mine", "mine");
        let failed = world.run(&["files", "get", "s-1", path, "--out", "mine", "--force"]).await;
        assert_eq!(failed.code, 1, "{path} {failed:?}");
        assert_eq!(world.read("mine"), b"mine");
    }
}
