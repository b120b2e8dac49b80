//! The oauth service. It will keep authorizations at upstream servers: clients, tokens, refresh.
//!
//! Today it starts, is healthy, serves health and reflection, and drains; it has no RPC of its own yet. A request's
//! path will be `grpc.rs` (what was asked) → a noun's file (what is decided) → `store.rs` (what is remembered).

mod config;
mod error;
mod grpc;

pub use config::Config;
pub use error::Error;
use gatehouse_platform::Context;

/// Name of the service, in logs and in [`gatehouse_platform::Endpoints`].
pub const NAME: &str = "oauth";
/// Added to the default port of the ops server when the service is a process of its own.
pub const OPS_OFFSET: u16 = 3;

/// Serves until the context's shutdown has drained.
pub async fn serve(context: Context, config: Config) -> Result<(), Error> {
    let server = grpc::server(config).start(&context).await?;
    Ok(server.wait().await?)
}
