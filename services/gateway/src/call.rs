//! One tool call, from the name that an engine used to the result that it gets.
//!
//! decide ([`mod@decide`], pure) → ask a person, if need be (`ask`) → record → connection → send (`send`) → result
//! ([`crate::results`], pure) with its files ([`crate::files`]) → record. The call does not depend on the engine's connection: it
//! runs until the server answers, its time is over, or someone cancels it.

mod ask;
pub mod card;
pub mod decide;
mod send;
pub mod terms;
pub mod words;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gatehouse_mcp::client::Progress;
use gatehouse_types::{CallId, Clock, Locale, ReplicaId, shown};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{
    ask::{Approval, Asked, Question},
    decide::{Decision, Permit, Refusal, Standing, decide},
    words::{Told, Words},
};
use crate::{
    audit::{
        Decided, Ended, Outcome, Started, mask,
        writer::{Begun, Writer},
    },
    catalog::{Catalog, Tool},
    files::Files,
    peers::Cards,
    results::{self, Known, Output},
    snapshot::{Facts, Principal, Session, Snapshot},
    store::{ANSWER_WITHIN, Pool, within},
    upstream::Upstreams,
};

/// How often a decision that went stale is made anew before the call is refused.
const DECISIONS: u32 = 10;

/// What calls need.
pub struct Calls {
    /// Catalog and sessions.
    pub snapshot: Arc<Snapshot>,
    /// Connections to servers.
    pub upstreams: Arc<Upstreams>,
    /// Cards.
    pub cards: Cards,
    /// Files of results.
    pub files: Arc<Files>,
    /// The audit.
    pub audit: Writer,
    /// The database, for what a person's answer changes.
    pub pool: Pool,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// This replica.
    pub replica: ReplicaId,
    /// Cancelled when calls that still run must end with an answer.
    pub draining: CancellationToken,
}

/// A call as it came.
pub struct Request {
    /// Its id in the audit.
    pub id: CallId,
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

/// Hears how a call goes on, for whoever waits for it.
pub trait Listener: Send + Sync {
    /// The server reports progress.
    fn progress(&self, report: Progress<'_>);
    /// The call waits for a person, in words for people; or no longer does.
    fn waits(&self, what_for: Option<&str>);
}

/// What a call came to.
#[derive(Debug)]
pub struct Reply {
    /// Its id in the audit.
    pub call: CallId,
    /// The result for the engine.
    pub output: Output,
}

/// A call that is under way.
struct Flight<'a> {
    request: &'a Request,
    listener: &'a dyn Listener,
    id: CallId,
    began: Instant,
    /// What a person said, as long as it is not used up.
    approval: Option<Approval>,
    /// The row that the audit has been given because the call waits or waited for a person.
    waiting: Option<Arc<Started>>,
}

/// The state that a decision is made on.
struct Ground {
    catalog: Arc<Catalog>,
    facts: Arc<Facts>,
}

impl Calls {
    /// Makes a call. Every way it can go ends in a result that the model can read, and in a row of the audit.
    pub async fn run(&self, request: &Request, listener: &dyn Listener) -> Reply {
        let _active = request.session.activity.begin();
        let mut flight =
            Flight { request, listener, id: request.id, began: Instant::now(), approval: None, waiting: None };
        let reply = self.fly(&mut flight).await;
        if let Some(unused) = flight.approval.take() {
            // The person said yes, and the call did not go out.
            self.cards.close(unused.card, card::Closed::Superseded).await;
        }
        reply
    }

