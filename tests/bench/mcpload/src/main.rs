//! mcpload: a closed-loop load generator for MCP servers and gateways.
//!
//! It speaks raw JSON-RPC over Streamable HTTP, so no SDK is favoured. Each of the
//! `--concurrency` workers owns one keep-alive connection and has exactly one call in
//! flight. Every answer is checked against what was asked (each call carries a number
//! of its own), and CPU time and memory of the processes under test are read from
//! /proc over the same window in which the calls are counted.
mod check;
mod client;
mod plan;
mod procs;
mod watching;

use bytes::Bytes;
use clap::Parser;
use client::{Connection, Fail, Tags};
use http::HeaderValue;
use plan::{Args, Bench, Plan, plan};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    error::Error,
    rc::Rc,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};
use watching::{Used, Watching, round};

#[global_allocator]
static ALLOC: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What one worker saw inside the measured window.
#[derive(Default)]
struct Tally {
    latencies_us: Vec<u32>,
    failures: BTreeMap<Fail, u64>,
    /// Calls begun before the window closed that were answered rightly, but after it
    late: u64,
    reconnects: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.latencies_us.extend(other.latencies_us);
        self.late += other.late;
        self.reconnects += other.reconnects;
        for (fail, count) in other.failures {
            *self.failures.entry(fail).or_default() += count;
        }
    }
}

async fn open_session(plan: &Plan, connection: &mut Connection<'_>) -> Result<Option<HeaderValue>, Fail> {
    let id = plan.counter.fetch_add(1, Relaxed);
    let body = json!({
        "jsonrpc": "2.0", "id": id, "method": "initialize",
        "params": {"protocolVersion": plan.args.protocol, "capabilities": {}, "clientInfo": {"name": "mcpload", "version": "0.1.0"}}
    });
    let reply = connection.post(Tags::default(), Some(id), body.to_string().into()).await?;
    check::result_of(&reply.message.ok_or(Fail::NoAnswer)?, id)?;
    let initialized = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    connection.post(plan.tags(reply.session.as_ref()), None, initialized).await?;
    Ok(reply.session)
}

/// One unit of work; the time is that of the complete answer.
async fn step(plan: &Plan, connection: &mut Connection<'_>, session: Option<&HeaderValue>) -> Result<Instant, Fail> {
    if plan.args.bench == Bench::Sessions {
        let opened = open_session(plan, connection).await?;
        let done = Instant::now();
        if opened.is_some() {
            connection.delete(plan.tags(opened.as_ref())).await;
        }
        return Ok(done);
    }
    let id = plan.counter.fetch_add(1, Relaxed);
    let (body, arguments) = plan.request(id);
    let reply = connection.post(plan.tags(session), Some(id), body).await?;
    let message = reply.message.ok_or(Fail::NoAnswer)?;
    match plan.args.bench {
        Bench::List => check::list(&message, id, plan.args.min_tools).map(|_| ())?,
        _ => check::call(plan.verify, &message, id, &arguments)?,
    }
    Ok(reply.done)
}

/// When calls begin, when they start to count, and when they stop.
#[derive(Clone, Copy)]
struct Window {
    begins: Instant,
    opens: Instant,
    closes: Instant,
}

