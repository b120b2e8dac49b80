//! Why the service ends before it was asked to.

use gatehouse_platform::{grpc, running::Ended};

/// The service's errors.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gRPC server does not start.
    #[error("the gRPC server does not start")]
    Grpc(#[from] grpc::Error),
    /// The gRPC server ended.
    #[error("the gRPC server ended")]
    Ended(#[from] Ended),
}
