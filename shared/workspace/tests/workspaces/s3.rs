//! The S3 client over the wire, against a server that knows just enough.
//!
//! The client takes its settings from the environment, so each test runs in a process of its own.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use gatehouse_types::CallId;
use gatehouse_workspace::{Cause, Location, Workspaces, path};
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::{file, read};

type Objects = Arc<Mutex<BTreeMap<String, Bytes>>>;

/// Set in the process that has the settings: what it is to do.
const PART: &str = "GATEHOUSE_TEST_S3";
const CALL: &str = "0198f1c2-0000-7000-8000-000000000001";

/// Runs a test again, in a process with the settings of a store at this address.
async fn run(test: &str, part: &str, endpoint: String) {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("s3::{test}"), "--nocapture"]).env(PART, part).env("AWS_ENDPOINT", endpoint);
    command.env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "eu-test-1");
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
    let done = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
}

async fn answer(objects: Objects, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let status = |status: StatusCode| Response::builder().status(status).body(Full::default()).unwrap();
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let authorization = header("authorization").unwrap_or_default();
    if !authorization.starts_with("AWS4-HMAC-SHA256 Credential=key/") || parts.uri.path().starts_with("/forbidden") {
        return Ok(status(StatusCode::FORBIDDEN));
    }
    let mut objects = objects.lock().unwrap();
    let key = parts.uri.path().to_owned();
    let found = objects.get(&key).cloned();
    Ok(match (parts.method, found) {
        (Method::PUT, Some(_)) if header("if-none-match").as_deref() == Some("*") => {
            status(StatusCode::PRECONDITION_FAILED)
        }
        (Method::PUT, _) => {
            objects.insert(key, body);
            Response::builder().header("etag", "\"1\"").body(Full::default()).unwrap()
        }
        (Method::GET | Method::HEAD, Some(content)) => Response::builder()
            .header("etag", "\"1\"")
            .header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            .body(Full::new(content))
            .unwrap(),
        _ => status(StatusCode::NOT_FOUND),
    })
}

/// A store on a free port, until the test ends: its address and what it holds.
async fn serve() -> (String, Objects) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let objects = Objects::default();
    let serving = Arc::clone(&objects);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let objects = Arc::clone(&serving);
            let service = service_fn(move |request| answer(Arc::clone(&objects), request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, objects)
}

fn workspaces(url: &str) -> Workspaces {
    Workspaces::at(&url.parse::<Location>().unwrap()).unwrap()
}

#[tokio::test]
async fn files_are_saved_in_the_bucket_under_the_prefix_and_replace_nothing() {
    let call: CallId = CALL.parse().unwrap();
    if std::env::var_os(PART).is_some() {
        let workspaces = workspaces("s3://bucket/pre%20fix");
        let large = "x".repeat(300_000);
        for (content, expected) in [(&*large, "订 1.txt"), (&*large, "订 1.txt"), ("other", "订 1-2.txt")] {
            assert_eq!(workspaces.put(file(call, "订 1.txt", content)).await.unwrap(), expected);
        }
        assert_eq!(read(&workspaces, &path(call, "订 1.txt")).await.unwrap(), large);
        assert_eq!(read(&workspaces, &path(call, "gone")).await.unwrap_err().cause, Cause::Gone);
        return;
    }
    let (address, objects) = serve().await;
    run("files_are_saved_in_the_bucket_under_the_prefix_and_replace_nothing", "files", address).await;
    let keys: Vec<String> = objects.lock().unwrap().keys().cloned().collect();
    let base = "/bucket/pre%20fix/team/one/.agent/mcp";
    let name = format!("{base}/{CALL}/%E8%AE%A2%201");
    assert_eq!(keys, [format!("{base}/.gitignore"), format!("{name}-2.txt"), format!("{name}.txt")]);
}

#[tokio::test]
async fn a_store_that_refuses_or_is_not_there_is_said_to_be() {
    let this = "a_store_that_refuses_or_is_not_there_is_said_to_be";
    if let Ok(part) = std::env::var(PART) {
        let expected = if part == "refused" { Cause::Refused } else { Cause::Unreachable };
        let saved = workspaces("s3://forbidden").put(file(CallId::new(), "a", "b")).await;
        assert_eq!(saved.unwrap_err().cause, expected);
        return;
    }
    run(this, "refused", serve().await.0).await;
    // Bound and not listened on: nobody else gets the port meanwhile.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    run(this, "unreachable", format!("http://{}", socket.local_addr().unwrap())).await;
}
