//! A process and all its descendants, as `/proc` shows them.

use std::{collections::HashSet, fs, os::unix::fs::MetadataExt as _};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// Where the fields of `/proc/PID/stat` begin that follow the name: the state is the third.
const AFTER_NAME: usize = 3;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) pid: Pid,
    /// How far below the root: its children are 1.
    pub(super) depth: usize,
    /// CPU time that it and its children that it waited for have had, in clock ticks.
    pub(super) ticks: u64,
    pub(super) threads: u32,
    /// Resident memory in pages, shared ones included.
    pub(super) pages: u64,
}

/// Whether the kernel tells children from other processes.
pub(super) fn is_told() -> bool {
    fs::metadata(format!("/proc/self/task/{}/children", getpid().as_raw_nonzero())).is_ok()
}

/// All descendants of this process.
pub(super) fn members() -> Vec<Member> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut next: Vec<(Pid, usize)> = children(getpid()).unwrap_or_default().into_iter().map(|pid| (pid, 1)).collect();
    while let Some((pid, depth)) = next.pop() {
        if !seen.insert(pid) {
            continue;
        }
        found.extend(member(pid, depth));
        next.extend(children(pid).unwrap_or_default().into_iter().map(|child| (child, depth + 1)));
    }
    found
}

/// CPU time of all children of this process that it waited for, in clock ticks.
pub(super) fn waited_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    fields(&stat, |field| field(16) + field(17)).unwrap_or_default()
}

/// Sends a signal to those that are at least this deep. Who has gone meanwhile has gone.
pub(super) fn signal(members: &[Member], depth: usize, signal: Signal) {
    for member in members.iter().filter(|member| member.depth >= depth) {
        let _ = kill_process(member.pid, signal);
    }
}

fn children(pid: Pid) -> Option<Vec<Pid>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).ok()? {
        let path = thread.ok()?.path().join("children");
        let Ok(text) = fs::read_to_string(path) else { continue };
        found.extend(text.split_ascii_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)));
    }
    Some(found)
}

fn member(pid: Pid, depth: usize) -> Option<Member> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    fields(&stat, |field| Member {
        pid,
        depth,
        ticks: field(14) + field(15) + field(16) + field(17),
        threads: u32::try_from(field(20)).unwrap_or(u32::MAX),
        pages: field(24),
    })
}

/// Reads fields by their number in proc(5). The name may hold anything: what follows its last parenthesis counts.
fn fields<T>(stat: &str, read: impl FnOnce(&dyn Fn(usize) -> u64) -> T) -> Option<T> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - AFTER_NAME).and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(read(&field))
}

/// Memory with shared pages divided among those who share them, in bytes.
pub(super) fn proportional(members: &[Member], page: u64) -> u64 {
    members.iter().map(|member| proportional_of(member).unwrap_or(member.pages * page)).sum()
}

fn proportional_of(member: &Member) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", member.pid.as_raw_nonzero())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Files that have no name any more and are held open: in memory, and elsewhere; in bytes.
pub(super) fn nameless(members: &[Member]) -> (u64, u64) {
    let (mut memory, mut elsewhere) = (0, 0);
    let mut seen = HashSet::new();
    for member in members {
        let Ok(files) = fs::read_dir(format!("/proc/{}/fd", member.pid.as_raw_nonzero())) else { continue };
        for file in files.flatten() {
            let Ok(target) = fs::read_link(file.path()) else { continue };
            let in_memory = target.to_string_lossy().starts_with("/memfd:");
            if !in_memory && !target.to_string_lossy().ends_with(" (deleted)") {
                continue;
            }
            let Ok(found) = fs::metadata(file.path()) else { continue };
            if found.is_file() && found.nlink() == 0 && seen.insert((found.dev(), found.ino())) {
                *(if in_memory { &mut memory } else { &mut elsewhere }) += found.blocks() * 512;
            }
        }
    }
    (memory, elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_the_name_holds() {
        let numbers: Vec<String> = (4..=24).map(|number| number.to_string()).collect();
        let stat = format!("7 (a) R 1) b) S {}", numbers.join(" "));
        assert_eq!(fields(&stat, |field| (field(14), field(20), field(24))), Some((14, 20, 24)));
        assert_eq!(fields("nothing", |field| field(14)), None);
    }

    #[test]
    fn a_child_is_found_with_its_memory() {
        assert!(is_told());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let found = members().into_iter().find(|member| member.pid == pid).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((found.depth, found.threads), (1, 1));
        assert!(!members().iter().any(|member| member.pid == pid));
    }
}
