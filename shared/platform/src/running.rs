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

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn spawn(
        serve: impl Future<Output = Result<(), Ended>> + Send + 'static,
        shutdown: &CancellationToken,
    ) -> RunningServer {
        RunningServer::spawn("test", SocketAddr::from(([127, 0, 0, 1], 1)), shutdown.clone(), serve)
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_never_end_hold_a_shutdown_up_for_ten_seconds_and_no_longer() {
        let shutdown = CancellationToken::new();
        let running = spawn(std::future::pending(), &shutdown);
        shutdown.cancel();
        let began = Instant::now();
        running.wait().await.unwrap();
        assert!((DRAIN..DRAIN * 2).contains(&began.elapsed()));
    }

    #[tokio::test]
    async fn a_server_that_fails_or_panics_says_so() {
        let shutdown = CancellationToken::new();
        let broken = spawn(async { Err(io::Error::other("broken").into()) }, &shutdown);
        assert!(matches!(broken.wait().await, Err(Ended::Socket(_))));
        let defect = spawn(async { panic!("a defect") }, &shutdown);
        assert!(matches!(defect.wait().await, Err(Ended::Panicked)));
    }
}
