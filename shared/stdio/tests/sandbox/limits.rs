//! What a program may take, and no more.

use std::time::{Duration, Instant};

use gatehouse_stdio::{Limits, Spec, Status, Tier, Why};
use tokio::time::timeout;

use crate::world::{WITHIN, World, is_alive, line, read_all, until};

const ALL: [Tier; 3] = [Tier::Strong, Tier::Weak, Tier::Trusted];
const SANDBOXES: [Tier; 2] = [Tier::Strong, Tier::Weak];

async fn ended(world: &World, words: &[&str], limits: Limits) -> Why {
    let process =
        world.start_spec(Spec { limits, ..world.spec(words) }).await.unwrap_or_else(|error| panic!("{error}"));
    let exit = timeout(WITHIN, process.ended()).await.expect("it is ended");
    exit.why.unwrap_or_else(|| panic!("{:?} {words:?}: {exit}", world.tier))
}

#[tokio::test]
async fn who_fills_memory_is_ended_whether_it_is_a_process_own_or_a_file_without_a_name() {
    let limits = Limits { memory_bytes: 96 << 20, ..Limits::default() };
    for tier in ALL {
        let world = World::new(tier);
        for words in ["fill-memory", "fill-memfd"] {
            assert_eq!(ended(&world, &[words], limits).await, Why::Memory(96 << 20));
        }
    }
}

#[tokio::test]
async fn who_fills_the_disk_is_ended_and_no_file_grows_too_large() {
    let limits = Limits { home_bytes: 64 << 20, file_bytes: 8 << 20, tmp_bytes: 16 << 20, ..Limits::default() };
    for tier in SANDBOXES {
        let world = World::new(tier);
        assert_eq!(ended(&world, &["fill-disk", &world.own("")], limits).await, Why::Home(64 << 20));
        world.sandboxes.remove_home("own").await.expect("it is removed");
        let spec = Spec { limits, ..world.spec(&["fill-file", &world.own("large")]) };
        let process = world.start_spec(spec).await.unwrap_or_else(|error| panic!("{error}"));
        let exit = process.ended().await;
        // The kernel sends a signal, which ends those who do not expect it.
        assert_eq!((exit.status, exit.why), (Status::Signal(25), None), "{exit}");
        assert_eq!(std::fs::metadata(world.path("stdio/homes/own/large")).expect("it is there").len(), 8 << 20);
    }
    let world = World::new(Tier::Strong);
    for folder in ["/tmp", "/dev/shm"] {
        world.denied(&world.attempt_spec(Spec { limits, ..world.spec(&["fill-disk", folder]) }).await);
    }
}

#[tokio::test]
async fn processes_and_open_files_come_to_an_end() {
    let limits = Limits { processes: 24, open_files: 64, ..Limits::default() };
    for tier in SANDBOXES {
        let world = World::new(tier);
        let process =
            world.start_spec(Spec { limits, ..world.spec(&["fork"]) }).await.unwrap_or_else(|error| panic!("{error}"));
        let said = read_all(&process).await;
        let exit = timeout(WITHIN, process.ended()).await.expect("it ends");
        // Where the kernel counts for this program alone it is denied, else it is ended.
        assert!(said.contains("denied") || exit.why == Some(Why::Processes(24)), "{tier:?}: {said} {exit}");
        let said = world.attempt_spec(Spec { limits, ..world.spec(&["open-files"]) }).await;
        assert!(said.contains("Too many open files"), "{tier:?}: {said}");
    }
}

#[tokio::test]
async fn who_takes_too_much_cpu_is_paused_and_not_ended() {
    for tier in SANDBOXES {
        let world = World::new(tier);
        let limits = Limits { cpu_percent: 20, ..Limits::default() };
        let process =
            world.start_spec(Spec { limits, ..world.spec(&["spin"]) }).await.unwrap_or_else(|error| panic!("{error}"));
        until("it is paused", || process.usage().paused).await;
        until("it goes on", || !process.usage().paused).await;
        let (begun, before) = (Instant::now(), ticks(process.pid()));
        let mut waiting = tokio::time::interval(Duration::from_secs(4));
        waiting.tick().await;
        waiting.tick().await;
        let percent = u128::from(ticks(process.pid()) - before) * 1_000 / begun.elapsed().as_millis();
        assert!(percent < 60, "{tier:?}: {percent} %");
        assert!(process.exit().is_none());
        process.stop(Duration::ZERO).await;
    }
}

/// CPU time of a tree, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<u64> =
        stat.rsplit_once(')').expect("fields").1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let below: u64 = children.split_whitespace().map(|child| ticks(child.parse().expect("a number"))).sum();
    fields[11] + fields[12] + below
}

#[tokio::test]
async fn a_flood_on_stderr_neither_blocks_nor_grows_and_holds_no_secret() {
    for tier in ALL {
        let world = World::new(tier);
        let process = world.start(&["flood"]).await;
        let (input, mut output) = process.take_pipes().expect("its pipes");
        assert_eq!(line(&mut output).await, "flooded");
        until("the last line is there", || {
            process.stderr_tail().last().is_some_and(|last| last.contains("the key is"))
        })
        .await;
        let tail = process.stderr_tail();
        assert_eq!(tail.len(), gatehouse_stdio::LINES);
        assert!(tail.iter().all(|line| line.chars().count() <= 500 && !line.contains("planted-secret")), "{tail:?}");
        drop(input);
        process.stop(Duration::from_secs(10)).await;
        assert!(!is_alive(process.pid()));
    }
}
