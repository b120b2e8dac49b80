//! One HTTP exchange: sending, and reading what kind of answer it is.

use bytes::{Bytes, BytesMut};
use gatehouse_outbound::{Error as HttpError, Request};
use http::{
    HeaderMap, Method, Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::value::RawValue;

use crate::{
    client::{
        answer::Answer,
        error::RequestError,
        shared::{Headers, Http, Shared, Wire},
    },
    message::{self, Message, Parsed},
};

/// Most bytes of the body of a refusal that are read.
pub(crate) const MOST_REFUSAL: usize = 64 << 10;

/// A good answer to a request.
pub(crate) enum Opened {
    Json(Bytes),
    Stream(Response<Incoming>),
}

impl Shared {
    pub(crate) async fn send(
        &self,
        http: &Http,
        method: Method,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, RequestError> {
        let connect_timeout = Some(self.options.connect_timeout);
        let request = Request { method, target: &http.target, headers, body, connect_timeout };
        http.client.send(request).await.map_err(not_answered)
    }

    /// POSTs a request and reads what kind of answer comes. `head` sees the headers of a good one.
    pub(crate) async fn open_exchange(
        &self,
        http: &Http,
        id: u64,
        body: Bytes,
        head: impl FnOnce(&HeaderMap),
    ) -> Result<Opened, RequestError> {
        let headers = http.headers();
        let response = self.send(http, Method::POST, &headers.post, body).await?;
        head(response.headers());
        if response.status() == StatusCode::OK {
            if response.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
                return Err(RequestError::NotMcp("the body is compressed, though that was not asked for".to_owned()));
            }
            return match kind(response.headers()) {
                Kind::Json => Ok(Opened::Json(collect(response, self.options.most_message_bytes).await?)),
                Kind::Stream => Ok(Opened::Stream(response)),
                Kind::Other(kind) => Err(RequestError::NotMcp(format!("the content type is {kind}"))),
            };
        }
        Err(self.refusal(response, &headers, Some(id)).await)
    }

    /// Sends a notification or an answer, for which there is no answer.
    pub(crate) async fn post_one_way(&self, body: Bytes) -> Result<(), RequestError> {
        let http = match &self.wire {
            Wire::Http(http) => http,
            Wire::Legacy(legacy) => return self.post_legacy(legacy, body).await,
            Wire::Pipe(pipe) => return pipe.write(body).await,
        };
        let headers = http.headers();
        let response = self.send(http, Method::POST, &headers.post, body).await?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(self.refusal(response, &headers, None).await)
    }

    /// Finds out what a status other than 200 means.
    pub(crate) async fn refusal(
        &self,
        response: Response<Incoming>,
        headers: &Headers,
        id: Option<u64>,
    ) -> RequestError {
        let status = response.status();
        let text_of = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let www_authenticate = text_of(WWW_AUTHENTICATE);
        match status {
            StatusCode::UNAUTHORIZED => return RequestError::Unauthorized { www_authenticate },
            StatusCode::FORBIDDEN => return RequestError::Forbidden { www_authenticate },
            _ => {}
        }
        if status.is_success() {
            return RequestError::Protocol(format!(
                "a request was answered with HTTP status {status} and nothing else"
            ));
        }
        let retry_after = text_of(RETRY_AFTER).and_then(|seconds| seconds.parse().ok());
        let body = match kind(response.headers()) {
            // A body that cannot be read leaves the status to speak.
            Kind::Json => collect(response, MOST_REFUSAL).await.unwrap_or_default(),
            _ => Bytes::new(),
        };
        let error = read_error(&body, self.options.most_depth, status);
        if headers.has_session && means_session_gone(status, id, &body, error.as_ref()) {
            self.set_session_gone();
            return RequestError::SessionGone;
        }
        error.unwrap_or(RequestError::Http { status: status.as_u16(), retry_after })
    }

    /// Reads a JSON body that should hold the answer to a request.
    pub(crate) fn read_answer(&self, id: u64, body: &Bytes) -> Result<Answer, RequestError> {
        let parsed = message::parse(body, self.options.most_depth)
            .map_err(|malformed| RequestError::Protocol(format!("in its answer {malformed}")))?;
        match answer_in(id, body, &parsed) {
            Some(answer) => answer,
            None => match parsed.message {
                // The error came as the answer to our POST, so it is ours even when it names no id or a made-up one.
                Message::Error { error, .. } => Err(rpc(&error, 200)),
                Message::Result { .. } => {
                    self.count_unknown_answer();
                    Err(RequestError::Protocol("its answer is to a request that was not made".to_owned()))
                }
                _ => Err(RequestError::Protocol("it answered a request with a request".to_owned())),
            },
        }
    }
}

/// The answer in a message, if it is one to this request.
pub(crate) fn answer_in(id: u64, body: &Bytes, parsed: &Parsed<'_>) -> Option<Result<Answer, RequestError>> {
    match &parsed.message {
        Message::Result { id: theirs, result } if theirs.number() == Some(id) => {
            Some(Ok(Answer::new(body.slice_ref(result.as_bytes()))))
        }
        Message::Error { id: Some(theirs), error } if theirs.number() == Some(id) => Some(Err(rpc(error, 200))),
        _ => None,
    }
}

/// What an HTTP error means for the request.
pub(crate) fn not_answered(error: HttpError) -> RequestError {
    match error {
        HttpError::RedirectRefused(words) => RequestError::NotMcp(words),
        error if error.certainly_not_carried_out() => RequestError::NotSent(error),
        error => RequestError::Lost(error.to_string()),
    }
}

fn rpc(error: &message::ErrorObject<'_>, http_status: u16) -> RequestError {
    let data = error.data.map(RawValue::to_owned);
    RequestError::Rpc { code: error.code, message: error.message.clone().into_owned(), data, http_status }
}

fn read_error(body: &[u8], most_depth: usize, status: StatusCode) -> Option<RequestError> {
    match message::parse(body, most_depth).ok()?.message {
        Message::Error { error, .. } => Some(rpc(&error, status.as_u16())),
        _ => None,
    }
}

/// Whether a refusal says that the session is not known. The specification wants 404; widely used servers send 400 with one of
/// these texts. An error that answers our very request, by its id, is the server's answer: it has read the request, and may have carried
/// it out.
fn means_session_gone(status: StatusCode, id: Option<u64>, body: &[u8], error: Option<&RequestError>) -> bool {
    const TEXTS: [&str; 5] = [
        "no valid session id",
        "server not initialized",
        "session not found",
        "missing session id",
        "session has been terminated",
    ];
    if id.is_some() && names(body, id) {
        return false;
    }
    match (status, error) {
        (StatusCode::NOT_FOUND, _) => true,
        (StatusCode::BAD_REQUEST, Some(RequestError::Rpc { message, .. })) => {
            let message = message.to_ascii_lowercase();
            TEXTS.iter().any(|text| message.contains(text))
        }
        _ => false,
    }
}

fn names(body: &[u8], id: Option<u64>) -> bool {
    let parsed = message::parse(body, message::MOST_DEPTH);
    matches!(parsed, Ok(Parsed { message: Message::Error { id: Some(theirs), .. }, .. }) if theirs.number() == id)
}

enum Kind {
    Json,
    Stream,
    Other(String),
}

fn kind(headers: &HeaderMap) -> Kind {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Kind::Other("missing".to_owned()) };
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Kind::Json
    } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
        Kind::Stream
    } else {
        Kind::Other(String::from_utf8_lossy(essence).chars().take(80).collect())
    }
}

/// Whether an answer is an event stream.
pub(crate) fn is_stream(headers: &HeaderMap) -> bool {
    matches!(kind(headers), Kind::Stream)
}

/// Reads a body into one piece. A body that arrives in one piece is not copied.
pub(crate) async fn collect(response: Response<Incoming>, most: usize) -> Result<Bytes, RequestError> {
    let too_large = || RequestError::TooLarge { most: most as u64 };
    let announced = response.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let mut body = response.into_body();
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| RequestError::Lost(format!("the body ended early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.is_empty() && first.is_empty() {
            if body.is_end_stream() {
                return if data.len() > most { Err(too_large()) } else { Ok(data) };
            }
            first = data;
            continue;
        }
        if whole.is_empty() {
            // A length is believed only as far as memory is cheap.
            whole.reserve(announced.unwrap_or(0).min(1 << 20).max(first.len() + data.len()));
            whole.extend_from_slice(&first);
        }
        if whole.len() + data.len() > most {
            return Err(too_large());
        }
        whole.extend_from_slice(&data);
    }
    if whole.is_empty() { if first.len() > most { Err(too_large()) } else { Ok(first) } } else { Ok(whole.freeze()) }
}
