//! One tool call, from the name that an engine used to the result that it gets.
//!
//! decide ([`mod@decide`], pure) → record → connection → send → result ([`crate::results`], pure) → record. The call does not
//! depend on the engine's connection: it runs until the server answers, its time is over, or someone cancels it.

pub mod decide;
pub mod words;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gatehouse_mcp::client::{Answer, Call as CallTag, Progress, RequestError, RequestOptions};
use gatehouse_mcp::encode::{Params, Piece};
use gatehouse_types::{CallId, Clock, ReplicaId};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::decide::{Decision, Retry, decide, retry};
use crate::{
    audit::{
        Ended, Outcome, Started, mask,
        writer::{Begun, Writer},
    },
    catalog::{Catalog, Tool},
    results::{self, Known, Output},
    snapshot::{Principal, Session, Snapshot},
    store::{ANSWER_WITHIN, within},
    upstream::{Acquire, Upstreams},
};

/// How often a decision that went stale is made anew before the call is refused.
const DECISIONS: u32 = 10;
/// A read-only call that takes longer gets its audit row while it still runs.
const RECORD_AFTER: Duration = Duration::from_secs(1);

/// What calls need.
pub struct Calls {
    /// Catalog and sessions.
    pub snapshot: Arc<Snapshot>,
    /// Connections to servers.
    pub upstreams: Arc<Upstreams>,
    /// The audit.
    pub audit: Writer,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// This replica.
    pub replica: ReplicaId,
    /// Cancelled when calls that still run must end with an answer.
    pub draining: CancellationToken,
}

/// A call as it came.
pub struct Request {
    /// The session.
    pub session: Arc<Session>,
    /// Whose token brought it; `None` when no engine did.
    pub principal: Option<Arc<Principal>>,
    /// The actor; empty is the default one.
    pub actor: String,
    /// The name that the engine used.
    pub name: String,
    /// The arguments as JSON text that is one valid value; empty for none.
    pub arguments: Bytes,
    /// Content types that the engine knows.
    pub known: Known,
    /// Cancels the call.
    pub cancel: CancellationToken,
    /// W3C trace id in hexadecimal, or empty.
    pub trace_id: String,
}

/// Where progress goes.
pub type OnProgress<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

/// What a call came to.
#[derive(Debug)]
pub struct Reply {
    /// Its id in the audit.
    pub call: CallId,
    /// The result for the engine.
    pub output: Output,
}

/// How the wait for a server ended.
enum End {
    Answered(Answer),
    Failed(RequestError),
    NotOpened(String),
    Stopped(words::Stop),
}

impl Calls {
    /// Makes a call. Every way it can go ends in a result that the model can read, and in a row of the audit.
    pub async fn run(&self, request: &Request, on_progress: OnProgress<'_>) -> Reply {
        let _active = request.session.activity.begin();
        let began = Instant::now();
        for _ in 0..DECISIONS {
            if self.snapshot.ensure_trusted().await.is_err() {
                return self.unrecorded(words::DATABASE);
            }
            let catalog = self.snapshot.catalog();
            let facts = request.session.facts();
            if let Some(principal) = &request.principal {
                match within(ANSWER_WITHIN, self.snapshot.sessions.is_good(principal, facts.epoch)).await {
                    Ok(true) => {}
                    Ok(false) => return self.unrecorded(words::SESSION_ENDED),
                    Err(_) => return self.unrecorded(words::DATABASE),
                }
            }
            let offer = catalog.offer(facts.profile, facts.read_only);
            let tool = match decide(
                offer.map(AsRef::as_ref),
                &request.name,
                &request.arguments,
                catalog.settings.max_arguments_bytes,
            ) {
                Decision::Run(tool) => Arc::clone(tool),
                Decision::Refuse(refusal) => {
                    let started = Arc::new(self.started(request, &catalog, None, facts.epoch));
                    return self.refused(started, began, refusal).await;
                }
            };
            let started = Arc::new(self.started(request, &catalog, Some(&tool), facts.epoch));
            if !tool.hints.read_only {
                match self.audit.begin(Arc::clone(&started), catalog.epoch).await {
                    Begun::Recorded => {}
                    Begun::Failed => return self.unwritten(started, began),
                    Begun::Stale => {
                        if request.session.ended.is_cancelled() || self.snapshot.refresh().await.is_err() {
                            return self.unrecorded(words::SESSION_ENDED);
                        }
                        continue;
                    }
                }
            }
            return self.carry_out(request, &catalog, &tool, started, began, on_progress).await;
        }
        self.unrecorded(words::KEEPS_CHANGING)
    }

