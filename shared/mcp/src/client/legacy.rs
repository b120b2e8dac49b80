//! HTTP+SSE, the transport of revision 2024-11-05: one stream that the server opens for all it says, and an address to post to.
//!
//! The stream is the session: when it ends the server forgets what belonged to it, so the connection has ended as well, and whoever
//! owns it opens another.

use std::sync::Arc;

use bytes::Bytes;
use gatehouse_outbound::{HttpClient, Request, Target};
use http::{Method, StatusCode};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use crate::client::{
    error::RequestError,
    exchange::{MOST_REFUSAL, collect, is_stream, not_answered},
    inbound::{Inbound, Origin},
    options::{Endpoint, Options},
    shared::{Http, Shared, Wire},
    stream::{Place, Reader},
};

/// The stream's address, and where the server takes messages.
pub(crate) struct Legacy {
    pub(crate) http: Http,
    post_to: Target,
    ended: CancellationToken,
}

impl Legacy {
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }
}

/// Whether an answer to `initialize` is the one by which the specification tells a server of this transport.
pub(crate) fn is_hint(error: &RequestError) -> bool {
    let (RequestError::Http { status, .. } | RequestError::Rpc { http_status: status, .. }) = error else {
        return false;
    };
    matches!(status, 400 | 404 | 405)
}

/// Opens the stream and waits for the address to post to. From then on the stream is read beside the requests.
pub(crate) async fn connect(
    client: HttpClient,
    endpoint: Endpoint,
    options: Options,
    inbound: Arc<dyn Inbound>,
) -> Result<Arc<Shared>, RequestError> {
    let http = Http::new(client, endpoint);
    let headers = http.headers();
    let connect_timeout = Some(options.connect_timeout);
    let request = Request {
        method: Method::GET,
        target: &http.target,
        headers: &headers.get,
        body: Bytes::new(),
        connect_timeout,
    };
    let response = http.client.send(request).await.map_err(not_answered)?;
    if !response.status().is_success() {
        let shared = Shared::new(Wire::Http(http), CancellationToken::new(), options, inbound);
        return Err(shared.refusal(response, &headers, None).await);
    }
    if response.status() != StatusCode::OK || !is_stream(response.headers()) {
        return Err(RequestError::NotMcp("it opened no event stream".to_owned()));
    }
    let mut reader = Reader::new(response.into_body(), options.most_message_bytes, u64::MAX);
    let post_to = address(&http.target, &mut reader).await?;
    let ended = CancellationToken::new();
    let wire = Wire::Legacy(Legacy { http, post_to, ended: ended.clone() });
    let shared = Arc::new(Shared::new(wire, CancellationToken::new(), options, inbound));
    let reading = Arc::clone(&shared);
    shared.spawn(async move {
        // However reading ends, so does the connection.
        let _over = ended.drop_guard();
        read(&reading, reader).await;
    });
    Ok(shared)
}

/// The address in the first event. One at another origin is refused: our credentials go there.
async fn address(here: &Target, reader: &mut Reader) -> Result<Target, RequestError> {
    let broken = |words: &str| Err(RequestError::Protocol(words.to_owned()));
    let first = reader.next(&mut Place::default()).await?;
    let Some(event) = first.filter(|event| event.name.as_deref() == Some("endpoint")) else {
        return Err(RequestError::NotMcp("its event stream does not begin with an endpoint event".to_owned()));
    };
    let address = std::str::from_utf8(&event.data).ok().and_then(|text| here.join(text.trim()).ok());
    match address {
        Some(address) if address.same_origin(here) => Ok(address),
        Some(_) => broken("its endpoint event names another origin than the server's own"),
        None => broken("its endpoint event names no address that can be called"),
    }
}

async fn read(shared: &Arc<Shared>, mut reader: Reader) {
    let mut place = Place::default();
    loop {
        match reader.next(&mut place).await {
            Ok(Some(event)) if event.is_message() => _ = shared.take(&event.data, Origin::default(), None),
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(upstream = ?shared.wire, %error, "the server's stream cannot be read any longer");
                return;
            }
        }
    }
}

impl Shared {
    /// Posts one message. [`RequestError::SessionGone`] when the stream has ended before, or the server does not know it any more.
    pub(crate) async fn post_legacy(&self, legacy: &Legacy, body: Bytes) -> Result<(), RequestError> {
        if legacy.has_ended() {
            return Err(RequestError::SessionGone);
        }
        let headers = legacy.http.headers();
        let connect_timeout = Some(self.options.connect_timeout);
        let request =
            Request { method: Method::POST, target: &legacy.post_to, headers: &headers.post, body, connect_timeout };
        let response = legacy.http.client.send(request).await.map_err(not_answered)?;
        if response.status().is_success() {
            // It says "Accepted" or the like. Only a body that was read to its end leaves the TCP connection free for others.
            if let Err(error) = collect(response, MOST_REFUSAL).await {
                tracing::debug!(upstream = ?self.wire, %error, "what came with the acceptance of a message was not read");
            }
            return Ok(());
        }
        // Servers of this transport answer 400 or 404 to a session that they do not know, mostly in plain words. Either way the
        // message was not taken.
        if matches!(response.status(), StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND) {
            self.set_session_gone();
            return Err(RequestError::SessionGone);
        }
        Err(self.refusal(response, &headers, None).await)
    }

    /// Posts a request and waits for the stream to end. The answer is left by whoever reads the stream.
    pub(crate) async fn ask_legacy(&self, legacy: &Legacy, body: Bytes) -> RequestError {
        if let Err(error) = self.post_legacy(legacy, body).await {
            return error;
        }
        legacy.ended().await;
        // The answer may have come just before the end: whoever waits for both looks for it once more.
        yield_now().await;
        RequestError::Lost("its event stream ended".to_owned())
    }
}
