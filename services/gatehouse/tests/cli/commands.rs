//! What commands do and print when the gateway answers.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::{
    grpc_fake::TOKEN,
    world::{World, finish},
};

/// Every command of the administrator, with arguments that the fake takes, and its exit code.
const EVERY: &[(&[&str], i32)] = &[
    (&["server", "add", "orders", "https://o.example/mcp"], 0),
    (&["server", "update", "orders", "--description", "x"], 0),
    (&["server", "update", "orders", "--mask", "/a", "--remove-mask", "t:/b"], 0),
    (&["server", "list"], 0),
    (&["server", "show", "orders"], 0),
    (&["server", "test", "orders"], 0),
    (&["server", "test", "broken"], 1),
    (&["server", "refresh", "orders"], 0),
    (&["server", "enable", "orders"], 0),
    (&["server", "disable", "orders"], 0),
    (&["server", "remove", "orders", "--yes"], 0),
    (&["server", "import", "mcp.json"], 3),
    (&["tools", "list"], 0),
    (&["tools", "list", "--schema"], 0),
    (&["tools", "list", "--session", "s-1"], 0),
    (&["tools", "list", "--session", "s-1", "--schema"], 0),
    (&["tools", "set", "orders", "get_order", "--read-only", "true", "--destructive", "unset"], 0),
    (&["tools", "set", "orders", "get_order", "--policy", "confirm"], 0),
    (&["tools", "--risks"], 0),
    (&["tools", "list", "orders", "--risks"], 0),
    (&["tools", "acknowledge", "orders", "--yes"], 0),
    (&["profile", "add", "shop", "--server", "orders", "--server", "crm:find"], 0),
    (&["profile", "list"], 0),
    (&["profile", "show", "shop"], 0),
    (&["profile", "update", "shop", "--remove-server", "crm"], 0),
    (&["session", "create", "--profile", "shop", "--engine", "claude-code"], 0),
    (&["session", "config", "s-1"], 0),
    (&["session", "list"], 0),
    (&["session", "show", "s-1"], 0),
    (&["session", "update", "s-1", "--mode", "auto"], 0),
    (&["session", "delete", "s-1"], 0),
    (&["session", "token", "list", "s-1"], 0),
    (&["session", "token", "issue", "s-1", "--actor", "bot"], 0),
    (&["session", "token", "revoke", "s-1", "t-1"], 0),
    (&["session", "rotate-token", "s-1"], 0),
    (&["session", "run", "begin", "s-1"], 0),
    (&["session", "run", "end", "r-1"], 0),
    (&["session", "tools-version", "s-1"], 0),
    (&["call", "s-1", "orders__get_order", "{}"], 0),
    (&["call", "s-1", "orders__fails"], 4),
    (&["cards"], 0),
    (&["cards", "--state", "all", "--session", "s-1"], 0),
    (&["cards", "show", "open"], 0),
    (&["cards", "show", "answered"], 0),
    (&["answer", "open", "approve"], 0),
    (&["answer", "open", "approve-for-session", "--as", "Ada"], 0),
    (&["answer", "open", "deny", "--reason", "no"], 0),
    (&["answer", "answered", "deny"], 1),
    (&["audit", "list", "--since", "1h", "--outcome", "tool-error"], 0),
    (&["audit", "show", "c-1"], 0),
    (&["files", "s-1"], 0),
    (&["files", "get", "s-1", ".agent/mcp/c-1/a.txt", "--force"], 0),
    (&["settings", "list"], 0),
    (&["settings", "set", "tools.maxNameChars", "60"], 0),
    (&["settings", "reset", "tools.maxNameChars"], 0),
    (&["keys", "list"], 0),
    (&["keys", "create", "chat", "--scope", "sessions"], 0),
    (&["keys", "revoke", "k-1"], 0),
];

const FILE: &str = r#"{"mcpServers":{
  "docs":{"type":"http","url":"https://d.example/mcp?key=hidden","headers":{"Authorization":"Bearer hidden"}},
  "Orders":{"type":"http","url":"https://o.example/mcp"},
  "files":{"command":"npx","args":["hidden"]}}}"#;

