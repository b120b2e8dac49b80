//! A channel to another Gatehouse service: credential, deadline, trace, reconnect.

use std::{fmt, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};
use url::{Host, Url};

use super::{guard::DEFAULT_DEADLINE, tls::ClientTls};
use crate::telemetry;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a service is, and what to show it.
#[derive(Debug, Clone)]
pub struct Config {
    /// `http://…` on loopback, else `https://…`.
    pub url: Url,
    /// TLS; needed for `https`.
    pub tls: Option<ClientTls>,
    /// The services' shared token; not needed with a client certificate.
    pub service_token: Option<SecretString>,
}

/// A channel cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It would send secrets in the clear.
    #[error("{0} is on another machine, and gRPC there needs TLS: use https")]
    PlainBeyondLoopback(Url),
    /// `https` without an authority to check the server by.
    #[error("{0} needs the authority of its certificate")]
    NoAuthority(Url),
    /// The token has characters that a header cannot carry.
    #[error("the service token has characters that a header cannot carry")]
    Token,
    /// The address or the TLS files are not what they should be.
    #[error("the channel cannot be made")]
    Transport(#[from] tonic::transport::Error),
}

/// A channel that shows the service credential. Clones share one connection.
pub type PeerChannel = InterceptedService<Channel, Credential>;

/// Makes a channel. It connects on first use, and again by itself whenever the connection is lost.
pub fn channel(config: &Config) -> Result<PeerChannel, Error> {
    let credential = Credential::new(config.service_token.as_ref())?;
    let endpoint = Endpoint::from_shared(config.url.to_string())?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT);
    let endpoint = match (&config.tls, config.url.scheme()) {
        (Some(tls), "https") => endpoint.tls_config(tls.config())?,
        (None, "https") => return Err(Error::NoAuthority(config.url.clone())),
        _ if is_loopback(&config.url) => endpoint,
        _ => return Err(Error::PlainBeyondLoopback(config.url.clone())),
    };
    Ok(InterceptedService::new(endpoint.connect_lazy(), credential))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

/// Adds to each request: the service token, a deadline when it has none, and the trace.
#[derive(Clone)]
pub struct Credential(Option<MetadataValue<Ascii>>);

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

impl Credential {
    fn new(token: Option<&SecretString>) -> Result<Self, Error> {
        let Some(token) = token else { return Ok(Self(None)) };
        let mut value: MetadataValue<Ascii> =
            format!("Bearer {}", token.expose_secret()).parse().map_err(|_| Error::Token)?;
        value.set_sensitive(true);
        Ok(Self(Some(value)))
    }
}

impl Interceptor for Credential {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        if !request.metadata().contains_key("grpc-timeout") {
            request.set_timeout(DEFAULT_DEADLINE);
        }
        telemetry::pass_trace(request.metadata_mut().as_mut());
        Ok(request)
    }
}
