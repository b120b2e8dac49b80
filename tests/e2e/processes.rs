//! Servers that are programs, in their sandbox, behind the gateway.

use std::{collections::HashMap, path::Path, time::Duration};

use gatehouse_proto::gateway::v1 as pb;
use gatehouse_testkit::eventually;
use serde_json::json;

use crate::support::{Engine, Gate, Options, admin_grpc::Admin, engine::text_of, process::Folder, within};

const SECRET: &str = "planted-environment-4471";

/// A gate with the odd server as `p`, and an engine in a session of mode `auto`.
struct Stage {
    gate: Gate,
    admin: Admin,
    engine: Engine,
    home: Folder,
}

/// The program's source, where only root may be.
fn script() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/e2e/servers/odd_server.pl");
    path.canonicalize().unwrap().display().to_string()
}

fn odd() -> pb::StdioCommand {
    let script = script();
    let stdio = pb::Stdio {
        program: "perl".to_owned(),
        args: vec![script.clone()],
        open: vec![pb::OpenedPath { path: script, write: false }],
        ..pb::Stdio::default()
    };
    pb::StdioCommand { stdio: Some(stdio), env: HashMap::from([("SECRET".to_owned(), SECRET.to_owned())]) }
}

impl Stage {
    async fn set(variables: Vec<(&'static str, String)>) -> Self {
        let home = Folder::new();
        let mut all = vec![("GATEHOUSE_STDIO_HOME", home.path().join("stdio").display().to_string())];
        all.extend(variables);
        let gate = Gate::start(Options { variables: all }).await;
        let admin = gate.admin();
        let request = pb::CreateServerRequest { name: "p".into(), stdio: Some(odd()), ..Default::default() };
        admin.servers().create_server(request).await.unwrap();
        let refresh = pb::RefreshServerRequest { server: "p".into() };
        admin.servers().refresh_server(refresh).await.unwrap();
        admin.profile("all", &["p"]).await;
        let (_, token) = admin.session("all", pb::PermissionMode::Auto).await;
        let engine = Engine::connect(&gate, &token).await;
        Self { gate, admin, engine, home }
    }

    async fn other_engine(&self) -> Engine {
        let (_, token) = self.admin.session("all", pb::PermissionMode::Auto).await;
        Engine::connect(&self.gate, &token).await
    }

    async fn process(&self) -> pb::ServerProcess {
        self.admin.show("p").await.process.unwrap()
    }

    /// What `env` says after this word.
    async fn env(&self, word: &str) -> String {
        let told = self.engine.call("p__env", json!({})).await;
        let mut words = text_of(&told).split(' ').skip_while(|found| *found != word);
        words.nth(1).unwrap_or_else(|| panic!("{told}")).to_owned()
    }
}

/// Processes of the odd server of this test, anywhere on the machine. Bubblewrap names the home; a sandboxed program has it mounted, and
/// a trusted one has it in its environment.
fn left(home: &Folder) -> Vec<u32> {
    let mark = home.path().file_name().unwrap().to_str().unwrap().to_owned();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: u32, name: &str| {
        let file = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&file).contains(&mark)
    };
    let is_program = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("bwrap") || line.contains("odd_server.pl")
    };
    pids.filter(|pid| is_program(*pid) && ["cmdline", "mountinfo", "environ"].iter().any(|name| holds(*pid, name)))
        .collect()
}

#[tokio::test]
async fn one_process_serves_all_sessions_and_a_call_that_hangs_holds_up_no_other() {
    let mut stage = Stage::set(Vec::new()).await;
    let other = stage.other_engine().await;
    let hanging = stage.engine.start_call("p__hang", json!({"message": "h"})).await;
    for (engine, said) in [(&stage.engine, "one"), (&other, "two"), (&stage.engine, "three")] {
        assert_eq!(text_of(&engine.call("p__echo", json!({"message": said})).await), said);
    }
    let mut first = stage.engine.call_with_progress("p__report", json!({"message": "mine"}), json!("a")).await.events();
    let mut second = other.call_with_progress("p__report", json!({"message": "theirs"}), json!("a")).await.events();
    for (events, said) in [(&mut first, "mine"), (&mut second, "theirs")] {
        let progress = events.message().await.unwrap().data;
        assert_eq!((&progress["params"]["message"], &progress["params"]["progressToken"]), (&json!(said), &json!("a")));
    }
    assert_eq!(stage.env("starts").await, "1");
    assert_eq!(stage.process().await.starts, 1);
    assert!(stage.process().await.running);
    drop(hanging);
    stage.gate.stop().await;
    assert!(left(&stage.home).is_empty());
}

