//! Sockets of the edge.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gatehouse_platform::RunningServer;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::Edge;

/// Most connections at once.
const MOST_CONNECTIONS: usize = 20_000;
/// How long a request's head may take to arrive. A connection that an engine keeps between its turns waits for a head, too.
const HEAD_WITHIN: Duration = Duration::from_mins(2);
/// How long the head of a connection's first request may take to arrive.
const FIRST_WITHIN: Duration = Duration::from_secs(30);
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
        let asked = Arc::new(AtomicBool::new(false));
        let connection = graceful.watch(connect(&builder, &edge, stream, Arc::clone(&asked)));
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            // The limit for heads begins once the version of HTTP is known: a client that says nothing would stay for ever.
            let ended = match timeout(FIRST_WITHIN, &mut connection).await {
                Ok(ended) => ended,
                Err(_) if asked.load(Ordering::Relaxed) => connection.await,
                Err(_) => Ok(()),
            };
            if let Err(error) = ended {
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
    asked: Arc<AtomicBool>,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>> + Send + 'static
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error.message = %error, "a connection keeps its delay");
    }
    let edge = Arc::clone(edge);
    let service = hyper::service::service_fn(move |request| {
        asked.store(true, Ordering::Relaxed);
        let edge = Arc::clone(&edge);
        async move { Ok::<_, Infallible>(edge.handle(request).await) }
    });
    builder.serve_connection(TokioIo::new(stream), service).into_owned()
}
