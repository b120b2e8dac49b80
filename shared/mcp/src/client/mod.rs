//! One initialised client connection to a server: over Streamable HTTP, over HTTP+SSE, or over the pipes of a process.

mod answer;
mod error;
mod exchange;
mod inbound;
mod legacy;
mod listen;
mod open;
mod options;
mod pending;
mod pipe;
mod request;
mod shared;
mod stream;

pub use answer::{Answer, InitializeView, Progress};
pub use error::{OpenError, RequestError};
pub use inbound::{Inbound, Origin, Reply, ServerNotification, ServerRequest};
pub use open::Connection;
pub use options::{Call, Endpoint, Options, RequestOptions, StoredSession, Transport};