    async fn carry_out(
        &self,
        request: &Request,
        catalog: &Catalog,
        tool: &Arc<Tool>,
        started: Arc<Started>,
        began: Instant,
        on_progress: OnProgress<'_>,
    ) -> Reply {
        let mut retries = 0;
        let foreground = Duration::from_secs(u64::from(catalog.settings.foreground_max_sec));
        let timeout = tool.server.request_timeout.min(foreground);
        let end = self.watched(request, tool, &started, timeout, &mut retries, on_progress).await;
        let server = tool.server.name.as_str();
        let told = match end {
            End::Answered(answer) => match results::for_engine(&answer.result_bytes(), request.known) {
                Ok(output) => {
                    let outcome = if output.is_error { Outcome::ToolError } else { Outcome::Ok };
                    let error = if output.is_error { words::excerpt(&output) } else { String::new() };
                    words::Told { outcome, error, output }
                }
                Err(wrong) => words::not_a_result(server, &wrong),
            },
            End::Failed(error) => words::failed(server, &error, tool.hints, timeout),
            End::NotOpened(why) => words::not_opened(server, &why),
            End::Stopped(stop) => words::stopped(stop),
        };
        let keep = catalog.settings.audit_payload_bytes as usize;
        let ended = Ended {
            outcome: told.outcome,
            duration_us: micros(began),
            retries,
            result_bytes: i64::try_from(told.output.pieces.iter().map(Bytes::len).sum::<usize>()).unwrap_or(i64::MAX),
            structured_result: told
                .output
                .structured
                .as_deref()
                .map(|json| mask::masked(json, keep, &tool.server.mask_rules, &tool.name)),
            error: told.error,
        };
        count(&started, &ended);
        let call = started.id;
        self.audit.end(started, ended).await;
        Reply { call, output: told.output }
    }