    async fn fly(&self, flight: &mut Flight<'_>) -> Reply {
        let request = flight.request;
        let mut stale = 0;
        while stale < DECISIONS {
            let ground = match self.ground(request).await {
                Ok(ground) => ground,
                Err(words) => return self.unrecorded(flight, &words),
            };
            let Ground { catalog, facts } = &ground;
            let call = decide::Call {
                name: &request.name,
                arguments: &request.arguments,
                most: catalog.settings.max_arguments_bytes,
            };
            let offer = catalog.offer(facts.profile, facts.mode).map(AsRef::as_ref);
            let decision = decide(offer, facts.mode, call, |tool| standing(tool, facts, flight.approval.as_ref()));
            let approved = matches!(decision, Decision::Run(_, Permit::Approved));
            let mut decided = Decided::default();
            if let Some(void) = flight.approval.take_if(|_| !approved) {
                decided = void.decided("superseded");
                self.cards.close(void.card, card::Closed::Superseded).await;
            }
            let (tool, permit) = match decision {
                Decision::Run(tool, permit) => (Arc::clone(tool), permit),
                Decision::Refuse(refusal) => match self.refused(flight, &ground, &refusal, decided).await {
                    Some(reply) => return reply,
                    None => continue,
                },
                Decision::Ask { tool, may_remember } => {
                    let tool = Arc::clone(tool);
                    let question = Question { ground: &ground, tool: &tool, may_remember };
                    match self.ask(flight, question).await {
                        Asked::Approved(approval) => flight.approval = Some(approval),
                        Asked::Moved => {}
                        Asked::Unrecorded(words) => return self.unrecorded(flight, &words),
                        Asked::Ended { decided, outcome, words } => {
                            let started = flight.started(self, &ground, Some(&tool), decided);
                            return self.not_sent(started, flight, outcome, &words, facts.locale).await;
                        }
                    }
                    continue;
                }
            };
            let decided = permitted(permit, facts, &tool, flight.approval.as_ref());
            let started = flight.started(self, &ground, Some(&tool), decided);
            if !tool.hints.read_only {
                match self.audit.begin(Arc::clone(&started), catalog.epoch).await {
                    Begun::Recorded => {}
                    Begun::Failed => return self.unwritten(started, flight, facts.locale),
                    Begun::Stale => {
                        stale += 1;
                        if request.session.ended.is_cancelled() || self.snapshot.refresh().await.is_err() {
                            return self.unrecorded(flight, &words::SESSION_ENDED);
                        }
                        continue;
                    }
                }
            }
            // Used up: it goes out now.
            flight.approval = None;
            return self.carry_out(flight, &ground, &tool, started).await;
        }
        self.unrecorded(flight, &words::KEEPS_CHANGING)
    }

    /// What the next decision is made on, or why there can be none.
    async fn ground(&self, request: &Request) -> Result<Ground, Words> {
        self.snapshot.ensure_trusted().await.map_err(|_| words::DATABASE)?;
        let (catalog, facts) = (self.snapshot.catalog(), request.session.facts());
        if let Some(principal) = &request.principal {
            match within(ANSWER_WITHIN, self.snapshot.sessions.is_good(principal, facts.epoch)).await {
                Ok(true) => {}
                Ok(false) => return Err(words::SESSION_ENDED),
                Err(_) => return Err(words::DATABASE),
            }
        }
        if request.session.ended.is_cancelled() {
            return Err(words::SESSION_ENDED);
        }
        Ok(Ground { catalog, facts })
    }

    /// Whether the state that was decided on is the one of now. A snapshot may be a moment behind; what a card shows and promises
    /// may not, nor may a call be refused that is allowed by now.
    async fn is_current(&self, request: &Request, ground: &Ground) -> Result<bool, Words> {
        self.snapshot.confirm().await.map_err(|_| words::DATABASE)?;
        let (catalog, facts) = (self.snapshot.catalog(), request.session.facts());
        Ok(catalog.epoch == ground.catalog.epoch && facts.epoch == ground.facts.epoch)
    }

    /// Refuses a call; `None` when it must be decided anew.
    async fn refused(
        &self,
        flight: &Flight<'_>,
        ground: &Ground,
        refusal: &Refusal,
        decided: Decided,
    ) -> Option<Reply> {
        match self.is_current(flight.request, ground).await {
            Ok(true) => {}
            Ok(false) => return None,
            Err(words) => return Some(self.unrecorded(flight, &words)),
        }
        let started = flight.started(self, ground, None, decided);
        let words = words::refused(refusal);
        Some(self.not_sent(started, flight, Outcome::Denied, &words, ground.facts.locale).await)
    }

    /// Ends a call that did not go out, with its row.
    async fn not_sent(
        &self,
        started: Arc<Started>,
        flight: &Flight<'_>,
        outcome: Outcome,
        words: &Words,
        locale: Locale,
    ) -> Reply {
        let (reply, ended) = refuse(&started, flight.began, words::told(outcome, words, locale));
        self.audit.end(started, ended).await;
        reply
    }

    /// A call whose row could not be written before it was to go out. It did not go out.
    fn unwritten(&self, started: Arc<Started>, flight: &Flight<'_>, locale: Locale) -> Reply {
        let (reply, ended) = refuse(&started, flight.began, words::told(Outcome::NotSent, &words::DATABASE, locale));
        self.audit.end_unwritten(started, ended);
        reply
    }

