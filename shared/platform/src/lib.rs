//! How a Gatehouse process lives: configuration, telemetry, the Postgres pool, servers and clients for gRPC, the one error
//! table, authentication of callers and graceful shutdown.
//!
//! A service calls in here from `main.rs` and `lib.rs` and otherwise keeps to its own nouns.

pub mod auth;
pub mod error;
