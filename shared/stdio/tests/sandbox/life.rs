//! How programs end, and that nothing of them is left.

use std::{
    os::unix::process::ExitStatusExt as _,
    process::{Command, Stdio},
    time::Duration,
};

use gatehouse_stdio::{Spec, Status, Tier, Why};
use tokio::io::AsyncWriteExt as _;

use crate::world::{PROGRAMS, World, is_alive, line, open_up, program, until, with_word};

const ALL: [Tier; 3] = [Tier::Strong, Tier::Weak, Tier::Trusted];
const GRACE: Duration = Duration::from_millis(500);
/// How long a program has that ends by itself.
const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn what_is_written_comes_back_and_the_end_of_the_input_ends_it() {
    for tier in ALL {
        let world = World::new(tier);
        let process = world.start(&["echo"]).await;
        let (mut input, mut output) = process.take_pipes().expect("its pipes");
        assert_eq!(line(&mut output).await, "ready");
        input.write_all(b"hello\n").await.expect("it listens");
        assert_eq!(line(&mut output).await, "hello");
        until("its use is measured", || process.usage().memory_bytes > 0 && process.usage().processes == 1).await;
        drop(input);
        let exit = process.ended().await;
        assert_eq!((exit.status, exit.why), (Status::Code(0), None), "{tier:?}: {exit}");
    }
}

#[tokio::test]
async fn a_stopped_program_leaves_no_descendant_not_even_one_that_went_its_own_way() {
    for (number, tier) in ALL.into_iter().enumerate() {
        let world = World::new(tier);
        let seconds = format!("{}9{}", number + 1, std::process::id());
        let process = world.start(&["orphan", &seconds]).await;
        let (input, mut output) = process.take_pipes().expect("its pipes");
        assert_eq!(line(&mut output).await, "orphaned 0", "{:?}", process.stderr_tail());
        until("the orphan runs", || !with_word(&seconds).is_empty()).await;
        drop(input);
        let exit = process.stop(GRACE).await;
        assert_eq!(with_word(&seconds), Vec::<u32>::new(), "{tier:?}: {exit}");
    }
}

#[tokio::test]
async fn the_descendants_of_a_program_that_has_ended_by_itself_are_gone_too() {
    for (number, tier) in ALL.into_iter().enumerate() {
        let world = World::new(tier);
        let seconds = format!("{}8{}", number + 1, std::process::id());
        let process = world.start(&["orphan", &seconds]).await;
        let (input, mut output) = process.take_pipes().expect("its pipes");
        assert_eq!(line(&mut output).await, "orphaned 0", "{:?}", process.stderr_tail());
        drop(input);
        process.ended().await;
        assert_eq!(with_word(&seconds), Vec::<u32>::new(), "{tier:?}");
    }
}

#[tokio::test]
async fn who_does_not_listen_is_killed_after_the_grace_and_who_drops_it_kills_it() {
    for tier in ALL {
        let world = World::new(tier);
        let script = "trap '' TERM; exec \"$0\" deaf";
        let hostile = world.path("programs/gatehouse-stdio-hostile");
        let spec = Spec { program: "sh".into(), ..world.spec(&["-c", script, &hostile]) };
        let process = world.start_spec(spec).await.unwrap_or_else(|error| panic!("{error}"));
        let (_input, mut output) = process.take_pipes().expect("its pipes");
        assert_eq!(line(&mut output).await, "ready");
        let exit = process.stop(GRACE).await;
        assert_eq!((exit.status, exit.why), (Status::Signal(9), Some(Why::Stopped)), "{tier:?}");
        let dropped = world.start(&["echo"]).await;
        let pid = dropped.pid();
        assert!(is_alive(pid));
        drop(dropped);
        until("it is gone", || !is_alive(pid)).await;
    }
}

#[tokio::test]
async fn a_crash_is_told_with_its_signal_and_a_status_with_its_number() {
    for tier in ALL {
        let world = World::new(tier);
        for (script, status) in [("kill -SEGV $$", Status::Signal(11)), ("echo last >&2; exit 3", Status::Code(3))] {
            let mut spec = world.spec(&["-c", script]);
            spec.program = "sh".into();
            let process = world.start_spec(spec).await.unwrap_or_else(|error| panic!("{error}"));
            let exit = process.ended().await;
            assert_eq!((exit.status, exit.why), (status, None), "{tier:?}: {exit}");
            assert!(status != Status::Code(3) || process.stderr_tail() == ["last"], "{:?}", process.stderr_tail());
        }
    }
}

