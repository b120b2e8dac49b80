//! Two minimal reverse proxies: lower bounds for what an MCP gateway can cost.
//!
//! `--mode raw`      a bare HTTP hop: request and response bodies are streamed
//!                   through untouched; nothing looks inside them.
//! `--mode envelope` the least an MCP gateway must do: read the whole request,
//!                   parse the JSON-RPC envelope (method, id, params.name) without
//!                   touching the arguments, strip a tool-name prefix, send the
//!                   rewritten request on, and stream the answer back untouched.
use bytes::Bytes;
use clap::{Parser, ValueEnum};
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, convert::Infallible, net::SocketAddr};

#[global_allocator]
static ALLOC: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Mode {
    Raw,
    Envelope,
}

#[derive(Parser, Clone)]
struct Args {
    #[arg(long, default_value = "127.0.0.1:7100")]
    listen: SocketAddr,
    /// Host and port of the upstream, e.g. 127.0.0.1:7001
    #[arg(long)]
    upstream: String,
    #[arg(long, value_enum, default_value = "raw")]
    mode: Mode,
    /// Removed from the front of params.name in envelope mode
    #[arg(long, default_value = "up_")]
    prefix: String,
}

type Body = Either<Incoming, Full<Bytes>>;

/// The top level of a JSON object with every value left unparsed.
type Fields<'a> = BTreeMap<&'a str, &'a RawValue>;

/// Parses the envelope and, for tools/call, drops `prefix` from params.name.
fn rewrite(body: Bytes, prefix: &str) -> Result<Bytes, serde_json::Error> {
    let mut envelope: Fields = serde_json::from_slice(&body)?;
    let method: &str = match envelope.get("method") {
        Some(raw) => serde_json::from_str(raw.get())?,
        None => return Ok(body),
    };
    if method != "tools/call" {
        return Ok(body);
    }
    let Some(raw_params) = envelope.get("params") else { return Ok(body) };
    let mut params: Fields = serde_json::from_str(raw_params.get())?;
    let name: &str = match params.get("name") {
        Some(raw) => serde_json::from_str(raw.get())?,
        None => return Ok(body),
    };
    let new_name = serde_json::value::to_raw_value(name.strip_prefix(prefix).unwrap_or(name))?;
    params.insert("name", &new_name);
    let new_params = serde_json::value::to_raw_value(&params)?;
    envelope.insert("params", &new_params);
    serde_json::to_vec(&envelope).map(Bytes::from)
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Either::Right(Full::from(text)));
    *response.status_mut() = status;
    response
}

async fn forward(req: Request<Incoming>, args: &Args, client: &Client<HttpConnector, Body>) -> Response<Body> {
    let (mut parts, body) = req.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |p| p.as_str());
    parts.uri = match format!("http://{}{path}", args.upstream).parse::<Uri>() {
        Ok(uri) => uri,
        Err(e) => return plain(StatusCode::BAD_REQUEST, e.to_string()),
    };
    parts.headers.remove(header::HOST);
    parts.headers.remove(header::CONNECTION);
    let body = if args.mode == Mode::Envelope && parts.method == http::Method::POST {
        let whole = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(e) => return plain(StatusCode::BAD_REQUEST, e.to_string()),
        };
        match rewrite(whole, &args.prefix) {
            Ok(bytes) => {
                parts.headers.remove(header::CONTENT_LENGTH);
                Either::Right(Full::new(bytes))
            }
            Err(e) => return plain(StatusCode::BAD_REQUEST, e.to_string()),
        }
    } else {
        Either::Left(body)
    };
    match client.request(Request::from_parts(parts, body)).await {
        Ok(response) => response.map(Either::Left),
        Err(e) => plain(StatusCode::BAD_GATEWAY, e.to_string()),
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
    let listener = tokio::net::TcpListener::bind(args.listen).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let _ = stream.set_nodelay(true);
        let (args, client) = (args.clone(), client.clone());
        tokio::spawn(async move {
            let service =
                hyper::service::service_fn(|req| async { Ok::<_, Infallible>(forward(req, &args, &client).await) });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
