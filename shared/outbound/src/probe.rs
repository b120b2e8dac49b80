//! The connection test: one fresh connection, step by step, with the time of each.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use tokio::time::timeout_at;
use tower::Service;

use crate::{
    Error, HttpClient, Target,
    connect::{dial, resolve},
    error::{ConnectError, classify_connect},
};

/// A step of reaching a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Resolving the host and judging its addresses.
    Address,
    /// The TCP connection.
    Connect,
    /// The TLS handshake.
    Tls,
}

/// What a TLS handshake agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsInfo {
    /// `TLSv1.3` or `TLSv1.2`.
    pub version: String,
    /// The cipher suite, such as `TLS13_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// The HTTP version agreed on, such as `h2`; absent when the server named none.
    pub alpn: Option<String>,
}

/// How a server was reached.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The address connected to.
    pub address: IpAddr,
    /// The TLS session; `None` for plain HTTP.
    pub tls: Option<TlsInfo>,
    /// The steps made, in order, with the time that each took.
    pub steps: Vec<(Step, Duration)>,
}

/// How far the test came.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct ProbeFailure {
    /// The step that failed.
    pub step: Step,
    /// The time spent in it.
    pub took: Duration,
    /// The steps before it.
    pub done: Vec<(Step, Duration)>,
    /// Why it failed.
    #[source]
    pub error: Error,
}

impl HttpClient {
    /// Reaches a server over a fresh connection, which is closed again. `timeout` bounds all steps together; `None` takes the
    /// client's connect timeout.
    pub async fn probe(&self, target: &Target, timeout: Option<Duration>) -> Result<Probe, ProbeFailure> {
        let deadline = tokio::time::Instant::now() + timeout.unwrap_or(self.shared.connect_timeout);
        let host = target.host();
        let mut run = Run { started: Instant::now(), done: Vec::new() };

        let resolving = timeout_at(deadline, resolve(&self.shared.guard, host, target.port())).await;
        let resolved = resolving.unwrap_or(Err(ConnectError::TimedOut));
        let addresses = resolved.map_err(|error| run.failed(Step::Address, classify_connect(host, &error)))?;
        run.made(Step::Address);

        let dialing = timeout_at(deadline, dial(&addresses)).await;
        let dialed = dialing.map_err(|_| run.failed(Step::Connect, Error::ConnectTimedOut))?;
        let (stream, address) = dialed.map_err(|error| run.failed(Step::Connect, classify_connect(host, &error)))?;
        run.made(Step::Connect);

        if !target.is_https() {
            return Ok(Probe { address, tls: None, steps: run.done });
        }
        let mut stream = Some(TokioIo::new(stream));
        let handover = tower::service_fn(move |_| std::future::ready(stream.take().ok_or(ConnectError::TimedOut)));
        let shaking = HttpsConnector::from((handover, self.shared.tls.clone())).call(target.uri().clone());
        let shaken = timeout_at(deadline, shaking).await;
        let shaken = shaken.map_err(|_| run.failed(Step::Tls, Error::ConnectTimedOut))?;
        let secured = shaken.map_err(|error| run.failed(Step::Tls, classify_connect(host, error.as_ref())))?;
        run.made(Step::Tls);
        Ok(Probe { address, tls: tls_info(&secured), steps: run.done })
    }
}

struct Run {
    started: Instant,
    done: Vec<(Step, Duration)>,
}

impl Run {
    fn made(&mut self, step: Step) {
        self.done.push((step, self.started.elapsed()));
        self.started = Instant::now();
    }

    fn failed(&mut self, step: Step, error: Error) -> ProbeFailure {
        ProbeFailure { step, took: self.started.elapsed(), done: std::mem::take(&mut self.done), error }
    }
}

fn tls_info<T>(stream: &MaybeHttpsStream<T>) -> Option<TlsInfo> {
    let MaybeHttpsStream::Https(stream) = stream else { return None };
    let (_, session) = stream.inner().get_ref();
    Some(TlsInfo {
        version: session.protocol_version()?.as_str().unwrap_or("unknown").replace('_', "."),
        cipher: session.negotiated_cipher_suite()?.suite().as_str().unwrap_or("unknown").to_owned(),
        alpn: session.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
    })
}
