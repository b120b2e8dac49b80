//! Measures what processes take, and stops what takes too much.
//!
//! The kernel's own limits of memory and CPU time (`RLIMIT_AS`, `RLIMIT_CPU`) end honest programs: Node.js and Chromium reserve far
//! more than they use, and a long life takes much CPU time in all. So both are measured here, over the whole family of a process.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{process::Reason, spec::Limits};

/// How often.
const EVERY: Duration = Duration::from_millis(200);
/// How often a home is measured.
const HOME_EVERY: Duration = Duration::from_secs(5);
/// Most files of a home that are counted.
const MOST_FILES: usize = 200_000;
/// Clock ticks in a second: `USER_HZ`, which Linux shows as 100 everywhere.
const TICKS: u64 = 100;

/// What a process and its children take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory in bytes, as it was last measured.
    pub memory_bytes: u64,
    /// CPU time in milliseconds, of those that live.
    pub cpu_ms: u64,
    /// Processes.
    pub processes: u64,
}

/// Watches until it is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    processes: Arc<Mutex<Vec<Weak<Watched>>>>,
    _stop: Arc<DropGuard>,
}

/// One process that is watched.
#[derive(Debug)]
pub(crate) struct Watched {
    pid: u32,
    limits: Limits,
    home: PathBuf,
    /// Whether its outermost processes are bubblewrap's.
    wrapped: bool,
    kill: CancellationToken,
    pub(crate) reason: Reason,
    family: Mutex<Vec<Member>>,
    memory: AtomicU64,
    cpu_ms: AtomicU64,
    processes: AtomicU64,
    held: AtomicBool,
}

/// A process of a family. Its start time tells it from a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) pid: u32,
    parent: u32,
    started: u64,
    cpu_ticks: u64,
}

impl Member {
    /// Reads `/proc/<pid>/stat` (`proc(5)`).
    fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold anything, parentheses among it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        if *fields.first()? == "Z" {
            return None;
        }
        let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
        Some(Self {
            pid,
            parent: u32::try_from(number(1)?).ok()?,
            started: number(19)?,
            cpu_ticks: number(11)? + number(12)?,
        })
    }

    pub(crate) fn is_alive(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            // One that has ended needs none.
            let _ = kill_process(pid, signal);
        }
    }
}

/// All processes of this machine that we can see.
fn all() -> Vec<Member> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Member::read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// A process and all that descend from it, the outermost first.
pub(crate) fn descendants(pid: u32) -> Vec<Member> {
    family(pid, &all())
}

fn family(pid: u32, all: &[Member]) -> Vec<Member> {
    let mut children: BTreeMap<u32, Vec<Member>> = BTreeMap::new();
    for member in all {
        children.entry(member.parent).or_default().push(*member);
    }
    let mut found: Vec<Member> = all.iter().filter(|member| member.pid == pid).copied().collect();
    let mut next = 0;
    while let Some(member) = found.get(next) {
        found.extend(children.remove(&member.pid).unwrap_or_default());
        next += 1;
    }
    found
}