#[tokio::test]
async fn a_program_sees_its_own_home_and_secrets_and_nothing_of_the_gateways() {
    let mut stage = Stage::set(Vec::new()).await;
    assert_eq!((stage.env("home").await, stage.env("secret").await), ("/server".to_owned(), SECRET.to_owned()));
    let told = stage.engine.call("p__env", json!({})).await.to_string();
    assert!(!told.contains("GATEHOUSE") && !told.contains("DATABASE"), "{told}");
    let server = stage.admin.show("p").await;
    assert!(!format!("{server:?}").contains(SECRET), "{server:?}");
    // Two pipes: which line is read first is not told.
    let lines = eventually("both lines are kept", async || {
        let mut lines = stage.process().await.stderr;
        lines.sort();
        (lines.len() >= 2).then_some(lines)
    })
    .await;
    assert_eq!(lines, ["started with •••", "this line is no message"]);
    let Some(pb::server::Transport::Stdio(stdio)) = server.transport else { panic!("{:?}", server.transport) };
    assert_eq!((stdio.program.as_str(), stdio.env_names), ("perl", vec!["SECRET".to_owned()]));
    let shown = stage.gate.command(&["server", "show", "p"]).await;
    assert!(
        shown.contains("odd_server.pl") && shown.contains("started with •••") && !shown.contains(SECRET),
        "{shown}"
    );
    stage.gate.stop().await;
    assert!(!stage.gate.printed().contains(SECRET));
}

#[tokio::test]
async fn a_crash_in_mid_call_is_told_and_the_next_call_finds_a_fresh_process() {
    let mut stage = Stage::set(Vec::new()).await;
    let pid = stage.env("pid").await;
    let told = stage.engine.call("p__die", json!({"message": "goodbye"})).await;
    let text = text_of(&told);
    assert_eq!(told["isError"], true);
    assert!(text.contains("ended while the call ran: it ended with exit status 3"), "{text}");
    assert!(text.contains("may or may not have been carried out") && !text.contains("goodbye"), "{text}");
    let call = stage.admin.ended_call("die").await;
    assert_eq!((call.outcome(), call.retries), (pb::CallOutcome::Unknown, 0));
    let process = eventually("its end is noted", async || {
        let process = stage.process().await;
        (!process.last_exit.is_empty()).then_some(process)
    })
    .await;
    assert_eq!((process.running, process.last_exit.as_str()), (false, "it ended with exit status 3"));
    assert_eq!(process.stderr.last().unwrap(), "last words: goodbye");
    // The next call waits for the short pause, and is served.
    assert_eq!(text_of(&stage.engine.call("p__echo", json!({"message": "again"})).await), "again");
    assert_eq!((stage.env("starts").await.as_str(), stage.process().await.starts), ("2", 2));
    assert_ne!(pid, "");
    // One that dies again and again is not started for each call: the pauses grow, and the model is told.
    let refused = within(Duration::from_mins(1), "a pause is too long to be waited for", async || {
        stage.engine.call("p__die", json!({"message": "x"})).await;
        let told = stage.engine.call("p__echo", json!({"message": "x"})).await;
        let text = text_of(&told).to_owned();
        text.contains("started again in").then_some(text)
    })
    .await;
    assert!(refused.contains("has ended by itself") && refused.contains("Nothing was carried out"), "{refused}");
    stage.gate.stop().await;
    assert!(left(&stage.home).is_empty());
}

