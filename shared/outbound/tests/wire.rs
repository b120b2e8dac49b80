//! The client against servers on sockets: guard, redirects, TLS, and what each failure is called.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use gatehouse_outbound::{ClientConfig, Error, Guard, HttpClient, Reason, Request, Step, Target, TlsFailure};
use gatehouse_testkit::mcp_server::{Act, FakeServer, Reply};
use http::{HeaderMap, Method, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use rcgen::{CertificateParams, Issuer, KeyPair};
use time::{Duration as Days, OffsetDateTime, macros::datetime};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

fn client(allowed: &[&str]) -> HttpClient {
    let guard = Guard::new(allowed.iter().copied()).unwrap();
    HttpClient::new(ClientConfig { guard, ..ClientConfig::default() }).unwrap()
}

async fn send(client: &HttpClient, method: Method, url: &str) -> Result<Response<Incoming>, Error> {
    let target = Target::parse(url).unwrap();
    let body = Bytes::from_static(b"{\"a\":1}");
    let headers = HeaderMap::from_iter([("x-a".parse().unwrap(), "b".parse().unwrap())]);
    client.send(Request { method, target: &target, headers: &headers, body, connect_timeout: None }).await
}

#[tokio::test]
async fn nothing_private_is_called_unless_the_list_opens_it() {
    let server = FakeServer::ordinary().await.unwrap();
    let closed = client(&[]);
    let port = server.address().port();
    for host in ["127.0.0.1", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "localhost", "[::1]"] {
        let refused = send(&closed, Method::POST, &format!("http://{host}:{port}/mcp")).await.unwrap_err();
        assert!(
            matches!(&refused, Error::AddressRefused(refused) if refused.reason == Reason::Loopback),
            "{host}: {refused:?}"
        );
        assert!(refused.certainly_not_carried_out());
    }
    server.wait_for_connections(0).await.unwrap();
    assert!(server.requests().is_empty());
    // The name is opened, so whatever it resolves to is; the address by itself is not.
    let by_name = client(&["localhost"]);
    assert_eq!(send(&by_name, Method::DELETE, &format!("http://localhost:{port}/mcp")).await.unwrap().status(), 200);
    assert!(send(&by_name, Method::DELETE, &server.url()).await.is_err());
}

#[tokio::test]
async fn metadata_addresses_are_refused_even_by_a_client_that_opens_everything() {
    let open = client(&["0.0.0.0/0", "::/0", "*.internal"]);
    for host in ["169.254.169.254", "metadata.google.internal", "[fd00:ec2::254]", "100.100.100.200", "0xa9fea9fe"] {
        let refused = send(&open, Method::GET, &format!("http://{host}/latest/meta-data")).await.unwrap_err();
        assert!(
            matches!(&refused, Error::AddressRefused(refused) if refused.reason == Reason::Metadata),
            "{host}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_host_that_does_not_exist_is_a_failure_of_dns() {
    let error = send(&client(&[]), Method::GET, "http://nowhere.invalid/").await.unwrap_err();
    assert!(matches!(&error, Error::DnsFailed { host, .. } if host == "nowhere.invalid"), "{error:?}");
}

#[tokio::test]
async fn redirects_within_the_origin_keep_method_and_body() {
    let server = FakeServer::start(|request| match request.path.as_str() {
        "/mcp" => Some(Reply::json(307, "").with_header("location", "/a")),
        "/a" => Some(Reply::json(308, "").with_header("location", "b?c=d")),
        "/b?c=d" => Some(Reply::json(200, "{}")),
        _ => None,
    });
    let server = server.await.unwrap();
    let answer = send(&client(&["127.0.0.1"]), Method::POST, &server.url()).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "{}");
    for request in server.requests() {
        assert_eq!(
            (request.method.as_str(), &request.body[..], request.header("x-a")),
            ("POST", &b"{\"a\":1}"[..], Some("b"))
        );
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn redirects_that_leave_the_origin_loop_or_change_the_method_are_refused() {
    let other = FakeServer::ordinary().await.unwrap();
    let other_url = other.url();
    let server = FakeServer::start(move |request| {
        let (status, location) = match request.path.as_str() {
            "/other" => (307, other_url.as_str()),
            "/metadata" => (302, "http://169.254.169.254/"),
            "/see-other" => (303, "/mcp"),
            "/loop" => (307, "/loop"),
            "/nowhere" => return Some(Reply::json(301, "")),
            _ => return None,
        };
        Some(Reply::json(status, "").with_header("location", location))
    });
    let server = server.await.unwrap();
    let open = client(&["127.0.0.0/8"]);
    for (path, words) in [
        ("/other", "another origin"),
        ("/metadata", "another origin"),
        ("/see-other", "would turn POST into GET"),
        ("/loop", "more than 3 times"),
        ("/nowhere", "without saying where"),
    ] {
        let error = send(&open, Method::POST, &format!("http://{}{path}", server.address())).await.unwrap_err();
        assert!(matches!(error, Error::RedirectRefused(_)) && error.to_string().contains(words), "{path}: {error}");
    }
    assert!(other.requests().is_empty());
    let followed = send(&open, Method::GET, &format!("http://{}/see-other", server.address())).await.unwrap();
    assert_eq!(followed.status(), 405, "a GET may follow: it stays a GET");
}

#[tokio::test]
async fn a_connection_is_used_again_and_a_silent_one_is_given_up() {
    let server = FakeServer::ordinary().await.unwrap();
    let open = client(&["127.0.0.1"]);
    for _ in 0..5 {
        send(&open, Method::DELETE, &server.url()).await.unwrap().into_body().collect().await.unwrap();
    }
    assert_eq!((server.requests().len(), server.connections()), (5, 1));

    // A listener that accepts but never speaks TLS.
    let silent = FakeServer::start(|_| Some(Reply::raw(vec![Act::Hang]))).await.unwrap();
    let target = Target::parse(&format!("https://{}/", silent.address())).unwrap();
    let hurried = Some(Duration::from_millis(200));
    let headers = HeaderMap::new();
    let request = Request {
        method: Method::GET,
        target: &target,
        headers: &headers,
        body: Bytes::new(),
        connect_timeout: hurried,
    };
    let error = open.send(request).await.unwrap_err();
    assert!(matches!(error, Error::ConnectTimedOut), "{error:?}");
    let failed = open.probe(&target, hurried).await.unwrap_err();
    assert!(matches!((failed.step, failed.error), (Step::Tls, Error::ConnectTimedOut)));
    assert_eq!(failed.done.len(), 2);
}

#[tokio::test]
async fn a_probe_gives_the_steps_and_names_the_one_that_failed() {
    let server = FakeServer::ordinary().await.unwrap();
    let target = Target::parse(&server.url()).unwrap();
    let probe = client(&["127.0.0.1"]).probe(&target, None).await.unwrap();
    let steps: Vec<_> = probe.steps.iter().map(|(step, _)| *step).collect();
    assert_eq!((steps, probe.tls, probe.address), (vec![Step::Address, Step::Connect], None, server.address().ip()));
    let refused = client(&[]).probe(&target, None).await.unwrap_err();
    assert!(matches!((refused.step, refused.error), (Step::Address, Error::AddressRefused(_))));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let target = Target::parse(&format!("http://{nobody}/")).unwrap();
    let error = client(&["127.0.0.1"]).probe(&target, None).await.unwrap_err();
    assert!(matches!((error.step, error.error), (Step::Connect, Error::ConnectionRefused)));
}

/// Answers with what the request says of its host: the header, and the authority of its URL.
async fn host_of(request: http::Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let header = request.headers().get("host").map(|host| host.to_str().unwrap().to_owned());
    Ok(Response::new(Full::from(format!("{:?} {:?}", header, request.uri().authority().map(ToString::to_string)))))
}

/// A TLS server that answers every request with [`host_of`]; ends when dropped.
struct TlsServer {
    address: SocketAddr,
    ca_pem: Vec<u8>,
    serving: JoinHandle<()>,
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn tls_server(name: &str, valid: (OffsetDateTime, OffsetDateTime), alpn: &[&[u8]]) -> TlsServer {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_pem = ca.self_signed(&ca_key).unwrap().pem().into_bytes();
    let key = KeyPair::generate().unwrap();
    let mut leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (leaf.not_before, leaf.not_after) = valid;
    let leaf = leaf.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = config.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            connections.spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let service = hyper::service::service_fn(host_of);
                    let builder = Builder::new(TokioExecutor::new());
                    // A client that only probes leaves in the middle.
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                }
            });
        }
    });
    TlsServer { address, ca_pem, serving }
}

