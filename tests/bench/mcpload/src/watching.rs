//! What the watched process trees, and the machine, used over the measured window.
use crate::procs::{Usage, Watch, machine, usage};
use serde_json::{Map, Value, json};

/// One tree, and apart from it the processes inside that were asked to be split off.
type Parts = [Usage; 2];

pub struct Watching {
    watched: Vec<Watch>,
    split: Option<String>,
    before: Vec<Parts>,
    peak_rss_mb: Vec<[f64; 2]>,
    machine: (f64, f64),
}

/// What was used between two moments.
pub struct Used {
    pub elapsed: f64,
    /// Seconds that the whole machine was busy
    pub busy: f64,
    pub stolen: f64,
    parts: Vec<Part>,
}

struct Part {
    label: String,
    cpu_s: f64,
    rss_peak_mb: f64,
    pss_mb: f64,
    processes: usize,
    threads: usize,
}

pub fn round(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

impl Watching {
    /// Begins with `watched` and this program itself.
    pub fn begin(mut watched: Vec<Watch>, split: Option<String>) -> Self {
        watched.push(Watch { label: "mcpload".to_owned(), pid: std::process::id() });
        let machine = machine();
        let before = usage(&watched, split.as_deref(), false);
        let peak_rss_mb = before.iter().map(|parts| parts.map(|usage| usage.rss_mb)).collect();
        Self { watched, split, before, peak_rss_mb, machine }
    }

    pub fn sample(&mut self) {
        let now = usage(&self.watched, self.split.as_deref(), false);
        for (peak, usage) in self.peak_rss_mb.iter_mut().flatten().zip(now.iter().flatten()) {
            *peak = peak.max(usage.rss_mb);
        }
    }

    pub fn end(mut self, elapsed: f64) -> Used {
        let split = self.split.as_deref();
        let after = usage(&self.watched, split, false);
        let (busy, stolen) = machine();
        self.sample();
        let split = self.split.as_deref();
        let memory = usage(&self.watched, split, true);
        let mut parts = Vec::new();
        for (index, watch) in self.watched.iter().enumerate() {
            for part in 0..2 {
                let (old, new) = (self.before[index][part], after[index][part]);
                if part == 1 && new.processes == 0 {
                    continue;
                }
                let label = if part == 0 {
                    watch.label.clone()
                } else {
                    format!("{}/{}", watch.label, split.unwrap_or_default())
                };
                parts.push(Part {
                    label,
                    cpu_s: (new.cpu_s - old.cpu_s).max(0.0),
                    rss_peak_mb: self.peak_rss_mb[index][part],
                    pss_mb: memory[index][part].pss_mb,
                    processes: new.processes,
                    threads: new.threads,
                });
            }
        }
        Used { elapsed, busy: busy - self.machine.0, stolen: stolen - self.machine.1, parts }
    }
}

impl Used {
    /// CPU seconds of all watched trees.
    pub fn accounted(&self) -> f64 {
        self.parts.iter().map(|part| part.cpu_s).sum()
    }

    /// By label, with CPU time divided by `calls`.
    pub fn trees(&self, calls: usize) -> Map<String, Value> {
        let tree = |part: &Part| {
            json!({
                "cpu_s": round(part.cpu_s, 3), "cpu_us_per_call": round(part.cpu_s * 1e6 / calls.max(1) as f64, 2),
                "cores": round(part.cpu_s / self.elapsed, 3), "rss_peak_mb": round(part.rss_peak_mb, 1),
                "pss_mb": round(part.pss_mb, 1), "processes": part.processes, "threads": part.threads
            })
        };
        self.parts.iter().map(|part| (part.label.clone(), tree(part))).collect()
    }
}
