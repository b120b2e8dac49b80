//! CPU time and memory of process trees, read from /proc.
use std::{collections::HashMap, fs, str::FromStr};

/// A process tree to watch, given on the command line as LABEL=PID.
#[derive(Clone, Debug)]
pub struct Watch {
    pub label: String,
    pub pid: u32,
}

impl FromStr for Watch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (label, pid) = text.split_once('=').ok_or("write LABEL=PID")?;
        Ok(Self { label: label.to_owned(), pid: pid.parse().map_err(|_| "the PID is not a number")? })
    }
}

#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    /// User and system time of the live processes of the tree and of their reaped children
    pub cpu_s: f64,
    pub rss_mb: f64,
    /// Like rss_mb, with pages that several processes share counted once; only where asked for
    pub pss_mb: f64,
    pub processes: usize,
    pub threads: usize,
}

struct Stat {
    name: String,
    parent: u32,
    ticks: u64,
    threads: usize,
    rss_pages: u64,
}

/// The fields of /proc/PID/stat after the command name, which may itself hold spaces.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = text.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    Some(Stat {
        name: head.split_once('(')?.1.to_owned(),
        parent: number(1)? as u32,
        ticks: (11..15).map(|at| number(at).unwrap_or(0)).sum(),
        threads: number(17)? as usize,
        rss_pages: number(21)?,
    })
}

pub fn tick_rate() -> f64 {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

/// Proportional set size; none where the kernel does not tell.
fn pss_mb(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find(|line| line.starts_with("Pss:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? * 1024.0 / 1e6)
}

/// What the trees rooted at `roots` use now, in the order given: for each tree the
/// processes not named `split`, then those named so (a gateway's stdio servers, say).
pub fn usage(roots: &[Watch], split: Option<&str>, with_pss: bool) -> Vec<[Usage; 2]> {
    let mut all: HashMap<u32, Stat> = HashMap::new();
    let pids = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for pid in pids {
        if let Some(stat) = stat(pid) {
            all.insert(pid, stat);
        }
    }
    roots
        .iter()
        .map(|root| {
            let mut sums = [Usage::default(); 2];
            let mut members = vec![root.pid];
            while let Some(pid) = members.pop() {
                let Some(stat) = all.get(&pid) else { continue };
                let sum = &mut sums[usize::from(split == Some(&stat.name) && pid != root.pid)];
                sum.cpu_s += stat.ticks as f64 / tick_rate();
                sum.rss_mb += stat.rss_pages as f64 * 4096.0 / 1e6;
                if with_pss {
                    sum.pss_mb += pss_mb(pid).unwrap_or(0.0);
                }
                sum.processes += 1;
                sum.threads += stat.threads;
                members.extend(all.iter().filter(|(_, child)| child.parent == pid).map(|(&child, _)| child));
            }
            sums
        })
        .collect()
}

/// Seconds that the whole machine was busy, and seconds stolen from it, since boot.
pub fn machine() -> (f64, f64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = first.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0) as f64 / tick_rate();
    // user, nice, system, irq, softirq; idle and iowait left out
    (at(0) + at(1) + at(2) + at(5) + at(6), at(7))
}
