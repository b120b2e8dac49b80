//! What the service is told.

use std::net::SocketAddr;

use gatehouse_platform::{config::Source, grpc};

const DEFAULT_PORT: u16 = 7304;

/// The configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where gRPC listens: `GATEHOUSE_OAUTH_LISTEN`, default 127.0.0.1:7304.
    pub grpc: grpc::Config,
}

impl Config {
    /// From the source; whatever is wrong is noted there.
    pub fn load(source: &Source) -> Self {
        let default = SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT));
        Self { grpc: grpc::Config::load(source, "GATEHOUSE_OAUTH_LISTEN", default) }
    }
}
