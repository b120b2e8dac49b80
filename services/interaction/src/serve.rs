//! How the service starts and ends.

use std::{sync::Arc, time::Duration};

use gatehouse_platform::{Context, grpc, running::Ended};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::{
    Config,
    grpc::{State, service},
    retention, sweep,
    watch::{self, Watcher},
};

/// How long the tasks beside the server may take to end.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// Why the service ends before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gRPC server does not start.
    #[error("the gRPC server does not start")]
    Grpc(#[from] grpc::Error),
    /// The gRPC server ended.
    #[error("the gRPC server ended")]
    Ended(#[from] Ended),
}

/// Serves until the context's shutdown has drained.
pub async fn serve(context: Context, config: Config) -> Result<(), Error> {
    let watcher = Arc::new(Watcher::new(context.pool.clone()));
    let state = Arc::new(State { pool: context.pool.clone(), watcher: Arc::clone(&watcher) });
    let server = grpc::Server::new(crate::NAME, config.grpc).add_service(service(state)).start(&context).await?;
    let tasks = TaskTracker::new();
    tasks.spawn(watch::listen(Arc::clone(&watcher), context.listen_url.clone(), context.shutdown.clone()));
    tasks.spawn({
        let shutdown = context.shutdown.clone();
        async move { watcher.run(shutdown).await }
    });
    tasks.spawn(retention::keep(context.pool.clone(), context.shutdown.clone()));
    tasks.spawn(sweep::run(context.pool.clone(), context.shutdown.clone()));
    let ended = server.wait().await;
    // A server that failed ends the process as well.
    context.shutdown.cancel();
    tasks.close();
    if timeout(FINISH_WITHIN, tasks.wait()).await.is_err() {
        tracing::warn!("work on the database did not end in time");
    }
    Ok(ended?)
}
