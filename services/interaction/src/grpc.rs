//! The gRPC server: health and reflection, which every server has.

use gatehouse_platform::grpc::Server;

use crate::{Config, NAME};

pub(crate) fn server(config: Config) -> Server {
    Server::new(NAME, config.grpc)
}
