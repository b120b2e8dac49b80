//! A server that runs: where it is, and how it ends.

use std::{io, net::SocketAddr, time::Duration};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long requests may go on once shutdown has begun.
pub const DRAIN: Duration = Duration::from_secs(10);

/// Why a server ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// Its socket failed.
    #[error("the server's socket failed")]
    Socket(#[from] io::Error),
    /// The transport failed.
    #[error("the server's transport failed")]
    Transport(#[from] tonic::transport::Error),
    /// A defect.
    #[error("the server's task panicked")]
    Panicked,
}

/// A bound and running server. Dropping it ends it at once.
#[derive(Debug)]
pub struct RunningServer {
    name: &'static str,
    address: SocketAddr,
    task: JoinHandle<Result<(), Ended>>,
}

impl RunningServer {
    /// Runs `serve` until it ends by itself, at the latest [`DRAIN`] after `shutdown`.
    pub fn spawn<E: Into<Ended>>(
        name: &'static str,
        address: SocketAddr,
        shutdown: CancellationToken,
        serve: impl Future<Output = Result<(), E>> + Send + 'static,
    ) -> Self {
        let overdue = async move {
            shutdown.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        };
        let task = tokio::spawn(async move {
            tokio::select! {
                ended = serve => ended.map_err(Into::into),
                () = overdue => {
                    tracing::warn!(server.name = name, "requests still ran when the time to drain was over; they end now");
                    Ok(())
                }
            }
        });
        tracing::info!(server.name = name, server.address = %address, "server listens");
        Self { name, address, task }
    }

    /// What it serves.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The address it really has, also when it was told to take port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has ended: after shutdown was asked for and requests have drained, or because it failed.
    pub async fn wait(mut self) -> Result<(), Ended> {
        (&mut self.task).await.map_err(|_| Ended::Panicked)?
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
