//! MCP on the wire: JSON-RPC without loss, event streams, Streamable HTTP (revision 2025-11-25 and those before it).
//!
//! One request: the caller names a method and the pieces of its parameters ([`Params`]) → [`Connection::request`] splices them
//! into one buffer with an id of its own and sends it → the answer comes as JSON or on an event stream ([`sse`]) →
//! [`message::parse`] finds the result in the body → [`Answer`] hands it out as the bytes that the server wrote.
//!
//! What it never does: read a payload into a typed model and write it again. Unknown members, their order and the spelling of
//! numbers cross it untouched.

pub mod client;
pub mod encode;
pub mod lists;
pub mod message;
pub mod object;
pub mod scan;
pub mod sse;

pub use client::{
    Answer, Call, Connection, Endpoint, Inbound, InitializeView, OpenError, Options, Origin, Progress, Reply,
    RequestError, RequestOptions, ServerNotification, ServerRequest, StoredSession, Transport,
};
pub use encode::{Params, Piece};
pub use lists::{List, ListError, ListLimits};
pub use message::{Id, Message};

/// The revision this client asks for.
pub const PROTOCOL_VERSION: &str = "2025-11-25";
/// The revisions it accepts as an answer, newest first.
pub const ACCEPTED_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
