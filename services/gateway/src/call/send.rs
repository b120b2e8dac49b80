//! Sending a call that may go out, and watching over it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gatehouse_mcp::client::{Answer, Call as CallTag, Progress, RequestError, RequestOptions};
use gatehouse_mcp::encode::{Params, Piece};
use gatehouse_stdio::Exit;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{
    Calls, Flight, Ground, Reply, count,
    decide::{Retry, retry},
    micros, size,
    words::{self, Told, Words},
};
use crate::{
    audit::{Ended, Outcome, Started, mask},
    catalog::Tool,
    files::{Owner, Place},
    results::{self, Context, Limits, NotAResult},
    upstream::Acquire,
};

/// A read-only call that takes longer gets its audit row while it still runs.
const RECORD_AFTER: Duration = Duration::from_secs(1);

/// A result from which on its processing takes milliseconds, in bytes.
const LARGE: usize = 512 << 10;

/// How the wait for a server ended.
enum End {
    Answered(Answer),
    Failed(RequestError),
    NotOpened(Words),
    /// The server is a program, and it ended meanwhile.
    Crashed(Exit),
    Stopped(words::Stop),
}

/// A call as it is sent, perhaps more than once.
struct Sending<'a> {
    tool: &'a Arc<Tool>,
    started: &'a Arc<Started>,
    timeout: Duration,
    retries: i32,
}

/// Does work on so many bytes; when they are many, without holding up what else this thread would do.
fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let others = Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > LARGE && others { block_in_place(work) } else { work() }
}

impl Calls {
    pub(super) async fn carry_out(
        &self,
        flight: &Flight<'_>,
        ground: &Ground,
        tool: &Arc<Tool>,
        started: Arc<Started>,
    ) -> Reply {
        let settings = &ground.catalog.settings;
        let foreground = Duration::from_secs(u64::from(settings.foreground_max_sec));
        let timeout = tool.server.request_timeout.min(foreground);
        let mut sending = Sending { tool, started: &started, timeout, retries: 0 };
        let end = self.watched(flight, &mut sending).await;
        let retries = sending.retries;
        let server = tool.server.name.as_str();
        let locale = ground.facts.locale;
        let say = |(outcome, words): (Outcome, Words)| words::told(outcome, &words, locale);
        let told = match end {
            End::Answered(answer) => {
                let made = self.result(flight, ground, tool, &answer.result_bytes()).await;
                made.unwrap_or_else(|wrong| say(words::not_a_result(server, &wrong)))
            }
            End::Failed(error) => say(words::failed(server, &error, tool.hints, timeout)),
            End::Crashed(exit) => say(words::crashed(server, &exit.words, tool.hints)),
            End::NotOpened(why) => say(words::not_opened(server, &why)),
            End::Stopped(stop) => say(words::stopped(stop)),
        };
        let keep = settings.audit_payload_bytes as usize;
        let ended = Ended {
            outcome: told.outcome,
            duration_us: micros(flight.began),
            retries,
            result_bytes: size(&told.output),
            structured_result: told
                .output
                .structured
                .as_deref()
                .map(|json| aside(json.len(), || mask::masked(json, keep, &tool.server.mask_rules, &tool.name))),
            error: told.error,
            files: told.files,
            notes: told.notes,
        };
        count(&started, &ended);
        let call = started.id;
        self.audit.end(started, ended).await;
        Reply { call, output: told.output }
    }

    /// Makes of a server's answer what the engine gets, and saves what becomes a file.
    async fn result(
        &self,
        flight: &Flight<'_>,
        ground: &Ground,
        tool: &Tool,
        body: &Bytes,
    ) -> Result<Told, NotAResult> {
        let (settings, facts) = (&ground.catalog.settings, &ground.facts);
        let context = Context {
            known: flight.request.known,
            locale: facts.locale,
            limits: Limits::of(settings, facts.engine),
            schema: tool.output.as_ref(),
        };
        let mut plan = aside(body.len(), || results::plan(body, &context))?;
        let (parts, mut notes) = (std::mem::take(&mut plan.saves), std::mem::take(&mut plan.notes));
        let owner = Owner { id: flight.request.session.id, workspace: &facts.workspace };
        let quota = u64::from(settings.files_session_quota_bytes);
        let saved = self.files.save(owner, flight.id, quota, facts.locale, parts).await;
        notes.extend(saved.iter().filter_map(|saved| saved.problem.clone()));
        let files = saved.iter().filter(|saved| saved.at != Place::Nowhere).map(|saved| saved.path.clone()).collect();
        let output = plan.finish(&saved);
        let outcome = if output.is_error { Outcome::ToolError } else { Outcome::Ok };
        let error = if output.is_error { words::excerpt(&output) } else { String::new() };
        Ok(Told { outcome, error, output, files, notes })
    }

