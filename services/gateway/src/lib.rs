//! The gateway: the only service that speaks MCP, on both sides

mod config;
mod error;

pub use config::Config;
pub use error::Error;
use gatehouse_platform::{Context, RunningServer, grpc};
use tokio::net::TcpListener;

/// Name of the service, in logs and in [`gatehouse_platform::Endpoints`].
pub const NAME: &str = "gateway";
/// Added to the default port of the ops server when the service is a process of its own.
pub const OPS_OFFSET: u16 = 0;

/// Serves until the context's shutdown has drained.
pub async fn serve(context: Context, config: Config) -> Result<(), Error> {
    let listener = TcpListener::bind(config.edge_listen).await?;
    let address = listener.local_addr()?;
    let shutdown = context.shutdown.clone();
    let drained = shutdown.clone().cancelled_owned();
    let edge = async move { axum::serve(listener, axum::Router::new()).with_graceful_shutdown(drained).await };
    let edge = RunningServer::spawn("gateway.edge", address, shutdown, edge);
    context.endpoints.announce("gateway.edge", address);
    let server = grpc::Server::new(NAME, config.grpc).start(&context).await?;
    server.wait().await?;
    Ok(edge.wait().await?)
}
