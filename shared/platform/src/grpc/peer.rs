//! A channel to another Gatehouse service: credential, deadline, trace, reconnect.

use std::{collections::HashSet, fmt, net::SocketAddr, sync::LazyLock, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use tonic::{
    GrpcMethod, Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};
use url::{Host, Url};

use super::{guard::DEFAULT_DEADLINE, methods, tls::ClientTls};
use crate::{config::Source, telemetry};

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

impl Config {
    /// From the variable of the URL, `GATEHOUSE_SERVICE_TOKEN`, and what [`ClientTls::load`] reads. Notes a URL that
    /// [`channel`] would refuse.
    pub fn load(source: &Source, variable: &str, default: SocketAddr) -> Self {
        let url: Url = source.optional(variable).unwrap_or_else(|| at(default));
        let tls = if url.scheme() == "https" { ClientTls::load(source) } else { None };
        let config = Self { url, tls, service_token: source.secret("GATEHOUSE_SERVICE_TOKEN") };
        if let Err(error) = config.check() {
            source.note(variable, error.to_string());
        }
        config
    }

    fn check(&self) -> Result<(), Error> {
        match self.url.scheme() {
            "https" if self.tls.is_none() => Err(Error::NoAuthority(self.url.clone())),
            "https" => Ok(()),
            "http" if is_loopback(&self.url) => Ok(()),
            "http" => Err(Error::PlainBeyondLoopback(self.url.clone())),
            _ => Err(Error::Scheme),
        }
    }
}

/// The URL of a server at this address, without TLS.
///
/// # Panics
/// Never: every address and port can stand in a URL.
#[expect(clippy::expect_used, reason = "every address and port can stand in a URL")]
pub fn at(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}")).expect("an address makes a URL")
}

/// A channel cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It would send secrets in the clear.
    #[error("{0} is on another machine, and gRPC there needs TLS: use https")]
    PlainBeyondLoopback(Url),
    /// `https` without an authority to check the server by.
    #[error("{0} needs the authority of its certificate: set GATEHOUSE_GRPC_TLS_CA")]
    NoAuthority(Url),
    /// Neither `http` nor `https`.
    #[error("takes a URL that begins with http:// or https://")]
    Scheme,
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
    config.check()?;
    let credential = Credential::new(config.service_token.as_ref())?;
    let endpoint = Endpoint::from_shared(config.url.to_string())?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT);
    let endpoint = match &config.tls {
        Some(tls) if config.url.scheme() == "https" => endpoint.tls_config(tls.config())?,
        _ => endpoint,
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

/// Paths of the methods that answer with a stream.
static STREAMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let methods = methods::all(&[gatehouse_proto::DESCRIPTORS]).unwrap_or_default();
    methods.into_values().filter(|method| method.streams).map(|method| method.path).collect()
});

/// Adds to each request: the service token, a deadline when it has none and its answer is no stream, and the trace.
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
        if !request.metadata().contains_key("grpc-timeout") && !streams(&request) {
            request.set_timeout(DEFAULT_DEADLINE);
        }
        telemetry::pass_trace(request.metadata_mut().as_mut());
        Ok(request)
    }
}

fn streams(request: &Request<()>) -> bool {
    let method = request.extensions().get::<GrpcMethod<'_>>();
    method.is_some_and(|method| STREAMS.contains(&format!("/{}/{}", method.service(), method.method())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline(service: &'static str, method: &'static str) -> bool {
        let mut request = Request::new(());
        request.extensions_mut().insert(GrpcMethod::new(service, method));
        Credential(None).call(request).unwrap().metadata().contains_key("grpc-timeout")
    }

    #[test]
    fn what_waits_for_a_person_has_no_deadline_and_everything_else_has_one() {
        let service = "gatehouse.interaction.v1.InteractionService";
        assert!(!deadline(service, "WaitInteraction") && !deadline(service, "FollowInteractions"));
        assert!(deadline(service, "CreateInteraction") && deadline("unknown", "Unknown"));
    }

    fn load(pairs: &[(&str, &str)]) -> (Config, Vec<String>) {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let source = Source::from_pairs(pairs);
        let default = SocketAddr::from(([127, 0, 0, 1], 7303));
        let config = Config::load(&source, "GATEHOUSE_INTERACTION_URL", default);
        let problems = source.finish().err().map(|problems| problems.0).unwrap_or_default();
        (config, problems.into_iter().map(|problem| problem.name).collect())
    }

    #[test]
    fn without_a_word_a_peer_is_on_loopback_and_is_shown_the_token() {
        let token = "a-service-token-of-more-than-32-characters";
        let (config, problems) = load(&[("GATEHOUSE_SERVICE_TOKEN", token)]);
        assert_eq!((config.url.as_str(), problems.len()), ("http://127.0.0.1:7303/", 0));
        assert!(config.service_token.is_some() && !format!("{config:?}").contains(token));
    }

    #[test]
    fn a_url_that_would_send_secrets_in_the_clear_or_to_anybody_is_a_wrong_setting() {
        for wrong in
            ["http://10.1.2.3:7303", "http://interaction:7303", "https://interaction:7303", "ftp://127.0.0.1", "x"]
        {
            assert_eq!(load(&[("GATEHOUSE_INTERACTION_URL", wrong)]).1, ["GATEHOUSE_INTERACTION_URL"], "{wrong}");
        }
        for good in ["http://localhost:7303", "http://[::1]:7303", "http://127.8.8.8:1"] {
            assert!(load(&[("GATEHOUSE_INTERACTION_URL", good)]).1.is_empty(), "{good}");
        }
    }
}
