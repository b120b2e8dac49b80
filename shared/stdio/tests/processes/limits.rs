//! A program that takes all it can get.

use std::time::Duration;

use gatehouse_stdio::{Limits, Sandboxes, Spec};

use crate::{Folder, Running, perl, printed};

#[tokio::test]
async fn it_cannot_fork_without_end() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    let bomb = r#"my $n = 0; for (1..500) { my $pid = fork(); last unless defined $pid; if (!$pid) { sleep 60; exit } $n++ } print "$n\n"; kill 9, -1;"#;
    let limits = Limits { processes: 40, ..Limits::default() };
    let count: u32 = printed(&sandboxes, Spec { limits, ..perl("bomb", bomb) }).await.parse().unwrap();
    assert!((10..=40).contains(&count), "{count}");
}

#[tokio::test]
async fn one_that_fills_memory_is_ended_and_says_why() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    // In its children, too: all of them count together.
    let hog = r#"fork(); my @all; for (1..4000) { push @all, 'x' x (1 << 20); select(undef, undef, undef, 0.002) } sleep 60;"#;
    let limits = Limits { memory_bytes: 200 << 20, ..Limits::default() };
    let running = Running::start(&sandboxes, Spec { limits, ..perl("hog", hog) }).await;
    let exit = running.process.ended().await;
    assert_eq!((exit.words.as_str(), exit.by_us), ("it was ended: it used more than 200 MiB of memory", true));
}

#[tokio::test]
async fn it_fills_neither_a_disk_nor_tmp() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    let fill = r#"
        $SIG{XFSZ} = 'IGNORE';
        sub fill { my ($path, $n) = @_; open(my $f, '>', $path) or return 0; my $done = 0; for (1..$n) { last unless defined syswrite($f, 'x' x (1 << 20)); $done++ } $done }
        print fill('/server/large', 50), ' ', fill('/tmp/large', 50) , "\n";
    "#;
    let limits = Limits { file_bytes: 20 << 20, tmp_bytes: 10 << 20, ..Limits::default() };
    assert_eq!(printed(&sandboxes, Spec { limits, ..perl("fill", fill) }).await, "20 10");
    // Many small files: their home is measured.
    let many =
        r#"for my $n (1..1000) { open(my $f, '>', "/server/$n"); print $f 'x' x (1 << 20); close $f; } sleep 60;"#;
    let limits = Limits { home_bytes: 64 << 20, ..Limits::default() };
    let running = Running::start(&sandboxes, Spec { limits, ..perl("many", many) }).await;
    let exit = running.process.ended().await;
    assert_eq!(exit.words, "it was ended: its home held more than 64 MiB");
}

#[tokio::test]
async fn one_that_burns_cpu_is_held_to_its_share_and_lives() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    let limits = Limits { cpu_percent: 20, ..Limits::default() };
    let burn = Spec {
        limits,
        ..perl(
            "burn",
            "print \"ready\\n\"; my $end = time + 6; while (time < $end) {} print join(' ', times), \"\\n\";",
        )
    };
    let mut running = Running::start(&sandboxes, burn).await;
    assert_eq!(running.line().await, "ready");
    let times = running.line().await;
    let used: f64 = times.split(' ').next().unwrap().parse().unwrap();
    // A fifth of six seconds, a second's worth that was saved at first, and what it takes until it is noticed.
    assert!(used < 3.0, "{times}");
    assert_eq!(running.process.ended().await.words, "it ended with exit status 0");
}

#[tokio::test]
async fn open_files_are_bounded_and_a_flood_on_stderr_holds_up_nothing() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    let files = r#"my @all; while (open(my $f, '<', '/etc/passwd')) { push @all, $f } print scalar(@all), "\n";"#;
    let limits = Limits { open_files: 64, ..Limits::default() };
    let count: u32 = printed(&sandboxes, Spec { limits, ..perl("files", files) }).await.parse().unwrap();
    assert!((40..64).contains(&count), "{count}");
    let flood =
        r#"for (1..20000) { print STDERR 'x' x 500, "\n" } print STDERR "last words\n"; print "done\n"; <STDIN>;"#;
    let mut running = Running::start(&sandboxes, perl("flood", flood)).await;
    assert_eq!(running.line().await, "done");
    gatehouse_testkit::eventually("the last line is kept", async || {
        running.process.stderr_tail().last().is_some_and(|line| line == "last words").then_some(())
    })
    .await;
    assert_eq!(running.process.stderr_tail().len(), 200);
    assert!(running.process.stop(Duration::from_millis(100)).await.by_us);
}
