//! How processes end, and that nothing stays behind.

use std::{fs, process::Stdio, time::Duration};

use gatehouse_stdio::{Sandboxes, Spec};
use gatehouse_testkit::eventually;
use secrecy::SecretString;

use crate::{Folder, Running, perl, processes_with};

/// Set in the process that is to be killed: the folder.
const OWNER: &str = "GATEHOUSE_TEST_STDIO_OWNER";
/// A family of three, one of which has left the group, the session and its parent, and ignores every signal that can be ignored.
const FAMILY: &str = r#"
    $SIG{TERM} = $SIG{HUP} = $SIG{INT} = 'IGNORE';
    for (1..2) { if (!fork()) { setpgrp(0, 0); exit if fork(); open(STDIN, '<', '/dev/null'); close STDOUT; close STDERR; sleep 1000; exit } }
    print "ready\n"; sleep 1000;
"#;

fn family(mark: &str) -> Spec {
    let mut spec = perl("family", FAMILY);
    spec.args.push(mark.to_owned());
    spec
}

fn mark(folder: &Folder) -> String {
    folder.0.file_name().unwrap().to_str().unwrap().to_owned() + "-mark"
}

async fn all_are_gone(mark: &str) {
    eventually("nothing of it is left", async || processes_with(mark).is_empty().then_some(())).await;
}

#[tokio::test]
async fn one_that_is_stopped_is_gone_with_all_its_children() {
    let folder = Folder::new();
    let (sandboxes, mark) = (Sandboxes::new(folder.0.join("stdio")), mark(&folder));
    let mut running = Running::start(&sandboxes, family(&mark)).await;
    assert_eq!(running.line().await, "ready");
    assert!(processes_with(&mark).len() >= 3, "{:?}", processes_with(&mark));
    let exit = running.process.stop(Duration::from_millis(100)).await;
    assert_eq!((exit.words.as_str(), exit.by_us), ("it was stopped", true));
    all_are_gone(&mark).await;
}

#[tokio::test]
async fn one_that_is_let_go_of_is_gone_too_trusted_or_not() {
    for trusted in [false, true] {
        let folder = Folder::new();
        let (sandboxes, mark) = (Sandboxes::new(folder.0.join("stdio")), mark(&folder));
        let mut running = Running::start(&sandboxes, Spec { trusted, ..family(&mark) }).await;
        assert_eq!(running.line().await, "ready");
        drop(running);
        all_are_gone(&mark).await;
    }
}

#[tokio::test]
async fn one_ends_well_when_its_input_is_closed_or_it_is_asked_to() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    let polite = perl(
        "polite",
        "$SIG{TERM} = sub { print STDERR \"asked\\n\"; exit 0 }; print \"ready\\n\"; while (1) { sleep 1000 }",
    );
    for trusted in [false, true] {
        let mut running = Running::start(&sandboxes, Spec { trusted, ..polite.clone() }).await;
        assert_eq!(running.line().await, "ready");
        running.process.stop(Duration::from_secs(2)).await;
        assert_eq!(running.process.stderr_tail(), ["asked"]);
    }
    let mut reader =
        Running::start(&sandboxes, perl("reader", "print \"ready\\n\"; <STDIN>; print STDERR \"closed\\n\";")).await;
    assert_eq!(reader.line().await, "ready");
    let Running { process, _input, output: _output } = reader;
    drop(_input);
    process.stop(Duration::from_secs(5)).await;
    assert_eq!(process.stderr_tail(), ["closed"]);
}

#[tokio::test]
async fn a_crash_is_told_with_its_status_and_last_words_without_secrets() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    let mut spec = perl("crash", r#"print STDERR "cannot log in with $ENV{API_KEY}\n"; exit 3;"#);
    spec.env = vec![("API_KEY".to_owned(), SecretString::from("planted-key-1"))];
    let running = Running::start(&sandboxes, spec.clone()).await;
    let exit = running.process.ended().await;
    assert_eq!((exit.words.as_str(), exit.by_us), ("it ended with exit status 3", false));
    assert_eq!(running.process.stderr_tail(), ["cannot log in with •••"]);
    assert!(!format!("{spec:?} {:?}", running.process).contains("planted"));
    let aborted = Running::start(&sandboxes, perl("abort", "kill 6, $$; sleep 10;")).await;
    // The sandbox's first process tells of a signal as a shell does.
    assert_eq!(aborted.process.ended().await.words, "it ended with exit status 134");
    let missing = Running::start(&sandboxes, Spec { program: "no-such-program".into(), ..perl("none", "") }).await;
    assert!(!missing.process.ended().await.by_us);
    assert!(missing.process.stderr_tail().concat().contains("no-such-program"), "{:?}", missing.process.stderr_tail());
}

/// Runs this test in a process of its own, which starts the family and waits to be killed.
#[tokio::test]
async fn when_the_owner_is_killed_nothing_stays_behind() {
    if let Ok(folder) = std::env::var(OWNER) {
        let sandboxes = Sandboxes::new(folder.into());
        for trusted in [false, true] {
            let spec = Spec { trusted, name: format!("family-{trusted}"), ..family(&std::env::var("MARK").unwrap()) };
            let mut running = Running::start(&sandboxes, spec).await;
            assert_eq!(running.line().await, "ready");
            std::mem::forget(running);
        }
        fs::write(std::env::var("READY").unwrap(), "").unwrap();
        return std::future::pending().await;
    }
    let folder = Folder::new();
    let (mark, ready) = (mark(&folder), folder.0.join("ready"));
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "ends::when_the_owner_is_killed_nothing_stays_behind", "--nocapture"]);
    command.env(OWNER, folder.0.join("stdio")).env("MARK", &mark).env("READY", &ready).stdout(Stdio::null());
    let mut owner = command.kill_on_drop(true).spawn().unwrap();
    eventually("both families run", async || {
        assert_eq!(owner.try_wait().unwrap(), None);
        ready.exists().then_some(())
    })
    .await;
    assert!(processes_with(&mark).len() >= 6);
    owner.kill().await.unwrap();
    all_are_gone(&mark).await;
}

#[tokio::test]
async fn many_starts_and_stops_leave_nothing_behind() {
    let folder = Folder::new();
    let (sandboxes, mark) = (Sandboxes::new(folder.0.join("stdio")), mark(&folder));
    let files = || fs::read_dir("/proc/self/fd").unwrap().count();
    let cycles = std::env::var("GATEHOUSE_STDIO_CYCLES").map_or(25, |cycles| cycles.parse().unwrap());
    let cycle = async || {
        let mut spec = perl("cycle", "print \"ready\\n\"; <STDIN>;");
        spec.args.push(mark.clone());
        let mut running = Running::start(&sandboxes, spec).await;
        assert_eq!(running.line().await, "ready");
        running.process.stop(Duration::ZERO).await;
    };
    cycle().await;
    let before = files();
    for _ in 0..cycles {
        cycle().await;
    }
    all_are_gone(&mark).await;
    eventually("every file is closed", async || (files() <= before).then_some(())).await;
    let threads = fs::read_dir("/proc/self/task").unwrap().count();
    assert!(threads < 24, "{threads}");
}
