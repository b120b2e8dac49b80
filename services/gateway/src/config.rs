//! What the service is told.

use std::net::SocketAddr;

use gatehouse_platform::{config::Source, grpc};

const DEFAULT_EDGE_PORT: u16 = 7300;
const DEFAULT_GRPC_PORT: u16 = 7301;

/// The configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where engines connect: `GATEHOUSE_EDGE_LISTEN`, default 127.0.0.1:7300.
    pub edge_listen: SocketAddr,
    /// Where gRPC listens: `GATEHOUSE_GRPC_LISTEN`, default 127.0.0.1:7301.
    pub grpc: grpc::Config,
}

impl Config {
    /// From the source; whatever is wrong is noted there.
    pub fn load(source: &Source) -> Self {
        let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Self {
            edge_listen: source.value("GATEHOUSE_EDGE_LISTEN", loopback(DEFAULT_EDGE_PORT)),
            grpc: grpc::Config::load(source, "GATEHOUSE_GRPC_LISTEN", loopback(DEFAULT_GRPC_PORT)),
        }
    }
}