const LONG: (OffsetDateTime, OffsetDateTime) = (datetime!(2020-01-01 0:00 UTC), datetime!(4000-01-01 0:00 UTC));

fn trusting(ca_pem: Option<Vec<u8>>) -> HttpClient {
    let guard = Guard::new(["127.0.0.1"]).unwrap();
    HttpClient::new(ClientConfig { guard, extra_ca_pem: ca_pem, ..ClientConfig::default() }).unwrap()
}

#[tokio::test]
async fn an_authority_given_by_the_operator_is_trusted_and_the_probe_names_version_and_cipher() {
    let server = tls_server("127.0.0.1", LONG, &[b"http/1.1"]).await;
    let client = trusting(Some(server.ca_pem.clone()));
    let url = format!("https://{}/", server.address);
    let answer = send(&client, Method::POST, &url).await.unwrap();
    let host = format!("Some(\"{}\") None", server.address);
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), host);
    let probe = client.probe(&Target::parse(&url).unwrap(), None).await.unwrap();
    let tls = probe.tls.unwrap();
    assert_eq!(tls.version, "TLSv1.3");
    assert!(tls.cipher.starts_with("TLS13_"), "{tls:?}");
    assert_eq!((probe.steps.len(), tls.alpn.as_deref()), (3, Some("http/1.1")));
}

