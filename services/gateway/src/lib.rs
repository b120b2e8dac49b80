//! The gateway: the only service that speaks MCP, on both sides.
//!
//! One call: [`edge`] (an engine's HTTP request, its bearer token, the revision it speaks) → [`snapshot`] (session and catalog
//! from memory, no query) → [`call`] (decide, record, send, wait) → [`upstream`] (the connection of this server and session)
//! → [`results`] (what the model reads) → [`audit`] → the answer. gRPC ([`grpc`]) is the other way in: [`registry`] holds the
//! nouns and their rules, [`store`] what is remembered.
//!
//! It never passes an engine's credential to a server or a server's to an engine, never reads a payload into a typed model
//! and writes it again, and never sends a call twice that may have been carried out.

pub mod audit;
pub mod call;
pub mod catalog;
mod config;
pub mod convert;
pub mod edge;
pub mod error;
pub mod files;
pub mod grpc;
pub mod peers;
pub mod raw;
pub mod registry;
pub mod results;
pub mod retention;
mod serve;
pub mod snapshot;
pub mod store;
pub mod upstream;

pub use config::Config;
pub use serve::{Error, serve};

/// Name of the service, in logs and in [`gatehouse_platform::Endpoints`].
pub const NAME: &str = "gateway";
/// Added to the default port of the ops server when the service is a process of its own.
pub const OPS_OFFSET: u16 = 0;