    /// A refusal whose record is not waited for, because the record itself may be what fails. Nothing was sent. Only a call that
    /// has waited for a person has a row.
    fn unrecorded(&self, flight: &Flight<'_>, words: &Words) -> Reply {
        let told = words::told(Outcome::NotSent, words, flight.request.session.facts().locale);
        match &flight.waiting {
            Some(started) => {
                let (reply, ended) = refuse(started, flight.began, told);
                self.audit.end_unwritten(Arc::clone(started), ended);
                reply
            }
            None => Reply { call: flight.id, output: told.output },
        }
    }
}

impl Flight<'_> {
    fn started(&self, calls: &Calls, ground: &Ground, tool: Option<&Arc<Tool>>, decided: Decided) -> Arc<Started> {
        let request = self.request;
        let arguments = self.arguments();
        let keep = ground.catalog.settings.audit_payload_bytes as usize;
        Arc::new(Started {
            id: self.id,
            session: request.session.id,
            session_epoch: ground.facts.epoch,
            actor: request.actor.clone(),
            run: ground.facts.runs.get(&request.actor).copied(),
            server_id: tool.map(|tool| tool.server.id),
            server: tool.map(|tool| tool.server.name.clone()).unwrap_or_default(),
            tool: tool.map_or_else(|| shown::line(&request.name, 256), |tool| tool.name.clone()),
            hints: tool.map_or(0, |tool| tool.hints.to_bits()),
            // The same in every row of one call.
            started_at: self.waiting.as_ref().map_or_else(|| calls.clock.now(), |waiting| waiting.started_at),
            arguments: mask::masked(
                arguments,
                keep,
                ground.catalog.mask_rules(tool),
                tool.map_or("", |tool| &tool.name),
            ),
            arguments_bytes: i64::try_from(arguments.len()).unwrap_or(i64::MAX),
            arguments_sha256: Sha256::digest(arguments.as_bytes()).into(),
            trace_id: request.trace_id.clone(),
            replica: calls.replica,
            policy: tool.map_or("", |tool| tool.policy.as_str()),
            mode: ground.facts.mode.as_str(),
            decided,
        })
    }

    fn arguments(&self) -> &str {
        std::str::from_utf8(&self.request.arguments).unwrap_or_default()
    }
}

/// What people have said that a call of this tool can stand on now.
fn standing(tool: &Tool, facts: &Facts, approval: Option<&Approval>) -> Standing {
    Standing {
        granted: granted(tool, facts).is_some(),
        approved: approval
            .is_some_and(|approval| approval.binding.terms == terms::terms(tool, facts.mode, facts.profile)),
    }
}

/// The yes for the rest of the session, when it was given for the definition that the tool has now.
fn granted<'a>(tool: &Tool, facts: &'a Facts) -> Option<&'a crate::store::snapshot::Granted> {
    if facts.grants.is_empty() {
        return None;
    }
    let granted = facts.grants.get(&(tool.server.id, tool.name.clone()))?;
    (granted.fingerprint == tool.fingerprint).then_some(granted)
}

fn permitted(permit: Permit, facts: &Facts, tool: &Tool, approval: Option<&Approval>) -> Decided {
    match permit {
        Permit::Allowed => Decided { word: "allowed", ..Decided::default() },
        Permit::Approved => approval.map(|approval| approval.decided(approval.word)).unwrap_or_default(),
        Permit::Granted => {
            let granted = granted(tool, facts);
            Decided {
                word: "granted",
                by: granted.map(|granted| granted.by.clone()).unwrap_or_default(),
                at: granted.map(|granted| granted.at),
                interaction: None,
            }
        }
    }
}

fn refuse(started: &Started, began: Instant, told: Told) -> (Reply, Ended) {
    let ended = Ended {
        outcome: told.outcome,
        duration_us: micros(began),
        retries: 0,
        result_bytes: size(&told.output),
        structured_result: None,
        error: told.error,
        files: Vec::new(),
        notes: Vec::new(),
    };
    count(started, &ended);
    (Reply { call: started.id, output: told.output }, ended)
}

fn size(output: &results::Output) -> i64 {
    i64::try_from(output.pieces.iter().map(Bytes::len).sum::<usize>()).unwrap_or(i64::MAX)
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
