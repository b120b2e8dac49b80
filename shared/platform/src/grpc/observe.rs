//! One log line and one measurement for each request, and the guard against panics.
//!
//! The status of a gRPC answer comes after its body, in the trailers; so the answer's body carries the measurement, and
//! ends it when the trailers pass or when the caller goes away.

use std::{
    any::Any,
    convert::Infallible,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};
use tracing::{Instrument as _, Span};

use super::{
    guard::{Guard, Permit, Stopped},
    methods::{Method, UNKNOWN},
};
use crate::{error::to_status, telemetry};

/// What all requests of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) methods: std::collections::HashMap<String, Method>,
    pub(super) guard: Guard,
    pub(super) shutdown: CancellationToken,
}

/// Wraps the routes of a server.
#[derive(Debug, Clone)]
pub(super) struct ObserveLayer(pub(super) Arc<Shared>);

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, routes: S) -> Observe<S> {
        Observe { shared: self.0.clone(), routes }
    }
}

/// The routes of a server, observed and guarded.
#[derive(Debug, Clone)]
pub(super) struct Observe<S> {
    shared: Arc<Shared>,
    routes: S,
}

impl<S> Service<Request<Body>> for Observe<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Infallible>> {
        // Each call waits for a clone of the routes by itself.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(answer(self.shared.clone(), self.routes.clone(), request).map(Ok))
    }
}

async fn answer<S>(shared: Arc<Shared>, routes: S, request: Request<Body>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let method = shared.methods.get(request.uri().path());
    let label = method.map_or_else(|| UNKNOWN.to_owned(), |method| method.path.clone());
    let streams = method.is_some_and(|method| method.streams);
    let span = tracing::info_span!("rpc", rpc.method = label, otel.kind = "server");
    telemetry::continue_trace(request.headers(), &span);
    let measurement = Measurement { span: span.clone(), method: label, started: Instant::now(), code: None };
    let guarded = AssertUnwindSafe(shared.guard.pass(request, streams, routes)).catch_unwind().instrument(span);
    let (response, permit) = guarded.await.unwrap_or_else(|panic| (panicked(panic).into_http(), None));
    let (parts, body) = response.into_parts();
    let observed = Observed {
        body,
        // An answer without a body has its status in the headers.
        measurement: Some(measurement.with_code(code(&parts.headers))),
        drain: streams.then(|| Box::pin(shared.shutdown.clone().cancelled_owned())),
        _permit: permit,
    };
    Response::from_parts(parts, Body::new(observed))
}

/// The panic hook has logged the words of the panic.
fn panicked(panic: Box<dyn Any + Send>) -> Status {
    drop(panic);
    to_status(Stopped::Panicked)
}

fn code(headers: &HeaderMap) -> Option<Code> {
    headers.get("grpc-status").map(|value| Code::from_bytes(value.as_bytes()))
}

/// A request under way. Recorded when dropped.
struct Measurement {
    span: Span,
    method: String,
    started: Instant,
    code: Option<Code>,
}

impl Measurement {
    fn with_code(mut self, code: Option<Code>) -> Self {
        self.code = code.or(self.code);
        self
    }
}

impl Drop for Measurement {
    fn drop(&mut self) {
        // Without a status the caller went away before the end.
        let code = self.code.unwrap_or(Code::Cancelled);
        let (took, name) = (self.started.elapsed(), format!("{code:?}"));
        let labels = [("method", self.method.clone()), ("code", name.clone())];
        metrics::counter!("gatehouse_rpc_total", &labels).increment(1);
        metrics::histogram!("gatehouse_rpc_duration_seconds", &labels).record(took);
        let duration_ms = took.as_secs_f64() * 1_000.0;
        let method = &self.method;
        self.span.in_scope(|| {
            if method.starts_with("/grpc.health.") {
                tracing::debug!(rpc.code = name, duration_ms, "answered {method}");
            } else {
                tracing::info!(rpc.code = name, duration_ms, "answered {method}");
            }
        });
    }
}

/// The body of an answer, with what must live as long as it.
struct Observed {
    body: Body,
    measurement: Option<Measurement>,
    /// For streams: resolves when shutdown begins.
    drain: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    _permit: Option<Permit>,
}

impl Observed {
    fn end(&mut self, code: Option<Code>) {
        if let Some(measurement) = self.measurement.take() {
            drop(measurement.with_code(code));
        }
    }

    /// Ends the stream with the status of `stopped`.
    fn stop(&mut self, status: &Status) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.body = Body::empty();
        self.drain = None;
        self.end(Some(status.code()));
        let mut trailers = status.clone().into_http::<()>().into_parts().0.headers;
        trailers.remove(http::header::CONTENT_TYPE);
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}

impl HttpBody for Observed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.measurement.is_none() {
            return Poll::Ready(None);
        }
        if self.drain.as_mut().is_some_and(|drain| drain.as_mut().poll(context).is_ready()) {
            return self.stop(&to_status(Stopped::Draining));
        }
        let span = self.measurement.as_ref().map_or_else(Span::none, |measurement| measurement.span.clone());
        let body = &mut self.body;
        let polled = AssertUnwindSafe(|| span.in_scope(|| Pin::new(body).poll_frame(context)));
        let polled = match std::panic::catch_unwind(polled) {
            Ok(polled) => polled,
            Err(panic) => return self.stop(&panicked(panic)),
        };
        match ready!(polled) {
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_ref() {
                    self.end(code(trailers));
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(status)) => {
                self.end(Some(status.code()));
                Poll::Ready(Some(Err(status)))
            }
            None => {
                self.end(None);
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