    /// Sends the call and watches over it: a cancellation, the end of the session or of the process stop it.
    async fn watched(&self, flight: &Flight<'_>, sending: &mut Sending<'_>) -> End {
        let request = flight.request;
        let (tool, started) = (sending.tool, sending.started);
        let stop = CancellationToken::new();
        let sent = self.send(flight, sending, &stop);
        tokio::pin!(sent);
        let late = sleep(RECORD_AFTER);
        tokio::pin!(late);
        let mut unrecorded = tool.hints.read_only;
        let why = loop {
            tokio::select! {
                biased;
                end = &mut sent => return end,
                () = request.cancel.cancelled() => break words::Stop::Cancelled,
                () = request.session.ended.cancelled() => break words::Stop::SessionEnded,
                () = self.draining.cancelled() => break words::Stop::Draining,
                () = &mut late, if unrecorded => {
                    unrecorded = false;
                    self.audit.still_running(Arc::clone(started)).await;
                }
            }
        };
        // The client tells the server, and comes back with what it has.
        stop.cancel();
        match sent.await {
            End::Failed(RequestError::Cancelled) => End::Stopped(why),
            end => end,
        }
    }

    async fn send(&self, flight: &Flight<'_>, sending: &mut Sending<'_>, stop: &CancellationToken) -> End {
        let Sending { tool, started, timeout, .. } = *sending;
        let request = flight.request;
        let arguments = std::str::from_utf8(&request.arguments).unwrap_or("{}");
        let members = [("name", Piece::Text(&tool.name)), ("arguments", Piece::Json(arguments))];
        let params = Params::new(if arguments.is_empty() { &members[..1] } else { &members });
        let on_progress = |report: Progress<'_>| flight.listener.progress(report);
        let options = RequestOptions {
            timeout: Some(timeout),
            cancel: Some(stop),
            on_progress: Some(&on_progress),
            call: Some(CallTag(started.id)),
        };
        loop {
            let acquired = stop.run_until_cancelled(self.upstreams.acquire(&tool.server, &request.session)).await;
            let lease = match acquired {
                None => return End::Failed(RequestError::Cancelled),
                Some(Ok(lease)) => lease,
                Some(Err(Acquire::Open(why))) => return End::NotOpened(why),
                Some(Err(Acquire::Busy)) => return End::NotOpened(words::BUSY),
            };
            let error = match lease.connection().request("tools/call", &params, options).await {
                Ok(answer) => return End::Answered(answer),
                Err(error) => error,
            };
            if matches!(error, RequestError::SessionGone) {
                self.upstreams.discard(tool.server.id, &lease).await;
            }
            let exit = if matches!(error, RequestError::Lost(_)) { lease.exit().await } else { None };
            match retry(&error, tool.hints, sending.retries) {
                Retry::Again => {
                    sending.retries += 1;
                    tracing::info!(call.id = %started.id, server.name = tool.server.name, error.message = %error, "call is sent again");
                }
                Retry::Stop => return exit.map_or(End::Failed(error), End::Crashed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// With one thread, work that is not put aside holds up the task that it waits for.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn the_processing_of_a_large_result_does_not_hold_up_other_calls() {
        let (sender, receiver) = mpsc::channel();
        let large = tokio::spawn(async move {
            tokio::spawn(async move { sender.send("another call went on").unwrap() });
            aside(LARGE + 1, || receiver.recv_timeout(Duration::from_secs(20)))
        });
        assert_eq!(large.await.unwrap(), Ok("another call went on"));
    }
}
