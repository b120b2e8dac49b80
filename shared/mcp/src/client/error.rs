//! Why there is no answer, and what is known of the request's fate.

use serde_json::value::RawValue;

/// A request without a result.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The request never left: nothing was carried out.
    #[error(transparent)]
    NotSent(gatehouse_outbound::Error),
    /// The server does not know the MCP session (any more): nothing was carried out. Open a new connection.
    #[error("the server does not know the session any more")]
    SessionGone,
    /// The connection broke after sending, and the answer could not be had by resuming: it may have been carried out.
    #[error("the connection to the server broke before the answer: {0}")]
    Lost(String),
    /// No answer within the time allowed. The server was told to stop.
    #[error("no answer within the time allowed")]
    TimedOut,
    /// The caller took the request back. The server was told to stop.
    #[error("the request was cancelled")]
    Cancelled,
    /// The server answered with an error.
    #[error("the server answered with error {code}: {message}")]
    Rpc {
        /// The JSON-RPC code.
        code: i64,
        /// The server's words.
        message: String,
        /// What else the server says, as it was written.
        data: Option<Box<RawValue>>,
        /// The HTTP status that it came with.
        http_status: u16,
    },
    /// HTTP 401.
    #[error("the server wants (other) credentials")]
    Unauthorized {
        /// The challenge, which says where to get them.
        www_authenticate: Option<String>,
    },
    /// HTTP 403.
    #[error("the server refuses access")]
    Forbidden {
        /// The challenge, if there is one: it may ask for more scopes.
        www_authenticate: Option<String>,
    },
    /// Another HTTP status that says nothing in the terms of MCP.
    #[error("the server answered with HTTP status {status}")]
    Http {
        /// The status code.
        status: u16,
        /// `retry-after` in seconds, if the server gave it as a number.
        retry_after: Option<u64>,
    },
    /// What answered does not speak MCP.
    #[error("the server does not answer as an MCP server: {0}")]
    NotMcp(String),
    /// The answer is larger than the connection allows.
    #[error("the answer is larger than {most} bytes")]
    TooLarge {
        /// The bound.
        most: u64,
    },
    /// The answer breaks the protocol.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
}

impl RequestError {
    /// Whether it is certain that the server carried nothing out, so that any request may be sent once more.
    pub fn certainly_not_carried_out(&self) -> bool {
        match self {
            Self::NotSent(error) => error.certainly_not_carried_out(),
            Self::SessionGone | Self::Unauthorized { .. } | Self::Forbidden { .. } => true,
            Self::Http { status, .. } => matches!(status, 404 | 405 | 406 | 413 | 415 | 429),
            _ => false,
        }
    }

    /// Whether the connection itself is in doubt, so that a retry belongs on a fresh one.
    pub fn needs_new_connection(&self) -> bool {
        matches!(self, Self::NotSent(_) | Self::SessionGone | Self::Lost(_))
    }
}

/// A connection that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The server chose a revision that this client does not speak.
    #[error("the server speaks MCP revision {version}, which is not supported")]
    UnsupportedVersion {
        /// The revision the server named.
        version: String,
    },
    /// `initialize`, or the notification that follows it, failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A header or the session id cannot be sent over HTTP.
    #[error("{0}")]
    BadHeader(&'static str),
}
