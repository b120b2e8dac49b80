//! Event streams: what comes on them, and taking one up again that broke.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::sleep;

use crate::{
    client::{
        answer::{Answer, Progress},
        error::RequestError,
        exchange::{answer_in, is_stream},
        inbound::{Origin, ServerNotification},
        pending::Item,
        request::Wait,
        shared::{Http, Shared},
    },
    message::{self, Message},
    sse::{Decoder, Event},
};

/// How often in a row a stream is taken up again without an event coming of it.
const MOST_FRUITLESS_RESUMES: u32 = 5;
/// The pause before reconnecting when the server names none.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// A server that asks for a longer pause than this gets this one.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Reads the events of one HTTP answer.
pub(crate) struct Reader {
    body: Incoming,
    decoder: Decoder,
    /// Bytes that may still come.
    left: u64,
    most: u64,
}

/// Where the reading of streams stands: what a reconnection needs to know.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) last_event_id: Option<String>,
    pub(crate) retry: Option<Duration>,
}

impl Reader {
    pub(crate) fn new(body: Incoming, most_event: usize, most: u64) -> Self {
        Self { body, decoder: Decoder::new(most_event), left: most, most }
    }

    /// The next event. `Ok(None)` when the stream ended or broke, which for an event stream is the same.
    pub(crate) async fn next(&mut self, place: &mut Place) -> Result<Option<Event>, RequestError> {
        loop {
            let read = self.decoder.next_event();
            let read = read.map_err(|error| RequestError::TooLarge { most: error.most as u64 })?;
            if let Some(event) = read {
                place.retry = event.retry.or(place.retry);
                if event.id.is_some() {
                    place.last_event_id.clone_from(&event.id);
                }
                return Ok(Some(event));
            }
            let Some(Ok(frame)) = self.body.frame().await else { return Ok(None) };
            if let Ok(chunk) = frame.into_data() {
                let left = self.left.checked_sub(chunk.len() as u64);
                self.left = left.ok_or(RequestError::TooLarge { most: self.most })?;
                self.decoder.push(chunk);
            }
        }
    }
}

impl Place {
    pub(crate) fn pause(&self) -> Duration {
        self.retry.unwrap_or(FIRST_PAUSE).min(LONGEST_PAUSE)
    }

    /// The id to resume after, if there is one that HTTP can carry.
    pub(crate) fn resume_after(&self) -> Option<HeaderValue> {
        let id = self.last_event_id.as_deref().filter(|id| !id.is_empty())?;
        HeaderValue::from_str(id).ok()
    }
}

impl Wait<'_> {
    /// Reads the stream that answers this request, and those that continue it, up to the answer.
    pub(crate) async fn follow(&self, http: &Http, body: Incoming) -> Result<Answer, RequestError> {
        let options = &self.shared.options;
        let mut place = Place::default();
        let mut reader = Reader::new(body, options.most_message_bytes, options.most_stream_bytes);
        let mut fruitless = 0;
        loop {
            while let Some(event) = reader.next(&mut place).await? {
                fruitless = 0;
                if event.is_message()
                    && let Some(outcome) = self.shared.take(&event.data, self.origin(), Some(self))
                {
                    return outcome;
                }
            }
            fruitless += 1;
            reader = self.resume(http, &place, fruitless, reader.left).await?;
        }
    }

    async fn resume(&self, http: &Http, place: &Place, fruitless: u32, left: u64) -> Result<Reader, RequestError> {
        let lost = |words: &str| Err(RequestError::Lost(words.to_owned()));
        let Some(after) = place.resume_after() else {
            return lost("its event stream ended and cannot be resumed");
        };
        let mut attempt = fruitless;
        while attempt <= MOST_FRUITLESS_RESUMES {
            sleep(place.pause()).await;
            match self.shared.get(http, Some(&after)).await {
                Ok(response) if response.status() == StatusCode::OK && is_stream(response.headers()) => {
                    return Ok(Reader::new(response.into_body(), self.shared.options.most_message_bytes, left));
                }
                Ok(response) if response.status().is_client_error() => {
                    return lost("its event stream ended and the server does not resume it");
                }
                Ok(_) | Err(RequestError::NotSent(_) | RequestError::Lost(_)) => attempt += 1,
                Err(error) => return lost(&format!("its event stream ended and could not be resumed: {error}")),
            }
        }
        lost("its event stream ended and could not be resumed")
    }
}

impl Shared {
    /// Opens a stream by GET.
    pub(crate) async fn get(
        &self,
        http: &Http,
        after: Option<&HeaderValue>,
    ) -> Result<http::Response<Incoming>, RequestError> {
        let headers = http.headers();
        let Some(after) = after else { return self.send(http, Method::GET, &headers.get, Bytes::new()).await };
        let mut resuming = headers.get.clone();
        resuming.insert("last-event-id", after.clone());
        self.send(http, Method::GET, &resuming, Bytes::new()).await
    }

    /// Takes one message of a stream; hands out the outcome when it answers the request that waits on this stream.
    pub(crate) fn take(
        self: &Arc<Self>,
        data: &Bytes,
        origin: Origin,
        wait: Option<&Wait<'_>>,
    ) -> Option<Result<Answer, RequestError>> {
        let parsed = match message::parse(data, self.options.most_depth) {
            Ok(parsed) => parsed,
            Err(malformed) => {
                tracing::debug!(upstream = ?self.wire, %malformed, "a message of an event stream was ignored");
                return None;
            }
        };
        if let Some(outcome) = wait.and_then(|wait| answer_in(wait.id, data, &parsed)) {
            return Some(outcome);
        }
        self.take_parsed(data, parsed.message, origin, wait);
        None
    }

    /// Takes a message that does not answer the request that waits on its stream.
    pub(crate) fn take_parsed(
        self: &Arc<Self>,
        data: &Bytes,
        message: Message<'_>,
        origin: Origin,
        wait: Option<&Wait<'_>>,
    ) {
        match message {
            Message::Result { id, .. } | Message::Error { id: Some(id), .. } => {
                let left = id.number().is_some_and(|id| self.pending.leave(id, Item::Answer(data.clone())));
                if !left {
                    self.count_unknown_answer();
                }
            }
            Message::Error { id: None, error } => {
                tracing::debug!(upstream = ?self.wire, code = error.code, "an error that names no request was ignored");
            }
            Message::Request { id, method, params } => self.serve(id, &method, params, origin),
            Message::Notification { method, params } => match method.as_ref() {
                "notifications/progress" => {
                    let taken = wait.is_some_and(|wait| wait.progress(params));
                    if let (false, Some((token, _))) = (taken, params.and_then(Progress::read)) {
                        // A late report to a request that has ended is nobody's, and no fault.
                        self.pending.leave(token, Item::Progress(data.clone()));
                    }
                }
                "notifications/cancelled" => self.take_back(params),
                method => self.inbound.notification(ServerNotification { method, params, origin }),
            },
        }
    }
}
