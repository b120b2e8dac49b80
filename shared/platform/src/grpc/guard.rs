//! What a request must pass before its handler: the bound, the credential, the deadline.

use std::{sync::Arc, time::Duration};

use http::{Extensions, HeaderMap, Request, Response, header::AUTHORIZATION};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{
    body::Body,
    transport::server::{TcpConnectInfo, TlsConnectInfo},
};
use tower::ServiceExt as _;

use crate::{
    Authenticator,
    auth::{Caller, Refusal},
    error::{Failure, Reason, to_status},
};

/// How long a unary RPC may take when the caller names no time.
pub(super) const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);
/// Longest time a caller may name for a unary RPC.
pub(super) const MAX_DEADLINE: Duration = Duration::from_mins(5);
/// The answer leaves this long before the deadline (and at most a tenth of it), so that the caller gets our words and
/// not its own transport's, nor tonic's, which counts the same time.
const DEADLINE_MARGIN: Duration = Duration::from_millis(10);
/// Most unary RPCs at once; more wait, within their deadlines.
pub(super) const MOST_UNARY: usize = 512;
/// Most streams at once; more are refused.
pub(super) const MOST_STREAMS: usize = 2_048;

/// Why a request does not reach its handler, or gets no answer from it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    #[error("the deadline passed")]
    Deadline,
    #[error("too many streams are open")]
    Streams,
    #[error("the server is shutting down")]
    Draining,
    #[error("the handler panicked")]
    Panicked,
}

impl Failure for Stopped {
    fn reason(&self) -> Reason {
        match self {
            Self::Deadline => Reason::DeadlineExceeded,
            Self::Streams => Reason::ResourceExhausted,
            Self::Draining => Reason::Unavailable,
            Self::Panicked => Reason::Internal,
        }
    }

    fn external(&self) -> String {
        match self {
            Self::Deadline => "it took longer than the request's deadline; whether it was done is not known",
            Self::Streams => "too many streams are open at this server; close some, or try again later",
            Self::Draining => "this server is going away; connect again and go on from where you were",
            Self::Panicked => "a defect in Gatehouse; its log says more",
        }
        .to_owned()
    }
}

/// The bounds and the credentials of a server.
#[derive(Debug)]
pub(super) struct Guard {
    authenticator: Arc<Authenticator>,
    unary: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

/// A place among the bounded requests, to be kept until the answer has been sent.
pub(super) type Permit = OwnedSemaphorePermit;

impl Guard {
    pub(super) fn new(authenticator: Arc<Authenticator>) -> Self {
        let (unary, streams) = (Arc::new(Semaphore::new(MOST_UNARY)), Arc::new(Semaphore::new(MOST_STREAMS)));
        Self { authenticator, unary, streams }
    }

    /// The answer of `routes`, or that of the guard.
    pub(super) async fn pass<S>(
        &self,
        mut request: Request<Body>,
        streams: bool,
        routes: S,
    ) -> (Response<Body>, Option<Permit>)
    where
        S: tower::Service<Request<Body>, Response = Response<Body>, Error = std::convert::Infallible>,
    {
        let deadline = deadline(request.headers(), streams);
        let answered = within(deadline, async {
            let permit = self.permit(streams).await.map_err(to_status)?;
            if !is_open(request.uri().path()) {
                let caller = self.caller(request.headers(), request.extensions()).await.map_err(to_status)?;
                request.extensions_mut().insert(caller);
            }
            let Ok(response) = routes.oneshot(request).await;
            Ok((response, Some(permit)))
        });
        match answered.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(status)) => (tonic::Status::into_http(status), None),
            Err(stopped) => (to_status(stopped).into_http(), None),
        }
    }

    async fn permit(&self, streams: bool) -> Result<Permit, Stopped> {
        if streams {
            return self.streams.clone().try_acquire_owned().map_err(|_| Stopped::Streams);
        }
        // The semaphore is never closed.
        self.unary.clone().acquire_owned().await.map_err(|_| Stopped::Draining)
    }

    async fn caller(&self, headers: &HeaderMap, extensions: &Extensions) -> Result<Caller, Refusal> {
        if let Some(header) = headers.get(AUTHORIZATION) {
            return self.authenticator.by_header(header.to_str().ok()).await;
        }
        // rustls has checked the certificate against the configured authority before the first byte of HTTP.
        let tls = extensions.get::<TlsConnectInfo<TcpConnectInfo>>();
        match tls.and_then(TlsConnectInfo::peer_certs) {
            Some(certificates) if !certificates.is_empty() => Ok(Caller::Service),
            _ => Err(Refusal::Unauthenticated),
        }
    }
}

fn is_open(path: &str) -> bool {
    path.starts_with("/grpc.health.v1.Health/")
}

async fn within<T>(deadline: Option<Duration>, answer: impl Future<Output = T>) -> Result<T, Stopped> {
    match deadline {
        Some(deadline) => tokio::time::timeout(deadline, answer).await.map_err(|_| Stopped::Deadline),
        None => Ok(answer.await),
    }
}

/// What the caller asked for in `grpc-timeout`, at most [`MAX_DEADLINE`]; else [`DEFAULT_DEADLINE`]. Streams have none.
fn deadline(headers: &HeaderMap, streams: bool) -> Option<Duration> {
    if streams {
        return None;
    }
    let asked = headers.get("grpc-timeout").and_then(|value| parse_timeout(value.to_str().ok()?));
    let asked = asked.map(|asked| asked.saturating_sub(DEADLINE_MARGIN.min(asked / 10)));
    Some(asked.unwrap_or(DEFAULT_DEADLINE).min(MAX_DEADLINE))
}

/// `grpc-timeout` of the gRPC-over-HTTP/2 specification: at most 8 digits and a unit.
fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_the_callers_up_to_the_most_and_streams_have_none() {
        let with = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            deadline(&headers, false)
        };
        assert_eq!(with("1S"), Some(Duration::from_millis(990)));
        assert_eq!(with("50m"), Some(Duration::from_millis(45)));
        assert_eq!(with("50u"), Some(Duration::from_micros(45)));
        assert_eq!(with("99999999H"), Some(MAX_DEADLINE));
        for wrong in ["", "S", "1", "-1S", "1s", "123456789S", "1é"] {
            assert_eq!(parse_timeout(wrong), None, "{wrong}");
        }
        assert_eq!(deadline(&HeaderMap::new(), false), Some(DEFAULT_DEADLINE));
        assert_eq!(deadline(&HeaderMap::new(), true), None);
    }
}