fn is_obeyed_by_a_terminal(character: char) -> bool {
    (character.is_control() && character != '\n') || character == '\u{202e}'
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_answers_in_both_forms_and_nothing_from_a_server_reaches_the_terminal_as_a_command() {
    let world = World::new().await;
    world.write("mcp.json", FILE);
    for (arguments, code) in EVERY {
        let human = world.run(arguments).await;
        assert_eq!(human.code, *code, "{arguments:?} {human:?}");
        assert!(human.stdout.ends_with('\n'), "{arguments:?} {human:?}");
        assert!(!human.stdout.contains(is_obeyed_by_a_terminal), "{arguments:?} {human:?}");
        assert!(!human.stderr.contains(is_obeyed_by_a_terminal), "{arguments:?} {human:?}");
        let script = world.run(&[arguments, &["--json"][..]].concat()).await;
        assert_eq!(script.code, *code, "{arguments:?} {script:?}");
        assert!(script.json().is_object() && script.stderr.is_empty(), "{arguments:?} {script:?}");
        assert!(!script.stdout.contains(is_obeyed_by_a_terminal), "{arguments:?} {script:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_listed_over_all_pages_aligned_with_what_is_wrong_below() {
    let world = World::new().await;
    insta::assert_snapshot!(world.run(&["server", "list"]).await.stdout, @r"
    NAME    STATE    TOOLS  URL
    crm     failing  4      https://crm.example/mcp
    orders  healthy  4      https://orders.example/mcp

    crm  refused \x1b[2J\x9b31m\u{202e}gone
    ");
    let document = world.run(&["server", "list", "--json"]).await.json();
    assert_eq!((&document["servers"][0]["name"], &document["servers"][1]["name"]), (&"crm".into(), &"orders".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_that_of_proto3_with_every_field_and_without_dangerous_characters() {
    let world = World::new().await;
    insta::assert_snapshot!(world.run(&["server", "show", "orders", "--json"]).await.stdout, @r#"
    {
      "server": {
        "id": "id-orders",
        "name": "orders",
        "description": "\u001b[2J\u009b31m\u202egone",
        "enabled": true,
        "streamableHttp": {
          "url": "https://orders.example/mcp",
          "headerNames": [
            "Authorization"
          ]
        },
        "connectTimeout": "20s",
        "requestTimeout": "600s",
        "maxConcurrency": 256,
        "status": {
          "state": "SERVER_STATE_HEALTHY",
          "message": "",
          "protocolVersion": "",
          "serverName": "\u001b[2J\u009b31m\u202egone",
          "serverVersion": "",
          "capabilitiesJson": ""
        },
        "toolCount": 4,
        "createdAt": "2026-11-30T00:53:20Z",
        "maskRules": []
      }
    }
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_added_with_secrets_that_are_sent_and_never_shown() {
    let world = World::new().await;
    world.write("secret.txt", "hidden-file\n");
    let arguments = ["server", "add", "orders", "https://o.example/mcp", "--header", "X-One: hidden-plain"];
    let more = ["--header-env", "Authorization=AUTH", "--header-file", "X-Two=secret.txt", "--request-timeout", "2m"];
    let mut command = world.command(&[&arguments[..], &more[..]].concat());
    command.env("AUTH", "Bearer hidden-env");
    let done = finish(command).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!format!("{done:?}").contains("hidden"), "{done:?}");
    insta::assert_snapshot!(done.stdout, @r"
    Registered orders.
      ok  address  1.5 ms  127.0.0.1
      Calls itself:  orders \x1b[2J\x9b31m\u{202e}gone
      Offers:        4 tools
    It works.
    ");
    let seen = &world.fake.seen("CreateServerRequest")[0];
    for sent in ["hidden-plain", "Bearer hidden-env", "\"hidden-file\"", "\"120s\""] {
        assert!(seen.contains(sent), "{sent} {seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_its_test_is_added_all_the_same_and_the_words_say_so() {
    let world = World::new().await;
    let done = world.run(&["server", "add", "broken", "https://b.example/mcp"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    insta::assert_snapshot!(done.stdout, @r"
    Registered broken.
      ok      address  1.5 ms  127.0.0.1
      FAILED  connect  1.5 ms  nothing listens there \x1b[2J\x9b31m\u{202e}gone (CONNECTION_REFUSED)
    It does not work.
    It is registered, but it does not work yet. Mend what the last step says, then run
      gatehouse server test broken
    ");
    let off = world.run(&["server", "add", "later", "https://l.example/mcp", "--disabled"]).await;
    assert!(off.stdout.contains("switched off") && world.fake.seen("TestServerRequest").len() == 1, "{off:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_takes_what_it_can_says_what_it_left_out_and_shows_no_secret() {
    let world = World::new().await;
    world.write("mcp.json", FILE);
    let dry = world.run(&["server", "import", "mcp.json", "--dry-run"]).await;
    assert_eq!((dry.code, world.fake.seen("CreateServerRequest").len()), (3, 0), "{dry:?}");
    let done = world.run(&["server", "import", "mcp.json"]).await;
    assert_eq!(done.code, 3, "{done:?}");
    assert!(!format!("{done:?}").contains("hidden\""), "{done:?}");
    insta::assert_snapshot!(done.stdout, @"
             NAME    URL                                  FROM
    added    docs    https://d.example/mcp (rest hidden)  mcp.json
    skipped  orders  https://o.example/mcp                mcp.json
    skipped  files                                        mcp.json
      orders: `orders` is registered already; --update changes it
      files: stdio servers (started as a process) are not imported: say what each may use, with `gatehouse server add NAME --stdio -- PROGRAM`
    1 added, 0 updated, 2 skipped, 0 failed.
    ");
    assert!(world.fake.seen("CreateServerRequest")[0].contains("Bearer hidden"));
    let update = world.run(&["server", "import", "mcp.json", "--update", "--json"]).await;
    assert_eq!(update.json()["entries"][1]["result"], "updated", "{update:?}");
    assert_eq!(world.fake.seen("UpdateServerRequest").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_comes_with_its_token_once_and_the_engines_configuration() {
    let world = World::new().await;
    let done = world.run(&["session", "create", "--profile", "shop", "--engine", "codex"]).await;
    insta::assert_snapshot!(done.stdout, @r#"
    Session: s-1
    MCP URL: http://127.0.0.1:7300/mcp
    Token:   ghs_token   (shown only now; it is stored as a hash)

    # Put this into ~/.codex/config.toml; without its last line Codex asks before it calls some of the tools:
    [mcp_servers.gatehouse]
    url = "http://127.0.0.1:7300/mcp"
    bearer_token_env_var = "GATEHOUSE_TOKEN"
    required = true
    tool_timeout_sec = 90000
    default_tools_approval_mode = "approve"

    # and give Codex the token:
    export GATEHOUSE_TOKEN=ghs_token
    "#);
    let again = world.run(&["session", "config", "s-1", "--engine", "claude-code"]).await;
    assert!(again.stdout.contains("Bearer <token>") && !again.stdout.contains(TOKEN), "{again:?}");
    let document = world.run(&["session", "create", "--profile", "shop", "--json"]).await.json();
    assert_eq!((&document["token"], &document["config"]["engine"]), (&TOKEN.into(), &"other".into()), "{document}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_shows_progress_on_standard_error_and_the_result_on_standard_output() {
    let world = World::new().await;
    world.write("arguments.json", "{\"id\":\"A-1\"}");
    let arguments = ["call", "s-1", "orders__get_order", "@arguments.json", "--actor", "bot", "--out", "saved"];
    let done = world.run(&arguments).await;
    insta::assert_snapshot!(format!("{}---\n{}", done.stdout, done.stderr), @r"
    order A-1 \x1b[2J\x9b31m\u{202e}gone
    [image: image/png, 4 B; saved as saved/c-1-2.png]
    ---
    1/2 (50 %) half \x1b[2J\x9b31m\u{202e}gone
    ");
    assert_eq!(std::fs::read(world.folder.join("saved/c-1-2.png")).unwrap(), [0x89, b'P', b'N', b'G']);
    let seen = &world.fake.seen("CallToolRequest")[0];
    assert!(seen.contains(r#"actor: "bot""#) && seen.contains(r#"{\"id\":\"A-1\"}"#), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_come_from_standard_input_too() {
    let world = World::new().await;
    let mut command = world.command(&["call", "s-1", "orders__fails", "-", "--json"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{\"id\":1}").await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(world.fake.seen("CallToolRequest")[0].contains(r#"{\"id\":1}"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_cancels_the_call() {
    let world = World::new().await;
    let mut child = world.command(&["call", "s-1", "slow"]).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let limit = Duration::from_secs(20);
    let first = tokio::time::timeout(limit, stderr.next_line()).await.unwrap().unwrap().unwrap();
    assert!(first.starts_with("1/2 (50 %) half"), "{first}");
    let id = child.id().unwrap().to_string();
    assert!(tokio::process::Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    tokio::time::timeout(limit, world.fake.cancelled.notified()).await.unwrap();
    let status = tokio::time::timeout(limit, child.wait()).await.unwrap().unwrap();
    let last = tokio::time::timeout(limit, stderr.next_line()).await.unwrap().unwrap();
    assert_eq!((status.code(), last.as_deref()), (Some(130), Some("error: cancelled by Ctrl-C")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_cut_at_its_limit_and_says_that_there_is_more() {
    let world = World::new().await;
    let done = world.run(&["audit", "list", "--limit", "1", "--server", "orders"]).await;
    insta::assert_snapshot!(done.stdout, @"
    TIME                 SERVER  TOOL       OUTCOME     TOOK     SIZE    CALL
    2026-11-30 00:53:20  orders  get_order  tool-error  12.3 ms  1.5 KB  c-1
    There are more; --limit or --all shows them.
    ");
    let document = world.run(&["audit", "list", "--limit", "1", "--json"]).await.json();
    assert_eq!((document["calls"].as_array().unwrap().len(), &document["more"]), (1, &true.into()), "{document}");
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_and_help_need_no_server() {
    let world = World::new().await;
    std::fs::remove_dir_all(world.folder.join(".gatehouse")).unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let done = world.run(&["completions", shell]).await;
        assert!(done.code == 0 && done.stdout.contains("rotate-token"), "{done:?}");
    }
    let help = world.run(&["help", "server", "import"]).await;
    assert!(help.code == 0 && help.stdout.contains("Examples:"), "{help:?}");
}