async fn worker(plan: Rc<Plan>, index: usize, session: Option<HeaderValue>, window: Window) -> Tally {
    let Window { begins, opens, closes } = window;
    let mut connection = Connection::new(&plan.target, Duration::from_millis(plan.args.timeout_ms));
    let mut tally = Tally::default();
    let mut turn = index;
    loop {
        let mut started = Instant::now();
        if let Some(rate) = plan.args.rate {
            let due = begins + Duration::from_secs_f64(turn as f64 / rate);
            turn += plan.args.concurrency;
            if started < due {
                tokio::time::sleep_until(due.into()).await;
                started = Instant::now();
            } else {
                started = due;
            }
        }
        if Instant::now() >= closes {
            break;
        }
        let outcome = step(&plan, &mut connection, session.as_ref()).await;
        let ended = Instant::now();
        if ended < opens {
            continue;
        }
        // A call counts when it ends inside the window, so that rate and CPU time are
        // taken over the same span. Failures count however late they come to light.
        match outcome {
            Ok(_) if ended > closes => tally.late += 1,
            Ok(done) => tally.latencies_us.push((done - started).as_micros() as u32),
            Err(fail) => {
                *tally.failures.entry(fail).or_default() += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
    tally.reconnects = connection.reconnects;
    tally
}

fn percentile_ms(sorted: &[u32], share: f64) -> Option<f64> {
    let at = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(at).map(|&us| f64::from(us) / 1000.0)
}

/// Opens the sessions that the workers share.
async fn open_sessions(plan: &Plan) -> Result<Vec<Option<HeaderValue>>, Box<dyn Error>> {
    let mut sessions = Vec::new();
    if plan.args.bench != Bench::Sessions && !plan.stateless() {
        let mut connection = Connection::new(&plan.target, Duration::from_millis(plan.args.timeout_ms));
        for _ in 0..plan.args.sessions {
            let opened = open_session(plan, &mut connection).await;
            sessions.push(opened.map_err(|fail| format!("the session could not be opened: {fail:?}"))?);
        }
    }
    Ok(sessions)
}

async fn measure(plan: Rc<Plan>) -> Result<Value, Box<dyn Error>> {
    let args = &plan.args;
    let setup = Instant::now();
    let sessions = open_sessions(&plan).await?;
    let setup_s = setup.elapsed().as_secs_f64();

    let begins = Instant::now();
    let opens = begins + Duration::from_secs_f64(args.warmup);
    let closes = opens + Duration::from_secs_f64(args.seconds);
    let workers: Vec<_> = (0..args.concurrency)
        .map(|index| {
            let session = sessions.get(index % sessions.len().max(1)).cloned().flatten();
            tokio::task::spawn_local(worker(plan.clone(), index, session, Window { begins, opens, closes }))
        })
        .collect();

    tokio::time::sleep_until(opens.into()).await;
    let mut watching = Watching::begin(args.watch.clone(), args.split.clone());
    let tick = Duration::from_millis(500);
    while Instant::now() + tick < closes {
        tokio::time::sleep(tick).await;
        watching.sample();
    }
    tokio::time::sleep_until(closes.into()).await;
    let used = watching.end(opens.elapsed().as_secs_f64());

    let mut total = Tally::default();
    for worker in workers {
        total.add(worker.await?);
    }
    let mut connection = Connection::new(&plan.target, Duration::from_secs(5));
    for session in sessions.iter().flatten() {
        connection.delete(plan.tags(Some(session))).await;
    }
    total.latencies_us.sort_unstable();
    Ok(report(args, &total, setup_s, &used))
}

fn report(args: &Args, total: &Tally, setup_s: f64, used: &Used) -> Value {
    let latencies = &total.latencies_us;
    let ok = latencies.len();
    let mean_us = latencies.iter().map(|&us| u64::from(us)).sum::<u64>() as f64 / ok.max(1) as f64;
    json!({
        "bench": format!("{:?}", args.bench).to_lowercase(), "tool": args.tool, "protocol": args.protocol,
        "sessions": args.sessions, "concurrency": args.concurrency, "asked_rate": args.rate, "seconds": round(used.elapsed, 3),
        "ok": ok, "errors": total.failures.values().sum::<u64>(),
        "failures": total.failures.iter().map(|(fail, count)| (format!("{fail:?}"), *count)).collect::<BTreeMap<_, _>>(),
        "late": total.late, "reconnects": total.reconnects,
        "rate": round(ok as f64 / args.seconds, 1), "mean_ms": round(mean_us / 1000.0, 3),
        "p50_ms": percentile_ms(latencies, 0.5), "p90_ms": percentile_ms(latencies, 0.9),
        "p99_ms": percentile_ms(latencies, 0.99), "p999_ms": percentile_ms(latencies, 0.999),
        "max_ms": latencies.last().map(|&us| f64::from(us) / 1000.0),
        "setup_s": round(setup_s, 3), "trees": used.trees(ok),
        // CPU that neither this program nor a watched tree used, and time the host took
        "other_cores": round((used.busy - used.accounted()).max(0.0) / used.elapsed, 3),
        "stolen_cores": round(used.stolen / used.elapsed, 3)
    })
}

fn print(report: &Value) {
    let text = |key: &str| report[key].as_str().unwrap_or_default().to_owned();
    println!(
        "{} {} x{}: {} ok, {} errors {}",
        text("bench"),
        text("tool"),
        report["concurrency"],
        report["ok"],
        report["errors"],
        report["failures"]
    );
    println!(
        "  rate {}/s  mean {} ms  p50 {}  p90 {}  p99 {}  p99.9 {}  max {}",
        report["rate"],
        report["mean_ms"],
        report["p50_ms"],
        report["p90_ms"],
        report["p99_ms"],
        report["p999_ms"],
        report["max_ms"]
    );
    for (label, tree) in report["trees"].as_object().into_iter().flatten() {
        println!(
            "  {label}: {} us CPU a call, {} cores, {} MB RSS at peak",
            tree["cpu_us_per_call"], tree["cores"], tree["rss_peak_mb"]
        );
    }
    println!("  others on the machine: {} cores used, {} stolen", report["other_cores"], report["stolen_cores"]);
}

fn main() -> Result<(), Box<dyn Error>> {
    let plan = Rc::new(plan(Args::parse())?);
    let as_json = plan.args.json;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = tokio::task::LocalSet::new().block_on(&runtime, measure(plan))?;
    if as_json {
        println!("{report}");
    } else {
        print(&report);
    }
    Ok(())
}
