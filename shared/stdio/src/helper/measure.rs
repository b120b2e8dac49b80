//! What a program uses, with all its children, and when that is too much.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::param::{clock_ticks_per_second, page_size};

use super::tree::{self, Member};
use crate::{Limits, Usage, Why};

/// How often files without a name are looked for.
const NAMELESS_EVERY: Duration = Duration::from_secs(1);
/// How often the home is measured, at most.
const HOME_EVERY: Duration = Duration::from_secs(2);
/// Measuring the home takes at most one part in this many of the time.
const HOME_SHARE: u32 = 20;
/// Most entries of a home that are counted.
const MOST_ENTRIES: usize = 500_000;
/// For how long a program may take all the CPU there is after having taken none, as time of its full rate.
const BURST: Duration = Duration::from_secs(2);
/// A paused program goes on when it could run for this long.
const RESUMED: Duration = Duration::from_millis(100);

/// Measures one program.
pub(super) struct Measure {
    limits: Limits,
    home: PathBuf,
    /// Members less deep than this are the sandbox's.
    depth: usize,
    cpu: Budget,
    ticks: u64,
    measured: Instant,
    nameless: (u64, u64),
    nameless_next: Instant,
    home_bytes: u64,
    home_next: Instant,
}

impl Measure {
    pub(super) fn new(limits: Limits, home: &str, depth: usize) -> Self {
        let now = Instant::now();
        Self {
            limits,
            home: home.into(),
            depth,
            cpu: Budget::new(limits.cpu_percent),
            ticks: 0,
            measured: now,
            nameless: (0, 0),
            nameless_next: now,
            home_bytes: 0,
            home_next: now,
        }
    }

    /// What is used, and why the program must be ended, if it must.
    pub(super) fn now(&mut self, members: &[Member]) -> (Usage, Option<Why>) {
        let inner: Vec<Member> = members.iter().copied().filter(|member| member.depth >= self.depth).collect();
        let now = Instant::now();
        self.files(&inner, now);
        let page = page_size() as u64;
        let mut memory = inner.iter().map(|member| member.pages * page).sum::<u64>();
        // Exact numbers cost more: only when they matter.
        if memory + self.nameless.0 > self.limits.memory_bytes {
            memory = tree::proportional(&inner, page);
        }
        let usage = Usage {
            memory_bytes: memory + self.nameless.0,
            cpu_percent: self.cpu(members, now),
            processes: inner.iter().map(|member| u64::from(member.threads)).sum(),
            home_bytes: self.home_bytes + self.nameless.1,
            paused: self.cpu.paused,
        };
        (usage, self.too_much(&usage))
    }

    /// Whether the program is to be paused.
    pub(super) fn paused(&self) -> bool {
        self.cpu.paused
    }

    fn too_much(&self, usage: &Usage) -> Option<Why> {
        let limits = &self.limits;
        match usage {
            usage if usage.memory_bytes > limits.memory_bytes => Some(Why::Memory(limits.memory_bytes)),
            usage if usage.home_bytes > limits.home_bytes => Some(Why::Home(limits.home_bytes)),
            // Where the kernel counts, it lets it come this far and no further.
            usage if usage.processes > u64::from(limits.processes) => Some(Why::Processes(limits.processes)),
            _ => None,
        }
    }

    fn cpu(&mut self, members: &[Member], now: Instant) -> u32 {
        let ticks = members.iter().map(|member| member.ticks).sum::<u64>() + tree::waited_ticks();
        // The time of a process whose parent does not wait for it is lost, and the sum may shrink.
        let used = seconds(ticks.saturating_sub(self.ticks));
        let passed = now.duration_since(self.measured);
        (self.ticks, self.measured) = (ticks, now);
        self.cpu.spend(used, passed)
    }

    fn files(&mut self, inner: &[Member], now: Instant) {
        if now >= self.nameless_next {
            self.nameless = tree::nameless(inner);
            self.nameless_next = now + NAMELESS_EVERY;
        }
        if now >= self.home_next {
            self.home_bytes = size(&self.home);
            let took = now.elapsed();
            self.home_next = now + HOME_EVERY.max(took * HOME_SHARE);
        }
    }
}

fn seconds(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1_000) / clock_ticks_per_second().max(1))
}

/// CPU that may be had: it grows with time and shrinks with use.
struct Budget {
    percent: u32,
    /// What may be had at once, in milliseconds of one core.
    left: i64,
    paused: bool,
}

impl Budget {
    fn new(percent: u32) -> Self {
        let percent = percent.max(1);
        Self { percent, left: Self::earned(percent, BURST), paused: false }
    }

    fn earned(percent: u32, passed: Duration) -> i64 {
        i64::try_from(passed.as_millis() * u128::from(percent) / 100).unwrap_or(i64::MAX)
    }

    /// Returns what was used, in percent of one core.
    fn spend(&mut self, used: Duration, passed: Duration) -> u32 {
        let spent = i64::try_from(used.as_millis()).unwrap_or(i64::MAX);
        let most = Self::earned(self.percent, BURST);
        self.left = self.left.saturating_add(Self::earned(self.percent, passed)).saturating_sub(spent).min(most);
        self.paused = if self.paused { self.left < Self::earned(self.percent, RESUMED) } else { self.left < 0 };
        u32::try_from(used.as_millis() * 100 / passed.as_millis().max(1)).unwrap_or(u32::MAX)
    }
}

/// What a folder holds, in bytes of the disk.
fn size(folder: &Path) -> u64 {
    let (mut total, mut entries) = (0, 0);
    let mut linked = HashSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // A folder that has gone meanwhile holds nothing.
        let found = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).unwrap_or_default();
        for entry in found {
            entries += 1;
            let Ok(data) = entry.metadata() else { continue };
            if data.is_dir() {
                folders.push(entry.path());
            }
            if data.is_dir() || data.nlink() == 1 || linked.insert((data.dev(), data.ino())) {
                total += data.blocks() * 512;
            }
        }
        if entries > MOST_ENTRIES {
            break;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_takes_too_much_cpu_is_paused_until_it_has_not() {
        let mut budget = Budget::new(50);
        let second = Duration::from_secs(1);
        assert_eq!(budget.spend(second, second), 100);
        assert!(!budget.paused, "a burst is allowed");
        budget.spend(second, second);
        budget.spend(second, second);
        assert!(budget.paused, "{} left", budget.left);
        let passed = (1..20).find(|_| {
            budget.spend(Duration::ZERO, second / 4);
            !budget.paused
        });
        assert!(passed.is_some_and(|quarters| quarters > 4), "{passed:?}");
    }

    #[test]
    fn a_file_with_two_names_counts_once() {
        let folder = std::env::temp_dir().join(format!("gatehouse-size-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(folder.join("a"), folder.join("b")).unwrap();
        let found = size(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert!((1 << 20..2 << 20).contains(&found), "{found}");
    }
}
