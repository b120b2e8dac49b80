//! Bodies of answers.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};

use super::exchange::Message;

/// The body of an answer.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A body of pieces that are all there: its length is known, and large pieces are not copied.
struct Pieces {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        if let Some(piece) = &piece {
            self.left -= piece.len() as u64;
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A message as plain JSON.
pub(super) fn json(status: StatusCode, message: Message) -> Response<Body> {
    let left = message.iter().map(|piece| piece.len() as u64).sum();
    let mut response = Response::new(Pieces { pieces: message.into(), left }.boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Words for people.
pub(super) fn plain(status: StatusCode, words: &str) -> Response<Body> {
    let mut response = json(status, vec![Bytes::from(format!("{words}\n"))]);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// No body: taken, not answered.
pub(super) fn accepted() -> Response<Body> {
    let mut response = Response::new(Pieces { pieces: VecDeque::new(), left: 0 }.boxed_unsync());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// An event stream.
pub(super) fn events(stream: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    use futures_util::StreamExt as _;
    let frames = stream.map(|event| Ok::<_, Infallible>(Frame::data(event)));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Proxies that buffer would hold back what keeps an engine waiting.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// `{"jsonrpc":"2.0","id":…,"result":` + result + `}`. `id` is JSON text.
pub(super) fn result(id: &str, result: impl IntoIterator<Item = Bytes>) -> Message {
    let mut message = Message::with_capacity(4);
    message.push(Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":")));
    message.extend(result);
    message.push(Bytes::from_static(b"}"));
    compact(message)
}

/// Joins small pieces: one write is cheaper than many.
fn compact(message: Message) -> Message {
    const SMALL: usize = 4_096;
    if message.iter().all(|piece| piece.len() < SMALL) {
        return vec![Bytes::from(message.concat())];
    }
    message
}
