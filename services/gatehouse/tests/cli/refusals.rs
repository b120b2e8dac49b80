//! What commands say when something is wrong.

use serde_json::Value;

use super::{
    grpc_fake::SMALL_KEY,
    world::{World, finish},
};

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_the_message_says_how_to_start_one() {
    let world = World::new().await;
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let done = world.run(&["server", "list", "--endpoint", &dead.to_string()]).await;
    assert_eq!(done.code, 1);
    assert!(
        done.stderr.contains("cannot be reached") && done.stderr.contains("start it with `gatehouse up`"),
        "{done:?}"
    );
    std::fs::remove_dir_all(world.folder.join(".gatehouse")).unwrap();
    let none = world.run(&["server", "list"]).await;
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
    assert!(none.stderr.contains("start it with `gatehouse up`, or give --endpoint"), "{none:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_good_key_the_message_says_where_it_was_looked_for() {
    let world = World::new().await;
    let with_key = |key: &str| {
        let mut command = world.command(&["server", "list"]);
        command.env("GATEHOUSE_API_KEY", key);
        command
    };
    let unknown = finish(with_key("ghk_unknown")).await;
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("the API key from GATEHOUSE_API_KEY is not known"), "{unknown:?}");
    let small = finish(with_key(SMALL_KEY)).await;
    assert!(small.code == 1 && small.stderr.contains("use a key of scope `admin`"), "{small:?}");
    std::fs::remove_file(world.folder.join(".gatehouse/admin.key")).unwrap();
    let none = world.run(&["server", "list"]).await;
    assert!(none.stderr.contains("no API key was found") && none.stderr.contains("admin.key"), "{none:?}");
    for done in [unknown, small, none] {
        assert!(!format!("{done:?}").contains("ghk_unknown") && !format!("{done:?}").contains(SMALL_KEY));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_folder_is_given_or_found_and_a_key_on_the_command_line_is_warned_of() {
    let world = World::new().await;
    std::fs::rename(world.folder.join(".gatehouse"), world.folder.join("elsewhere")).unwrap();
    assert_eq!(world.run(&["server", "list", "--data", "elsewhere"]).await.code, 0);
    let mut by_variable = world.command(&["server", "list"]);
    by_variable.env("GATEHOUSE_DATA", world.folder.join("elsewhere"));
    assert_eq!(finish(by_variable).await.code, 0);
    let share = world.folder.join(".local/share");
    std::fs::create_dir_all(&share).unwrap();
    std::fs::rename(world.folder.join("elsewhere"), share.join("gatehouse")).unwrap();
    assert_eq!(world.run(&["server", "list"]).await.code, 0);
    let done = world.run(&["server", "list", "--endpoint", &world.endpoint, "--key", "ghk_test"]).await;
    assert!(done.code == 0 && done.stderr.contains("other users of this machine"), "{done:?}");
    assert!(!done.stderr.contains("ghk_test"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_does_not_exist_brings_the_nearest_ones_and_the_list() {
    let world = World::new().await;
    let server = world.run(&["server", "show", "orderz"]).await;
    insta::assert_snapshot!(server.stderr, @"
    error: there is no such server
    next: did you mean `orders`?
    next: `gatehouse server list` shows what there is
    ");
    let profile = world.run(&["session", "create", "--profile", "shp"]).await;
    assert!(profile.code == 1 && profile.stderr.contains("did you mean `shop`?"), "{profile:?}");
    let tool = world.run(&["call", "s-1", "get_order"]).await;
    assert!(tool.code == 1 && tool.stderr.contains("did you mean `orders__get_order`?"), "{tool:?}");
    let setting = world.run(&["settings", "set", "tools.maxNameChar", "60"]).await;
    assert!(setting.stderr.contains("did you mean `tools.maxNameChars`?"), "{setting:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_field_is_on_a_line_and_scripts_get_an_object() {
    let world = World::new().await;
    let arguments = ["server", "add", "x", "ftp://x"];
    let human = world.run(&arguments).await;
    assert_eq!(human.code, 1);
    insta::assert_snapshot!(human.stderr, @r"
    error: two fields are wrong
      url: takes http or https \x1b[2J\x9b31m\u{202e}gone
      name: takes a to z
    ");
    let script = world.run(&[&arguments[..], &["--json"]].concat()).await;
    assert_eq!((script.code, script.stdout.as_str()), (1, ""));
    let error: Value = serde_json::from_str(&script.stderr).unwrap();
    assert_eq!(error["error"]["code"], "INVALID_ARGUMENT");
    assert_eq!(error["error"]["fields"][1]["field"], "name");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_right_is_refused_before_anything_is_sent() {
    let world = World::new().await;
    let cases: &[(&[&str], &str)] = &[
        (&["call", "s-1", "orders__get_order", "[1]"], "not an object"),
        (&["call", "s-1", "orders__get_order", "{"], "not JSON"),
        (&["server", "remove", "orders"], "add --yes"),
        (&["server", "update", "orders"], "nothing to change"),
        (&["server", "add", "x", "http://x", "--request-timeout", "20"], "a number and a unit"),
        (&["server", "add", "x", "http://x", "--header-env", "A=NOT_SET"], "NOT_SET"),
        (&["audit", "list", "--since", "yesterday"], "RFC 3339"),
        (&["profile", "add", "x", "--server", "a:"], "names of tools"),
        (&["tools", "set", "orders", "get_order"], "nothing to change"),
        (&["session", "update", "s-1"], "nothing to change"),
        (&["session", "token", "revoke", "s-1"], "required"),
        (&["settings", "set", "a"], "needs a value"),
        (&["server", "list", "--ca", "x.pem"], "for https endpoints"),
    ];
    for (arguments, words) in cases {
        let done = world.run(arguments).await;
        assert_eq!(done.code, 2, "{arguments:?} {done:?}");
        assert!(done.stderr.contains(words) && done.stdout.is_empty(), "{arguments:?} {done:?}");
    }
    assert!(world.fake.seen("").is_empty(), "{:?}", world.fake.seen(""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_in_use_says_who_uses_it() {
    let world = World::new().await;
    let done = world.run(&["profile", "remove", "shop"]).await;
    assert!(done.code == 1 && done.stderr.contains("gatehouse session list --profile shop"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_https_endpoint_is_trusted_by_its_authority_only() {
    let world = World::new().await;
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let endpoint = world.fake.serve_tls(&signed.cert.pem(), &signed.signing_key.serialize_pem()).await;
    world.write("ca.pem", &signed.cert.pem());
    let arguments = ["server", "list", "--endpoint", &endpoint, "--data", ".gatehouse"];
    let trusted = world.run(&[&arguments[..], &["--ca", "ca.pem"]].concat()).await;
    assert_eq!(trusted.code, 0, "{trusted:?}");
    let unknown = world.run(&arguments).await;
    assert!(unknown.code == 1 && unknown.stderr.contains("give --ca"), "{unknown:?}");
    let missing = world.run(&[&arguments[..], &["--ca", "none.pem"]].concat()).await;
    assert!(missing.code == 1 && missing.stderr.contains("cannot read none.pem"), "{missing:?}");
}
