//! `tools/call` at the edge: plain JSON when the answer is quick, an event stream when it takes its time.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use gatehouse_mcp::{encode, message};
use gatehouse_platform::telemetry;
use gatehouse_types::CallId;
use http::{HeaderMap, Response, StatusCode};
use tokio::time::sleep;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument as _, Span};

use super::{
    Edge, QUICK,
    access::{self, Accepts},
    body::{self, Body},
    exchange::{Exchange, Message, Next},
    modern,
    progress::Ticker,
    session_id::{EdgeSession, actor_hash},
};
use crate::{call::Request, raw, raw::RawObject, results::Known, snapshot::Principal};

/// A call as an engine made it.
pub(super) struct ToolCall {
    /// The request id as JSON text.
    pub(super) rpc_id: String,
    /// The name of the tool.
    pub(super) name: String,
    /// The arguments as JSON text; empty for none.
    pub(super) arguments: Bytes,
    /// The engine's progress token as JSON text.
    pub(super) progress_token: Option<String>,
    /// W3C trace id, or empty.
    pub(super) trace_id: String,
    /// The span of the call; none while no collector is configured.
    pub(super) span: Span,
}

/// In which revision a call came.
#[derive(Clone, Copy)]
pub(super) enum Era {
    /// Up to 2025-11-25: a lost connection is not a cancellation.
    Legacy(EdgeSession),
    /// 2026-07-28: closing the stream cancels.
    Modern,
}

impl ToolCall {
    /// Reads the parameters of `tools/call`; the words are for the error.
    pub(super) fn read(
        rpc_id: &str,
        params: &RawObject<'_>,
        body: &Bytes,
        headers: &HeaderMap,
    ) -> Result<Self, &'static str> {
        let name = params.string("name").ok_or("`name` must be the name of a tool")?.into_owned();
        let arguments = params.get("arguments").filter(|arguments| *arguments != "null");
        let token = params.object("_meta").and_then(|meta| meta.get("progressToken"));
        let token = token.filter(|token| matches!(raw::first_byte(token), b'"' | b'-' | b'0'..=b'9'));
        let (span, trace_id) = traced(headers, &name);
        Ok(Self {
            rpc_id: rpc_id.to_owned(),
            name,
            arguments: arguments.map_or_else(Bytes::new, |arguments| body.slice_ref(arguments.as_bytes())),
            progress_token: token.map(str::to_owned),
            trace_id,
            span,
        })
    }
}

/// The span of a call, as a child of the engine's, and its trace id; without a collector, the engine's trace id alone.
fn traced(headers: &HeaderMap, name: &str) -> (Span, String) {
    if !telemetry::exports_spans() {
        return (Span::none(), access::trace_id(headers));
    }
    let span = tracing::info_span!("tools/call", otel.kind = "server", tool.name = name);
    telemetry::continue_trace(headers, &span);
    let trace_id = span.in_scope(telemetry::trace_id);
    (span, trace_id)
}

impl Edge {
    /// Makes a call and answers it.
    pub(super) async fn tools_call(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        call: ToolCall,
        era: Era,
        accepts: Accepts,
    ) -> Response<Body> {
        let cancel = CancellationToken::new();
        let ticker = Ticker::new(call.progress_token.clone());
        let session = &principal.session;
        let (id, locale) = (CallId::new(), session.facts().locale);
        let exchange = Exchange::new(id, session.id, actor_hash(&principal.actor), call.rpc_id.clone(), ticker, locale);
        let span = call.span.clone();
        let run = Arc::clone(self).run(Arc::clone(principal), call, era, cancel.clone(), Arc::clone(&exchange));
        let stop = matches!(era, Era::Modern).then(|| cancel.clone());
        let mut running = Running::new(Box::pin(run.instrument(span)), self.tasks.clone(), stop);
        if accepts.json {
            tokio::select! {
                biased;
                () = running.finished() => {}
                () = exchange.wait(0), if accepts.events => {}
                () = sleep(QUICK), if accepts.events => {}
            }
            if let Some(answer) = exchange.take_only_answer() {
                return body::json(StatusCode::OK, answer);
            }
            if !accepts.events {
                return body::json(StatusCode::OK, last(&exchange));
            }
        }
        match era {
            Era::Legacy(session) => {
                running.detach();
                self.streams.keep(&exchange);
                body::events(super::notices::replay(exchange, None, Some(session.protocol_version()), None))
            }
            Era::Modern => {
                running.detach();
                body::events(super::notices::replay(exchange, None, None, Some(cancel.drop_guard())))
            }
        }
    }

    async fn run(
        self: Arc<Self>,
        principal: Arc<Principal>,
        call: ToolCall,
        era: Era,
        cancel: CancellationToken,
        exchange: Arc<Exchange>,
    ) {
        // Held until the call has ended, so that a cancellation finds it.
        let (_in_flight, known) = match era {
            Era::Legacy(session) => {
                let Some(entered) = self.streams.enter(session.id, &call.rpc_id, &cancel) else {
                    let words = "a request with this id is still in flight in this session";
                    exchange.finish(vec![encode::error(Some(&call.rpc_id), message::INVALID_REQUEST, words, None)]);
                    return;
                };
                (Some(entered), Known::at(session.protocol_version()))
            }
            Era::Modern => (None, Known::ALL),
        };
        let request = Request {
            id: CallId::from_uuid(exchange.stream),
            session: Arc::clone(&principal.session),
            actor: principal.actor.clone(),
            principal: Some(principal),
            name: call.name,
            arguments: call.arguments,
            known,
            cancel,
            trace_id: call.trace_id,
        };
        let reply = self.calls.run(&request, exchange.as_ref()).await;
        let pieces = match era {
            Era::Legacy(_) => reply.output.pieces,
            Era::Modern => modern::complete(reply.output.pieces),
        };
        exchange.finish(body::result(&call.rpc_id, pieces));
    }
}

fn last(exchange: &Exchange) -> Message {
    let mut last = Message::new();
    for index in 0.. {
        match exchange.read(index) {
            Next::Message(message) => last = message,
            Next::End | Next::Nothing => break,
        }
    }
    last
}

/// A call that runs inside its request, as long as that lives, and by itself after that.
struct Running {
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    tasks: TaskTracker,
    /// Cancelled when the request goes away before the call has ended.
    cancel: Option<CancellationToken>,
}

impl Running {
    fn new(
        future: Pin<Box<dyn Future<Output = ()> + Send>>,
        tasks: TaskTracker,
        cancel: Option<CancellationToken>,
    ) -> Self {
        Self { future: Some(future), tasks, cancel }
    }

    /// Returns when the call has ended.
    fn finished(&mut self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            let Some(future) = self.future.as_mut() else { return Poll::Ready(()) };
            let polled = future.as_mut().poll(context);
            if polled.is_ready() {
                self.future = None;
            }
            polled
        })
    }

    /// Lets the call run by itself; the event stream watches over it now.
    fn detach(mut self) {
        self.cancel = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            if let Some(cancel) = &self.cancel {
                cancel.cancel();
            }
            self.tasks.spawn(future);
        }
    }
}
