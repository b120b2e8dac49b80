//! What happens beside the requests: the stream for what the server sends of its own accord, and answers to its requests.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gatehouse_types::backoff::Backoff;
use http::StatusCode;
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        error::RequestError,
        exchange::is_stream,
        inbound::{Origin, Reply, ServerRequest},
        shared::{Shared, Wire, locked},
        stream::{FIRST_PAUSE, LONGEST_PAUSE, Place, Reader},
    },
    encode::{self, Piece},
    message::{self, Id},
    object::Members,
};

/// Time for posting an answer to a request of the server.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Keeps the GET stream open until the server says that there is none, or the connection ends. There is no deadline on it:
/// waiting is its purpose, and a dead peer is found by TCP keep-alive.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let Wire::Http(http) = &shared.wire else { return };
    let backoff = Backoff { first: FIRST_PAUSE, most: LONGEST_PAUSE };
    let mut place = Place::default();
    let mut failures = 0;
    loop {
        match shared.get(http, place.resume_after().as_ref()).await {
            Ok(response) if response.status() == StatusCode::OK && is_stream(response.headers()) => {
                let mut reader = Reader::new(response.into_body(), shared.options.most_message_bytes, u64::MAX);
                match read_all(&shared, &mut reader, &mut place).await {
                    Ok(true) => failures = 0,
                    Ok(false) => failures += 1,
                    Err(error) => {
                        tracing::warn!(upstream = ?shared.wire, %error, "the server's stream is not listened to any longer");
                        return;
                    }
                }
            }
            Ok(response) => match response.status() {
                // Another stream is open, which the server may not have noticed to be dead; or it cannot serve just now.
                StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => failures += 1,
                status if status.is_server_error() => failures += 1,
                StatusCode::NOT_FOUND if http.headers().has_session => {
                    // Servers without a stream answer 404 as well as those without the session: the next request tells.
                    return;
                }
                _ => return,
            },
            Err(RequestError::NotSent(_) | RequestError::Lost(_)) => failures += 1,
            Err(_) => return,
        }
        let jitter = f64::from(u8::try_from(shared.options.id_base & 0xff).unwrap_or(0)) / 255.0;
        sleep(if failures == 0 { place.pause() } else { backoff.pause(failures, jitter).max(place.pause()) }).await;
    }
}

/// Reads a stream to its end; whether any event came.
async fn read_all(shared: &Arc<Shared>, reader: &mut Reader, place: &mut Place) -> Result<bool, RequestError> {
    let mut any = false;
    while let Some(event) = reader.next(place).await? {
        any = true;
        if event.is_message() {
            shared.take(&event.data, Origin::default(), None);
        }
    }
    Ok(any)
}

impl Shared {
    /// Answers a request of the server, beside whatever else goes on.
    pub(crate) fn serve(self: &Arc<Self>, id: Id<'_>, method: &str, params: Option<&RawValue>, origin: Origin) {
        let Ok(permit) = self.server_requests.clone().try_acquire_owned() else {
            tracing::warn!(upstream = ?self.wire, method, "a request of the server was ignored: too many at once");
            return;
        };
        let id = id.as_json().to_owned();
        let cancelled = CancellationToken::new();
        let params = params.map_or_else(Bytes::new, |params| Bytes::copy_from_slice(params.get().as_bytes()));
        let request = ServerRequest { method: method.to_owned(), params, origin, cancelled: cancelled.clone() };
        let taken = if method == "ping" { None } else { self.inbound.request(request) };
        if taken.is_some() {
            // Before anything else is read: the next message may take the request back.
            locked(&self.open_server_requests).insert(id.clone(), cancelled.clone());
        }
        let at_once = match method {
            "ping" => encode::result(&id, Piece::Json("{}")),
            _ => encode::error(Some(&id), message::METHOD_NOT_FOUND, "this client does not offer the method", None),
        };
        let shared = self.clone();
        self.spawn(async move {
            let _permit = permit;
            let body = match taken {
                None => at_once,
                Some(reply) => {
                    let reply = cancelled.run_until_cancelled(reply).await;
                    locked(&shared.open_server_requests).remove(&id);
                    match reply {
                        Some(reply) => encode_reply(&id, &reply),
                        None => return,
                    }
                }
            };
            shared.post_reply(body).await;
        });
    }

    async fn post_reply(&self, body: Bytes) {
        match timeout(REPLY_TIMEOUT, self.post_one_way(body)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(upstream = ?self.wire, %error, "an answer was not taken by the server"),
            Err(_) => tracing::warn!(upstream = ?self.wire, "an answer was not taken by the server in time"),
        }
    }

    /// The server takes one of its requests back.
    pub(crate) fn take_back(&self, params: Option<&RawValue>) {
        let id = params.and_then(|params| Members::read(params).ok()?.get("requestId")).and_then(Id::read);
        if let Some(token) = id.and_then(|id| locked(&self.open_server_requests).get(id.as_json()).cloned()) {
            token.cancel();
        }
    }
}

fn encode_reply(id: &str, reply: &Reply) -> Bytes {
    match reply {
        Reply::Result(result) => encode::result(id, Piece::Json(result)),
        Reply::Error { code, message, data } => encode::error(Some(id), *code, message, data.as_deref()),
    }
}
