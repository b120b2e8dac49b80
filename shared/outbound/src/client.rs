//! The HTTP client.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, Method, Response, StatusCode,
    header::{HOST, LOCATION},
};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::{
    Error, Guard, Target, TlsSetupError,
    connect::{CONNECT_TIMEOUT, Connector},
    error::classify,
};

/// How many redirects within the origin are followed.
const MOST_REDIRECTS: usize = 3;
/// How often a silent HTTP/2 connection is asked whether it is still there.
const HTTP2_PING: Duration = Duration::from_secs(30);

/// How a client is set up.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Which addresses may be called.
    pub guard: Guard,
    /// Time for resolving, connecting and the TLS handshake when the request names none.
    pub connect_timeout: Duration,
    /// How long a connection that carries nothing is kept; it is gone after at most twice that.
    pub pool_idle_timeout: Duration,
    /// Most connections that carry nothing, per origin.
    pub pool_max_idle_per_host: usize,
    /// Certificate authorities to trust besides the system's, as PEM.
    pub extra_ca_pem: Option<Vec<u8>>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            guard: Guard::default(),
            connect_timeout: Duration::from_secs(10),
            pool_idle_timeout: Duration::from_secs(20),
            pool_max_idle_per_host: 256,
            extra_ca_pem: None,
        }
    }
}

/// One request. The body is in memory, so that a redirect can send it again.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// Where to.
    pub target: &'a Target,
    /// Headers besides `host` and `content-length`.
    pub headers: &'a HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// Time for resolving, connecting and the TLS handshake; `None` takes the client's.
    pub connect_timeout: Option<Duration>,
}

/// An HTTP/1.1 and HTTP/2 client behind the address guard. Clones share one pool of connections.
#[derive(Clone)]
pub struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) guard: Arc<Guard>,
    pub(crate) tls: Arc<rustls::ClientConfig>,
    pub(crate) connect_timeout: Duration,
    pool_idle_timeout: Duration,
    pool_max_idle_per_host: usize,
}

impl HttpClient {
    /// Makes a client. Reads the system's certificate authorities; those that cannot be read are skipped.
    pub fn new(config: ClientConfig) -> Result<Self, TlsSetupError> {
        let guard = Arc::new(config.guard);
        let mut tls = tls_config(config.extra_ca_pem.as_deref())?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let shared = Arc::new(Shared {
            guard,
            tls: Arc::new(tls),
            connect_timeout: config.connect_timeout,
            pool_idle_timeout: config.pool_idle_timeout,
            pool_max_idle_per_host: config.pool_max_idle_per_host,
        });
        Ok(Self { client: pooled(&shared), shared })
    }

    /// A client of the same settings with connections of its own: what one principal has authenticated is not used for
    /// another. Costs next to nothing.
    #[must_use]
    pub fn separate_pool(&self) -> Self {
        Self { client: pooled(&self.shared), shared: Arc::clone(&self.shared) }
    }

    /// The guard that this client obeys.
    pub fn guard(&self) -> &Guard {
        &self.shared.guard
    }

    /// Sends a request and waits for the head of the answer. Sets no deadline beyond connecting: the caller does.
    ///
    /// A redirect within the origin is followed at most three times: 307 and 308 with method and body; 301, 302 and 303 only
    /// for GET and HEAD. Any other redirect is refused.
    pub async fn send(&self, request: Request<'_>) -> Result<Response<Incoming>, Error> {
        let timeout = request.connect_timeout.unwrap_or(self.shared.connect_timeout);
        let mut response = self.exchange(&request, request.target, timeout).await?;
        let mut here = None;
        for _ in 0..MOST_REDIRECTS {
            if !is_redirect(response.status()) {
                return Ok(response);
            }
            let from = here.as_ref().unwrap_or(request.target);
            let next = redirect(&request.method, from, &response)?;
            response = self.exchange(&request, &next, timeout).await?;
            here = Some(next);
        }
        if is_redirect(response.status()) {
            return Err(Error::RedirectRefused(format!("the server redirected more than {MOST_REDIRECTS} times")));
        }
        Ok(response)
    }

    async fn exchange(
        &self,
        request: &Request<'_>,
        target: &Target,
        timeout: Duration,
    ) -> Result<Response<Incoming>, Error> {
        let mut outgoing = http::Request::new(Full::new(request.body.clone()));
        *outgoing.method_mut() = request.method.clone();
        *outgoing.uri_mut() = target.uri().clone();
        let mut headers = request.headers.clone();
        if target.is_https() {
            // It may become HTTP/2, which names the host otherwise; for HTTP/1.1 the client below adds the header.
            headers.remove(HOST);
        } else {
            headers.insert(HOST, target.host_header().clone());
        }
        *outgoing.headers_mut() = headers;
        let answer = CONNECT_TIMEOUT.scope(timeout, self.client.request(outgoing)).await;
        answer.map_err(|error| classify(target.host(), error))
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("guard", &self.shared.guard).finish_non_exhaustive()
    }
}

fn pooled(shared: &Shared) -> Client<Connector, Full<Bytes>> {
    let connector = Connector::new(Arc::clone(&shared.guard), Arc::clone(&shared.tls), shared.connect_timeout);
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(shared.pool_idle_timeout)
        .pool_max_idle_per_host(shared.pool_max_idle_per_host)
        .http2_keep_alive_interval(HTTP2_PING)
        .http2_adaptive_window(true)
        .build(connector)
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where a redirect leads, if the request may follow it.
fn redirect(method: &Method, from: &Target, response: &Response<Incoming>) -> Result<Target, Error> {
    let status = response.status().as_u16();
    let refuse = |words: String| Err(Error::RedirectRefused(words));
    let Some(location) = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()) else {
        return refuse(format!("the server redirects ({status}) without saying where"));
    };
    let Ok(next) = from.join(location) else {
        return refuse(format!("the server redirects ({status}) to something that is not an http URL"));
    };
    if !from.same_origin(&next) {
        return refuse(format!(
            "the server redirects ({status}) to another origin, {next:?}; register that URL instead"
        ));
    }
    let keeps_method = matches!(status, 307 | 308) || method == Method::GET || method == Method::HEAD;
    if !keeps_method {
        return refuse(format!("the server redirects ({status}) in a way that would turn {method} into GET"));
    }
    Ok(next)
}

fn tls_config(extra_ca_pem: Option<&[u8]>) -> Result<rustls::ClientConfig, TlsSetupError> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(%error, "a certificate authority of the system could not be read");
    }
    roots.add_parsable_certificates(native.certs);
    for certificate in CertificateDer::pem_slice_iter(extra_ca_pem.unwrap_or_default()) {
        roots.add(certificate.map_err(TlsSetupError::ExtraCa)?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
