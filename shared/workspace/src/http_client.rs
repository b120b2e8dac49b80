//! The HTTP client of the object store: the project's own stack, so that there is one TLS in the process.

use std::{io, sync::Arc, time::Duration};

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, header::USER_AGENT};
use http_body_util::BodyExt as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, Error, connect::HttpConnector as Plain},
    rt::{TokioExecutor, TokioTimer},
};
use object_store::{
    ClientConfigKey, ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
        HttpResponseBody, HttpService,
    },
};
use tokio::time::timeout;

/// Longest time for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Longest time until an answer begins: a whole file may be on its way before.
const ANSWER_WITHIN: Duration = Duration::from_mins(1);
/// How long an unused connection stays.
const IDLE: Duration = Duration::from_secs(30);

/// Makes the client for an object store.
#[derive(Debug)]
pub(crate) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let setup = |error: io::Error| object_store::Error::Generic { store: "S3", source: Box::new(error) };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider).map_err(setup)?;
        // Plain HTTP only where the operator allows it, and to the machine's own metadata service.
        let is_plain = options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let tls = if is_plain { tls.https_or_http() } else { tls.https_only() };
        let mut tcp = Plain::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(tls.enable_http1().wrap_connector(tcp));
        let headers = options.get_default_headers().cloned().unwrap_or_default();
        Ok(HttpClient::new(Service { client, headers }))
    }
}

#[derive(Debug)]
struct Service {
    client: Client<HttpsConnector<Plain>, HttpRequestBody>,
    headers: HeaderMap,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let headers = request.headers_mut();
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static("gatehouse"));
        for (name, value) in &self.headers {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        let answer = timeout(ANSWER_WITHIN, self.client.request(request)).await;
        let answer = answer.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
        let (parts, body) = answer.map_err(failed)?.into_parts();
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

fn failed(error: Error) -> HttpError {
    let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
    HttpError::new(kind, error)
}