#[tokio::test]
async fn http_2_is_spoken_where_the_server_offers_it_over_one_connection_and_names_the_host_once() {
    let server = tls_server("127.0.0.1", LONG, &[b"h2", b"http/1.1"]).await;
    let client = trusting(Some(server.ca_pem.clone()));
    let url = format!("https://{}/", server.address);
    for _ in 0..3 {
        let answer = send(&client, Method::POST, &url).await.unwrap();
        assert_eq!(answer.version(), http::Version::HTTP_2);
        let host = format!("None Some(\"{}\")", server.address);
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), host);
    }
    let probe = client.probe(&Target::parse(&url).unwrap(), None).await.unwrap();
    assert_eq!(probe.tls.unwrap().alpn.as_deref(), Some("h2"));
}

#[tokio::test]
async fn each_failure_of_tls_has_its_own_words() {
    let expired = (LONG.0, LONG.0 + Days::days(1));
    let not_yet = (LONG.1 - Days::days(1), LONG.1);
    for (name, valid, trusted, expected) in [
        ("127.0.0.1", expired, true, TlsFailure::Expired),
        ("127.0.0.1", not_yet, true, TlsFailure::NotYetValid),
        ("other.example", LONG, true, TlsFailure::WrongHost),
        ("127.0.0.1", LONG, false, TlsFailure::UnknownIssuer),
    ] {
        let server = tls_server(name, valid, &[]).await;
        let client = trusting(trusted.then(|| server.ca_pem.clone()));
        let url = format!("https://{}/", server.address);
        let error = send(&client, Method::POST, &url).await.unwrap_err();
        assert!(matches!(&error, Error::TlsFailed(failure) if *failure == expected), "{expected:?}: {error:?}");
        let failed = client.probe(&Target::parse(&url).unwrap(), None).await.unwrap_err();
        assert!(matches!((failed.step, &failed.error), (Step::Tls, Error::TlsFailed(failure)) if *failure == expected));
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_said_not_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut hello = [0; 512];
            let _ = stream.read(&mut hello).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    let error = send(&client(&["127.0.0.1"]), Method::POST, &format!("https://{address}/")).await.unwrap_err();
    serving.abort();
    assert!(matches!(error, Error::TlsFailed(TlsFailure::NotTls)), "{error:?}");
}