/// Run by the next test as a process of its own.
#[tokio::test]
async fn an_owner_that_waits() {
    let Ok(seconds) = std::env::var("ORPHAN_SECONDS") else { return };
    let mut held = Vec::new();
    for (number, tier) in ALL.into_iter().enumerate() {
        let world = World::new(tier);
        let process = world.start(&["orphan", &format!("{}{seconds}", number + 1)]).await;
        let (input, mut output) = process.take_pipes().expect("its pipes");
        assert_eq!(line(&mut output).await, "orphaned 0", "{:?}", process.stderr_tail());
        held.push((process, input, output, world));
    }
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn an_owner_that_is_killed_leaves_nothing() {
    let seconds = format!("7{}", std::process::id());
    let own = std::env::current_exe().expect("this program");
    let mut owner = Command::new(own);
    owner.args(["--exact", "life::an_owner_that_waits", "--nocapture"]).env("ORPHAN_SECONDS", &seconds);
    let temporary = std::env::temp_dir().join(format!("gatehouse-owner-{}", std::process::id()));
    std::fs::create_dir(&temporary).expect("a folder");
    open_up(&temporary, 0o755);
    let mut owner =
        owner.env("TMPDIR", &temporary).stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("an owner");
    let all = ["1", "2", "3"].map(|first| format!("{first}{seconds}"));
    until("all of them run", || all.iter().all(|word| with_word(&format!("sleep\0{word}")).len() == 1)).await;
    let path = temporary.to_string_lossy().into_owned();
    assert!(with_word(&path).len() >= 6, "supervisors and programs run: {:?}", with_word(&path));
    owner.kill().expect("it is killed");
    assert_eq!(owner.wait().expect("it ends").signal(), Some(9));
    until("nothing is left", || all.iter().all(|word| with_word(word).is_empty()) && with_word(&path).is_empty()).await;
    std::fs::remove_dir_all(temporary).expect("it is removed");
}

/// Starts and stops: 300 when asked for by `GATEHOUSE_STDIO_CYCLES`.
#[tokio::test]
async fn many_starts_and_stops_leave_no_process_no_file_and_no_memory() {
    let cycles: usize = std::env::var("GATEHOUSE_STDIO_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    for tier in ALL {
        let world = World::new(tier);
        let cycle = async || {
            let process = world.start(&["echo"]).await;
            let (input, output) = process.take_pipes().expect("its pipes");
            drop(input);
            let exit = process.stop(LONG).await;
            drop(output);
            exit
        };
        for _ in 0..3 {
            cycle().await;
        }
        let (files, memory) = (open_files(), memory());
        for number in 0..cycles {
            let exit = cycle().await;
            assert_eq!((exit.status, exit.is_stop()), (Status::Code(0), true), "{tier:?}, cycle {number}: {exit}");
        }
        until("all files are closed", || open_files() <= files).await;
        assert_eq!(with_word(&world.path("")), Vec::<u32>::new());
        let grown = self::memory().saturating_sub(memory);
        assert!(grown < 8 << 20, "{tier:?}: {grown} bytes more after {cycles} cycles");
    }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc").count()
}

fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("/proc");
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") << 12
}

/// As root: everything once more, by an owner that is not.
#[tokio::test]
async fn the_same_holds_for_an_owner_that_is_not_root() {
    if std::env::var_os(PROGRAMS).is_some() || !is_root() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("gatehouse-not-root-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    open_up(&folder, 0o777);
    let own = std::env::current_exe().expect("this program");
    for (from, name) in [
        (own, "tests"),
        (program("gatehouse-stdio-helper"), "gatehouse-stdio-helper"),
        (program("gatehouse-stdio-hostile"), "gatehouse-stdio-hostile"),
    ] {
        std::fs::copy(from, folder.join(name)).expect("a copy");
        open_up(&folder.join(name), 0o755);
    }
    let mut command = tokio::process::Command::new("setpriv");
    command.args(["--reuid", "61100", "--regid", "61100", "--clear-groups", "--"]).arg(folder.join("tests"));
    command.args(["--test-threads", "2"]).env(PROGRAMS, &folder).env("TMPDIR", &folder).current_dir("/");
    let output = command.output().await.expect("the tests");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains(" passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(folder).expect("it is removed");
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0)
}
