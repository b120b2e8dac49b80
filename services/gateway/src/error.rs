//! Why the service ends before it was asked to.

use gatehouse_platform::{grpc, running::Ended};

/// The service's errors.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gRPC server does not start.
    #[error("the gRPC server does not start")]
    Grpc(#[from] grpc::Error),
    /// A server ended.
    #[error("a server ended")]
    Ended(#[from] Ended),
    /// The edge does not listen.
    #[error("GATEHOUSE_EDGE_LISTEN cannot be listened on")]
    Listen(#[from] std::io::Error),
}