impl Watched {
    pub(crate) fn new(pid: u32, limits: Limits, home: PathBuf, wrapped: bool, kill: CancellationToken) -> Self {
        Self {
            pid,
            limits,
            home,
            wrapped,
            kill,
            reason: Reason::default(),
            family: Mutex::default(),
            memory: AtomicU64::new(0),
            cpu_ms: AtomicU64::new(0),
            processes: AtomicU64::new(0),
            held: AtomicBool::new(false),
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        Usage { memory_bytes: read(&self.memory), cpu_ms: read(&self.cpu_ms), processes: read(&self.processes) }
    }

    /// Those that were seen last.
    pub(crate) fn family(&self) -> Vec<Member> {
        self.family.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a signal to the program and its children, not to the sandbox around them: that would end them at once.
    pub(crate) fn signal_program(&self, signal: Signal) {
        for member in self.program() {
            member.signal(signal);
        }
    }

    /// The family without bubblewrap's two processes: the outermost one, and its child that is the first inside.
    fn program(&self) -> Vec<Member> {
        let family = descendants(self.pid);
        let skipped = if self.wrapped { 2 } else { 0 };
        family.into_iter().skip(skipped).collect()
    }

    fn end(&self, words: String) {
        self.reason.set(words);
        self.kill.cancel();
    }

    /// Looks at it once. `budget` is what it may still take of CPU time.
    fn measure(&self, all: &[Member], budget: &mut Budget, passed: Duration) {
        let family = family(self.pid, all);
        let ticks: u64 = family.iter().map(|member| member.cpu_ticks).sum();
        self.cpu_ms.store(ticks * 1_000 / TICKS, Ordering::Relaxed);
        self.processes.store(family.len() as u64, Ordering::Relaxed);
        let resident: u64 = family.iter().map(|member| resident_memory(member.pid)).sum();
        // Shared pages count as often as they are shared here: only what looks like too much is counted exactly, which costs more.
        let memory = if resident > self.limits.memory_bytes {
            family.iter().map(|member| proportional(member.pid).unwrap_or_else(|| resident_memory(member.pid))).sum()
        } else {
            resident
        };
        self.memory.store(memory, Ordering::Relaxed);
        *self.family.lock().unwrap_or_else(PoisonError::into_inner) = family;
        if memory > self.limits.memory_bytes {
            return self
                .end(format!("it was ended: it used more than {} MiB of memory", self.limits.memory_bytes >> 20));
        }
        let hold = budget.spend(ticks, self.limits.cpu_percent, passed);
        if hold != self.held.swap(hold, Ordering::Relaxed) {
            self.signal_program(if hold { Signal::STOP } else { Signal::CONT });
        }
    }
}

/// Resident memory in bytes, shared pages counted whole.
fn resident_memory(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Resident memory in bytes, shared pages divided among those who share them.
fn proportional(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// What a process may still take of CPU time: it fills with the time that passes, up to a second's worth.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    left_us: i64,
    ticks: u64,
}

impl Budget {
    /// Takes note of what was used in all, and returns whether the process is to be held.
    fn spend(&mut self, ticks: u64, percent: u32, passed: Duration) -> bool {
        let per_second = i64::from(percent) * 10_000;
        let passed = i64::try_from(passed.as_micros()).unwrap_or(i64::MAX);
        let filled = per_second.saturating_mul(passed) / 1_000_000;
        // Those that ended took their ticks with them.
        let used = ticks.saturating_sub(self.ticks).saturating_mul(1_000_000 / TICKS);
        self.ticks = ticks;
        let used = i64::try_from(used).unwrap_or(i64::MAX);
        self.left_us = self.left_us.saturating_add(filled).min(per_second).saturating_sub(used);
        self.left_us < 0
    }
}

impl Watch {
    pub(crate) fn start() -> Self {
        let stop = CancellationToken::new();
        let processes: Arc<Mutex<Vec<Weak<Watched>>>> = Arc::default();
        let watched = Arc::clone(&processes);
        let work = {
            let stop = stop.clone();
            async move {
                // `None`: nobody is left who could start a process.
                let _ = stop.run_until_cancelled(run(watched)).await;
            }
        };
        tokio::spawn(work);
        Self { processes, _stop: Arc::new(stop.drop_guard()) }
    }

    pub(crate) fn add(&self, watched: &Arc<Watched>) {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(watched));
    }
}

async fn run(processes: Arc<Mutex<Vec<Weak<Watched>>>>) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut budgets: BTreeMap<u32, Budget> = BTreeMap::new();
    let (mut last, mut homes_at) = (Instant::now(), Instant::now());
    loop {
        tick.tick().await;
        let live: Vec<Arc<Watched>> = {
            let mut processes = processes.lock().unwrap_or_else(PoisonError::into_inner);
            processes.retain(|process| process.strong_count() > 0);
            processes.iter().filter_map(Weak::upgrade).collect()
        };
        let (now, ids) = (Instant::now(), live.iter().map(|process| process.pid).collect::<BTreeSet<_>>());
        budgets.retain(|pid, _| ids.contains(pid));
        let passed = now - last;
        last = now;
        if live.is_empty() {
            continue;
        }
        let homes = now - homes_at >= HOME_EVERY;
        if homes {
            homes_at = now;
        }
        let mut taken = std::mem::take(&mut budgets);
        // Files of `/proc` and of homes are read, which may take a while.
        let measured = tokio::task::spawn_blocking(move || {
            let all = all();
            for process in &live {
                process.measure(&all, taken.entry(process.pid).or_default(), passed);
                if homes && size_of(&process.home) > process.limits.home_bytes {
                    let most = process.limits.home_bytes >> 20;
                    process.end(format!("it was ended: its home held more than {most} MiB"));
                }
            }
            taken
        });
        match measured.await {
            Ok(measured) => budgets = measured,
            Err(error) => tracing::error!(error.message = %error, "processes could not be measured"),
        }
    }
}

/// The size of a folder in bytes; no symlink is followed. Bounded: what has more files counts as too large.
fn size_of(folder: &Path) -> u64 {
    let (mut size, mut count, mut open) = (0, 0, vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            count += 1;
            if count > MOST_FILES {
                return u64::MAX;
            }
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) => size += std::os::unix::fs::MetadataExt::blocks(&found) * 512,
                // Gone meanwhile.
                Err(_) => {}
            }
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_more_than_its_share_is_held_until_it_has_not() {
        let mut budget = Budget::default();
        let second = Duration::from_secs(1);
        let mut ticks = 0;
        // Half a core of one allowed.
        for _ in 0..10 {
            ticks += 50;
            assert!(!budget.spend(ticks, 100, second));
        }
        // Three cores at once: a second's worth was saved, the rest must be waited for.
        ticks += 300;
        assert!(budget.spend(ticks, 100, second));
        assert!(budget.spend(ticks, 100, Duration::from_millis(500)));
        assert!(!budget.spend(ticks, 100, Duration::from_secs(2)));
    }

    #[test]
    fn a_family_is_a_process_and_all_that_descend_from_it() {
        let member = |pid, parent| Member { pid, parent, started: 0, cpu_ticks: 0 };
        let all = [member(1, 0), member(5, 1), member(6, 5), member(7, 6), member(8, 1), member(9, 5)];
        let found: Vec<u32> = family(5, &all).iter().map(|member| member.pid).collect();
        assert_eq!(found, [5, 6, 9, 7]);
        assert!(family(99, &all).is_empty());
    }
}
