//! Sockets of the edge.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use gatehouse_platform::RunningServer;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::Edge;

/// Most connections at once.
const MOST_CONNECTIONS: usize = 20_000;
/// How long a request's head may take to arrive. A connection that an engine keeps between its turns waits for a head, too.
const HEAD_WITHIN: Duration = Duration::from_mins(2);
/// Most bytes of a request's head.
const MOST_HEAD_BYTES: usize = 64 << 10;
/// Most requests at once on one HTTP/2 connection.
const MOST_STREAMS: u32 = 256;

/// Binds and serves until `shutdown`; then finishes what runs.
pub async fn serve(edge: Arc<Edge>, listen: SocketAddr, shutdown: CancellationToken) -> io::Result<RunningServer> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let serving = accept(edge, listener, shutdown.clone());
    Ok(RunningServer::spawn("gateway.edge", address, shutdown, async move {
        serving.await;
        Ok::<_, io::Error>(())
    }))
}

async fn accept(edge: Arc<Edge>, listener: TcpListener, shutdown: CancellationToken) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(MOST_HEAD_BYTES)
        .pipeline_flush(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .keep_alive_interval(Duration::from_secs(30));
    loop {
        let accepted = shutdown.run_until_cancelled(async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        });
        let (place, stream) = match accepted.await {
            None => break,
            Some((Ok(place), Ok((stream, _)))) => (place, stream),
            Some((_, accepted)) => {
                // Out of file descriptors, most likely: others must end first.
                tracing::warn!(error.message = ?accepted.err(), "a connection was not accepted");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let connection = connect(&builder, &edge, stream);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error.message = %error, "an engine's connection ended");
            }
            drop(place);
        });
    }
    graceful.shutdown().await;
}

fn connect(
    builder: &auto::Builder<TokioExecutor>,
    edge: &Arc<Edge>,
    stream: TcpStream,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>> + Send + 'static
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error.message = %error, "a connection keeps its delay");
    }
    let edge = Arc::clone(edge);
    let service = hyper::service::service_fn(move |request| {
        let edge = Arc::clone(&edge);
        async move { Ok::<_, Infallible>(edge.handle(request).await) }
    });
    builder.serve_connection(TokioIo::new(stream), service).into_owned()
}
