//! Listens to the supervisor of one program until both have ended.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{
    io::{BufReader, Lines},
    net::unix::OwnedReadHalf,
    process::Child,
    sync::watch,
    task::JoinHandle,
    time::{Duration, timeout},
};

use crate::{Exit, Usage, Why, wire::Report};

/// Longest wait for the end of stderr when the program has ended: somebody who is not its child may hold it.
const STDERR_WITHIN: Duration = Duration::from_secs(1);

/// What is known of a program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Now {
    pub(crate) usage: Usage,
    pub(crate) exit: Option<Exit>,
}

pub(crate) type Reports = Lines<BufReader<OwnedReadHalf>>;

/// The next report; none when the supervisor has ended.
pub(crate) async fn next(reports: &mut Reports) -> Option<Report> {
    let line = reports.next_line().await.ok().flatten()?;
    serde_json::from_str(&line).ok()
}

/// Keeps what is known up to date.
///
/// Once `asked` is set, an end is that of one who was asked to: closing its input is how a program is asked first.
pub(crate) fn follow(
    mut reports: Reports,
    mut child: Child,
    stderr: JoinHandle<()>,
    asked: Arc<AtomicBool>,
) -> watch::Receiver<Now> {
    let (sender, receiver) = watch::channel(Now::default());
    tokio::spawn(async move {
        let mut exit = Exit::unknown();
        while let Some(report) = next(&mut reports).await {
            match report {
                Report::Usage(usage) => sender.send_modify(|now| now.usage = usage),
                Report::Ended { status, why } => {
                    let stopped = asked.load(Ordering::Acquire).then_some(Why::Stopped);
                    exit = Exit::new(status, why.or(stopped));
                }
                Report::Started(_) | Report::Failed(_) => {}
            }
        }
        if let Err(error) = child.wait().await {
            tracing::warn!(error = %error, "The supervisor of a stdio server could not be waited for");
        }
        let reading = stderr.abort_handle();
        if timeout(STDERR_WITHIN, stderr).await.is_err() {
            reading.abort();
        }
        sender.send_modify(|now| *now = Now { usage: Usage::default(), exit: Some(exit) });
    });
    receiver
}
