//! gRPC as every service serves it and calls it.
//!
//! The path of a request: `observe` (span, log line, metrics, panic guard) → `guard` (bound, credential, deadline) →
//! the service's handler. Health is open to everybody, reflection to any credential; each handler asks
//! [`crate::auth::require`] for the scope it needs.

mod guard;
mod methods;
mod observe;
pub mod peer;
mod server;
pub mod tls;

pub use server::{Config, Error, Server};

/// Largest message taken in, in bytes. Set it on each service: `FooServer::new(…).max_decoding_message_size(…)`.
pub const MAX_DECODING_BYTES: usize = 8 << 20;
/// Largest message sent, in bytes. Set it on each service: `FooServer::new(…).max_encoding_message_size(…)`.
pub const MAX_ENCODING_BYTES: usize = 64 << 20;
