//! `endpoints.json` in the data folder: where the servers of a running `up` are.

use std::{fs, io, net::SocketAddr, path::PathBuf};

use serde::Serialize;

/// Real addresses, for the administrator's commands and scripts.
#[derive(Debug, Serialize)]
pub(super) struct Endpoints {
    /// The engines' MCP endpoint.
    pub(super) mcp: String,
    /// gRPC of the gateway.
    pub(super) grpc: String,
    /// gRPC of interaction.
    pub(super) interaction: String,
    /// Health and metrics.
    pub(super) ops: String,
    /// This process.
    pub(super) pid: u32,
}

impl Endpoints {
    /// Endpoints at these addresses; each gRPC server with whether it has TLS. An address that means every interface is
    /// shown as loopback.
    pub(super) fn new(
        mcp: SocketAddr,
        grpc: (SocketAddr, bool),
        interaction: (SocketAddr, bool),
        ops: SocketAddr,
    ) -> Self {
        let url = |(address, tls): (SocketAddr, bool)| {
            format!("{}://{}", if tls { "https" } else { "http" }, reachable(address))
        };
        Self {
            mcp: format!("http://{}/mcp", reachable(mcp)),
            grpc: url(grpc),
            interaction: url(interaction),
            ops: format!("http://{}", reachable(ops)),
            pid: std::process::id(),
        }
    }
}

fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    address
}

/// The file while it is there. Removed when dropped.
#[derive(Debug)]
pub(super) struct File(PathBuf);

impl File {
    /// Writes it, all at once: a reader never sees half of it.
    pub(super) fn write(path: PathBuf, endpoints: &Endpoints) -> io::Result<Self> {
        let part = path.with_extension("json.part");
        fs::write(&part, serde_json::to_vec_pretty(endpoints)?)?;
        fs::rename(&part, &path)?;
        Ok(Self(path))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::warn!(error.message = %error, file = %self.0.display(), "the file could not be removed");
        }
    }
}