#[tokio::test]
async fn a_process_is_stopped_when_idle_or_switched_off_and_keeps_its_home() {
    let mut stage = Stage::set(Vec::new()).await;
    assert_eq!(stage.env("starts").await, "1");
    stage.admin.set(&[("upstream.idleCloseSec", json!(5))]).await;
    within(Duration::from_secs(40), "it is stopped", async || (!stage.process().await.running).then_some(())).await;
    eventually("nothing of it is left", async || left(&stage.home).is_empty().then_some(())).await;
    assert_eq!(stage.process().await.last_exit, "", "it did not end by itself");
    assert_eq!(stage.env("starts").await, "2", "its home is the same");
    let off = pb::UpdateServerRequest { server: "p".into(), enabled: Some(false), ..Default::default() };
    stage.admin.servers().update_server(off).await.unwrap();
    within(Duration::from_secs(20), "it is stopped", async || left(&stage.home).is_empty().then_some(())).await;
    stage.gate.stop().await;
}

#[tokio::test]
async fn when_the_gateway_is_killed_its_programs_end_and_a_new_one_takes_over() {
    let mut stage = Stage::set(Vec::new()).await;
    assert_eq!(stage.env("starts").await, "1");
    assert!(!left(&stage.home).is_empty());
    stage.gate.kill9();
    eventually("nothing of it is left", async || left(&stage.home).is_empty().then_some(())).await;
    stage.gate.restart().await;
    assert_eq!(text_of(&stage.engine.call("p__echo", json!({"message": "again"})).await), "again");
    stage.gate.stop().await;
}

#[tokio::test]
async fn a_program_that_is_no_server_is_reported_in_words_and_a_change_counts_from_the_next_call() {
    let mut stage = Stage::set(Vec::new()).await;
    let broken = pb::Stdio {
        program: "sh".into(),
        args: vec!["-c".into(), "echo cannot do >&2; exit 4".into()],
        ..Default::default()
    };
    let test = pb::TestServerRequest {
        stdio: Some(pb::StdioCommand { stdio: Some(broken.clone()), env: HashMap::new() }),
        ..Default::default()
    };
    let report = stage.admin.servers().test_server(test).await.unwrap().into_inner();
    let step = report.steps.last().unwrap();
    assert_eq!((report.ok, step.name.as_str(), step.reason.as_str()), (false, "process", "NOT_STARTED"));
    assert!(step.message.contains("exit status 4") && step.message.contains("cannot do"), "{step:?}");
    let good = pb::TestServerRequest { stdio: Some(odd()), ..Default::default() };
    let report = stage.admin.servers().test_server(good).await.unwrap().into_inner();
    assert!(report.ok && report.tools == Some(5), "{report:?}");
    let homes = std::fs::read_dir(stage.home.path().join("stdio/homes")).unwrap().count();
    assert_eq!(homes, 1, "what was tried leaves no home");

    assert_eq!(text_of(&stage.engine.call("p__echo", json!({"message": "before"})).await), "before");
    let update = pb::UpdateServerRequest { server: "p".into(), stdio: Some(broken), ..Default::default() };
    stage.admin.servers().update_server(update).await.unwrap();
    let told = within(Duration::from_secs(10), "the change counts", async || {
        let told = stage.engine.call("p__echo", json!({"message": "after"})).await;
        (told["isError"] == true).then(|| text_of(&told).to_owned())
    })
    .await;
    assert!(told.contains("cannot be used now"), "{told}");
    stage.gate.stop().await;
}

#[tokio::test]
async fn an_admin_adds_a_program_by_the_command_and_a_trusted_one_is_marked_everywhere() {
    let home = Folder::new();
    let variables = vec![("GATEHOUSE_STDIO_HOME", home.path().join("stdio").display().to_string())];
    let mut gate = Gate::start(Options { variables }).await;
    let script = script();
    let added = gate
        .command(&["server", "add", "odd", "--stdio", "--env", "SECRET=x", "--open", &script, "--", "perl", &script])
        .await;
    assert!(added.contains("Registered odd") && added.contains("5 tools") && added.contains("It works."), "{added}");
    let trusted = gate.command(&["server", "add", "sure", "--stdio", "--trusted", "--", "perl", &script]).await;
    assert!(trusted.contains("It works."), "{trusted}");
    for words in [gate.command(&["server", "list"]).await, gate.command(&["server", "show", "sure"]).await] {
        assert!(words.contains("TRUSTED, runs without a sandbox"), "{words}");
    }
    assert!(gate.printed().contains("a trusted program is started without a sandbox"));
    gate.stop().await;
    eventually("nothing is left", async || left(&home).is_empty().then_some(())).await;
}
