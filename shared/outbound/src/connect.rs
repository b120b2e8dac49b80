//! The connector: resolves, asks the guard, connects to exactly the addresses that passed.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
    vec,
};

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower::Service;

use crate::{
    error::ConnectError,
    guard::{Guard, literal},
};

tokio::task_local! {
    /// The time that the request being sent allows for connecting. The HTTP client calls its connector inside the task of the
    /// request but gives it only the URL.
    pub(crate) static CONNECT_TIMEOUT: Duration;
}

/// How often a silent connection is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

#[derive(Clone)]
pub(crate) struct Connector {
    inner: HttpsConnector<HttpConnector<Resolver>>,
    guard: Arc<Guard>,
    timeout: Duration,
}

impl Connector {
    pub(crate) fn new(guard: Arc<Guard>, tls: Arc<rustls::ClientConfig>, timeout: Duration) -> Self {
        let mut http = HttpConnector::new_with_resolver(Resolver { guard: guard.clone() });
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(KEEPALIVE));
        http.set_keepalive_interval(Some(KEEPALIVE));
        http.set_keepalive_retries(Some(3));
        Self { inner: HttpsConnector::from((http, tls)), guard, timeout }
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        // A literal address never reaches the resolver, so it is judged here; metadata names too.
        if let Err(refused) = self.guard.check_host(uri.host().unwrap_or_default()) {
            return Box::pin(std::future::ready(Err(ConnectError::Refused(refused).into())));
        }
        let timeout = CONNECT_TIMEOUT.try_with(|timeout| *timeout).unwrap_or(self.timeout);
        let connecting = self.inner.call(uri);
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(ConnectError::TimedOut.into()),
            }
        })
    }
}

/// Resolves a name and keeps the addresses that the guard lets pass.
#[derive(Clone)]
struct Resolver {
    guard: Arc<Guard>,
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let guard = self.guard.clone();
        // The connector puts the port in.
        Box::pin(async move { resolve(&guard, name.as_str(), 0).await.map(IntoIterator::into_iter) })
    }
}

/// The addresses of a host that may be called, in the resolver's order. Fails with the guard's first refusal when none may.
pub(crate) async fn resolve(guard: &Guard, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    guard.check_host(host).map_err(ConnectError::Refused)?;
    if let Some(address) = literal(host) {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| ConnectError::Dns(Some(error)))?;
    permitted(guard, host, found)
}

fn permitted(
    guard: &Guard,
    host: &str,
    found: impl Iterator<Item = SocketAddr>,
) -> Result<Vec<SocketAddr>, ConnectError> {
    let mut passed = Vec::new();
    let mut refusal = None;
    for address in found {
        match guard.check(host, address.ip()) {
            Ok(()) => passed.push(address),
            Err(refused) => refusal = refusal.or(Some(refused)),
        }
    }
    match refusal {
        Some(refused) if passed.is_empty() => Err(ConnectError::Refused(refused)),
        _ if passed.is_empty() => Err(ConnectError::Dns(None)),
        _ => Ok(passed),
    }
}

/// Opens a TCP connection to the first of the addresses that answers.
pub(crate) async fn dial(addresses: &[SocketAddr]) -> io::Result<(TcpStream, IpAddr)> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok((stream, address.ip()));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Reason;

    fn found(addresses: &[&str]) -> impl Iterator<Item = SocketAddr> {
        addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 0)).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn only_permitted_addresses_of_a_name_are_connected_to() {
        let passed = permitted(&Guard::default(), "mixed.example", found(&["10.0.0.1", "8.8.8.8", "::1"])).unwrap();
        assert_eq!(passed, vec!["8.8.8.8:0".parse().unwrap()]);
    }

    #[test]
    fn a_name_with_no_permitted_address_is_refused_with_the_reason() {
        let refused = permitted(&Guard::default(), "inner.example", found(&["10.0.0.1", "127.0.0.1"]));
        assert!(matches!(refused, Err(ConnectError::Refused(refused)) if refused.reason == Reason::Private));
        assert!(matches!(permitted(&Guard::default(), "none.example", found(&[])), Err(ConnectError::Dns(None))));
    }
}
