//! The ops server: whether the process lives, whether it is ready, and its metrics. HTTP, without credentials; it tells
//! no secrets, and belongs on an address that only the operator's network reaches.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::State, http::StatusCode, response::IntoResponse as _, routing::get};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;

use crate::{Context, RunningServer};

const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Clone)]
struct Ops {
    context: Context,
    metrics: PrometheusHandle,
    /// Names of the servers that are still to listen, or do.
    servers: Arc<[String]>,
}

/// Starts it. `/healthz`: 200 while the process runs. `/readyz`: 200 while all `servers` of the process listen (names as in
/// [`crate::context::Endpoints`]), the database answers, and no shutdown has begun, else 503 with the reason. `/metrics`: the
/// Prometheus text format.
pub async fn start(
    context: &Context,
    listen: SocketAddr,
    metrics: PrometheusHandle,
    servers: Arc<[String]>,
) -> io::Result<RunningServer> {
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        io::Error::new(error.kind(), format!("GATEHOUSE_OPS_LISTEN: {listen} cannot be listened on: {error}"))
    })?;
    let address = listener.local_addr()?;
    context.endpoints.announce("ops", address);
    let router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(rendered))
        .with_state(Ops { context: context.clone(), metrics: metrics.clone(), servers });
    let shutdown = context.shutdown.clone();
    // It goes on answering `not ready` while the others drain: `RunningServer` ends it after that time.
    Ok(RunningServer::spawn("ops", address, shutdown, async move {
        tokio::select! {
            served = axum::serve(listener, router).into_future() => served,
            never = upkeep(metrics) => never,
        }
    }))
}

async fn rendered(State(ops): State<Ops>) -> String {
    // Of the whole runtime, so that what never ends shows, wherever it was begun.
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    metrics::gauge!("gatehouse_tasks").set(u32::try_from(tasks).unwrap_or(u32::MAX));
    ops.metrics.render()
}

async fn ready(State(ops): State<Ops>) -> axum::response::Response {
    if ops.context.shutdown.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response();
    }
    if let Some(missing) = ops.servers.iter().find(|name| !ops.context.endpoints.has(name)) {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("starting: {missing} does not listen yet\n")).into_response();
    }
    let probe = sqlx::query("SELECT 1").execute(&ops.context.pool);
    match tokio::time::timeout(PROBE_TIMEOUT, probe).await {
        Ok(Ok(_)) => "ready\n".into_response(),
        Ok(Err(_)) | Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n").into_response(),
    }
}

/// Moves old samples out of the histograms, so that they do not grow between two fetches.
async fn upkeep(metrics: PrometheusHandle) -> io::Result<()> {
    let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        ticks.tick().await;
        metrics.run_upkeep();
    }
}
