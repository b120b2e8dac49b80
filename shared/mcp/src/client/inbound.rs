//! What a server sends of its own accord, and who takes it.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::client::options::Call;

/// Takes what a server sends. Implementations must return at once; what takes long belongs into the future.
pub trait Inbound: Send + Sync + 'static {
    /// A notification other than progress. Called in the order of arrival on each stream.
    fn notification(&self, notification: ServerNotification<'_>);

    /// A request other than `ping`. `None` refuses it: "method not found". The answer is posted when the future ends; it is
    /// dropped when the connection closes.
    fn request(&self, request: ServerRequest) -> Option<BoxFuture<'static, Reply>>;

    /// The beginning of a line of a process's output that is no message: such servers print what belongs on stderr. It is skipped.
    fn stray_line(&self, _: &str) {}
}

/// Takes nothing: refuses every request, ignores every notification.
impl Inbound for () {
    fn notification(&self, _: ServerNotification<'_>) {}

    fn request(&self, _: ServerRequest) -> Option<BoxFuture<'static, Reply>> {
        None
    }
}

/// Which stream something came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// The id of our request whose stream it was; `None` for the stream that belongs to no request.
    pub request_id: Option<u64>,
    /// The caller's tag for that request.
    pub call: Option<Call>,
}

/// A notification of the server.
#[derive(Debug, Clone)]
pub struct ServerNotification<'a> {
    /// Such as `notifications/tools/list_changed`.
    pub method: &'a str,
    /// Its parameters as they were written.
    pub params: Option<&'a RawValue>,
    /// The stream it came on.
    pub origin: Origin,
}

/// A request of the server.
#[derive(Debug)]
pub struct ServerRequest {
    /// Such as `elicitation/create`.
    pub method: String,
    /// Its parameters as they were written; empty for none.
    pub params: Bytes,
    /// The stream it came on.
    pub origin: Origin,
    /// Set when the server takes the request back. Nothing is posted then.
    pub cancelled: CancellationToken,
}

/// The answer to a request of the server.
#[derive(Debug)]
pub enum Reply {
    /// The result, as JSON text that is one valid value.
    Result(String),
    /// A refusal.
    Error {
        /// The kind of error.
        code: i64,
        /// For people.
        message: String,
        /// Anything else.
        data: Option<Box<RawValue>>,
    },
}
