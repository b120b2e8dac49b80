//! An object store that knows as much of S3 as workspaces ask of one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use crate::mcp_server::{FakeServer, Reply, Request};

/// A store on a free port, until it is dropped. Everything below `/forbidden` is refused.
pub struct Bucket {
    server: FakeServer,
    objects: Arc<Mutex<BTreeMap<String, Bytes>>>,
}

impl Bucket {
    /// An empty one.
    pub async fn start() -> anyhow::Result<Self> {
        let objects: Arc<Mutex<BTreeMap<String, Bytes>>> = Arc::default();
        let held = Arc::clone(&objects);
        let server = FakeServer::start(move |request| Some(answer(&mut locked(&held), request))).await?;
        Ok(Self { server, objects })
    }

    /// The variables that lead a client here.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        variables(format!("http://{}", self.server.address()))
    }

    /// What it holds: bytes by path, which begins with the bucket's name.
    pub fn objects(&self) -> BTreeMap<String, Bytes> {
        locked(&self.objects).clone()
    }
}

/// The variables that lead a client to a store at this address.
pub fn variables(endpoint: String) -> [(&'static str, String); 5] {
    [
        ("AWS_ENDPOINT", endpoint),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_REGION", "eu-test-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ]
}

fn locked(objects: &Mutex<BTreeMap<String, Bytes>>) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
    // The map is whole after each statement.
    objects.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(objects: &mut BTreeMap<String, Bytes>, request: &Request) -> Reply {
    let empty = |status| Reply::new(status, "application/xml", "");
    let signed = request.header("authorization").unwrap_or_default().starts_with("AWS4-HMAC-SHA256 Credential=key/");
    if !signed || request.path.starts_with("/forbidden") {
        return empty(403);
    }
    let key = request.path.split('?').next().unwrap_or_default().to_owned();
    match (request.method.as_str(), objects.get(&key).cloned()) {
        ("PUT", Some(_)) if request.header("if-none-match") == Some("*") => empty(412),
        ("PUT", _) => {
            objects.insert(key, request.body.clone());
            empty(200).with_header("etag", "\"1\"")
        }
        ("GET" | "HEAD", Some(content)) => Reply::new(200, "application/octet-stream", content)
            .with_header("etag", "\"1\"")
            .with_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("GET" | "HEAD", None) => empty(404),
        _ => empty(405),
    }
}