    /// Sends the call and watches over it: a cancellation, the end of the session or of the process stop it.
    async fn watched(
        &self,
        request: &Request,
        tool: &Arc<Tool>,
        started: &Arc<Started>,
        timeout: Duration,
        retries: &mut i32,
        on_progress: OnProgress<'_>,
    ) -> End {
        let stop = CancellationToken::new();
        let sent = self.send(request, tool, started.id, timeout, &stop, retries, on_progress);
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

    #[expect(clippy::too_many_arguments, reason = "one call site, and each is a different thing")]
    async fn send(
        &self,
        request: &Request,
        tool: &Arc<Tool>,
        call: CallId,
        timeout: Duration,
        stop: &CancellationToken,
        retries: &mut i32,
        on_progress: OnProgress<'_>,
    ) -> End {
        let arguments = std::str::from_utf8(&request.arguments).unwrap_or("{}");
        let members = [("name", Piece::Text(&tool.name)), ("arguments", Piece::Json(arguments))];
        let params = Params::new(if arguments.is_empty() { &members[..1] } else { &members });
        let options = RequestOptions {
            timeout: Some(timeout),
            cancel: Some(stop),
            on_progress: Some(on_progress),
            call: Some(CallTag(call)),
        };
        loop {
            let acquired = stop.run_until_cancelled(self.upstreams.acquire(&tool.server, &request.session)).await;
            let lease = match acquired {
                None => return End::Failed(RequestError::Cancelled),
                Some(Ok(lease)) => lease,
                Some(Err(Acquire::Open(why))) => return End::NotOpened(why),
                Some(Err(Acquire::Busy)) => return End::NotOpened(words::BUSY.to_owned()),
            };
            let error = match lease.connection().request("tools/call", &params, options).await {
                Ok(answer) => return End::Answered(answer),
                Err(error) => error,
            };
            if matches!(error, RequestError::SessionGone) {
                self.upstreams.discard(&lease).await;
            }
            match retry(&error, tool.hints, *retries) {
                Retry::Again => {
                    *retries += 1;
                    tracing::info!(call.id = %call, server.name = tool.server.name, error.message = %error, "call is sent again");
                }
                Retry::Stop => return End::Failed(error),
            }
        }
    }

    fn started(&self, request: &Request, catalog: &Catalog, tool: Option<&Arc<Tool>>, session_epoch: i64) -> Started {
        let arguments = std::str::from_utf8(&request.arguments).unwrap_or_default();
        Started {
            id: CallId::new(),
            session: request.session.id,
            session_epoch,
            actor: request.actor.clone(),
            run: request.session.facts().runs.get(&request.actor).copied(),
            server_id: tool.map(|tool| tool.server.id),
            server: tool.map(|tool| tool.server.name.clone()).unwrap_or_default(),
            tool: tool.map_or_else(|| words::bounded(&request.name, 256), |tool| tool.name.clone()),
            hints: tool.map_or(0, |tool| tool.hints.to_bits()),
            started_at: self.clock.now(),
            arguments: mask::masked(
                arguments,
                catalog.settings.audit_payload_bytes as usize,
                catalog.mask_rules(tool),
                tool.map_or("", |tool| &tool.name),
            ),
            arguments_bytes: i64::try_from(arguments.len()).unwrap_or(i64::MAX),
            arguments_sha256: Sha256::digest(arguments.as_bytes()).into(),
            trace_id: request.trace_id.clone(),
            replica: self.replica,
        }
    }

    async fn refused(&self, started: Arc<Started>, began: Instant, refusal: decide::Refusal) -> Reply {
        let (reply, ended) = refuse(&started, began, Outcome::Denied, refusal.to_string());
        self.audit.end(started, ended).await;
        reply
    }

    /// A call whose row could not be written before it was to go out. It did not go out.
    fn unwritten(&self, started: Arc<Started>, began: Instant) -> Reply {
        let (reply, ended) = refuse(&started, began, Outcome::NotSent, words::DATABASE.to_owned());
        self.audit.end_unwritten(started, ended);
        reply
    }

    /// A refusal that could not be recorded, because the record itself is what fails. Nothing was sent.
    #[expect(clippy::unused_self, reason = "reads like its siblings")]
    fn unrecorded(&self, text: &str) -> Reply {
        Reply { call: CallId::new(), output: results::refusal(text) }
    }
}

fn refuse(started: &Started, began: Instant, outcome: Outcome, text: String) -> (Reply, Ended) {
    let output = results::refusal(&text);
    let ended = Ended {
        outcome,
        duration_us: micros(began),
        retries: 0,
        result_bytes: i64::try_from(output.pieces.iter().map(Bytes::len).sum::<usize>()).unwrap_or(i64::MAX),
        structured_result: None,
        error: text,
    };
    count(started, &ended);
    (Reply { call: started.id, output }, ended)
}

fn micros(began: Instant) -> i64 {
    i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX)
}

/// Counts a call by server and outcome. Servers are few; tools are not a label.
fn count(started: &Started, ended: &Ended) {
    let seconds = Duration::from_micros(u64::try_from(ended.duration_us).unwrap_or(0)).as_secs_f64();
    let server = started.server.clone();
    metrics::histogram!("gatehouse_call_seconds", "server" => server, "outcome" => ended.outcome.as_str())
        .record(seconds);
}
