//! How a Gatehouse process lives: configuration, telemetry, the Postgres pool, servers and clients for gRPC, the one
//! error table, authentication of callers and graceful shutdown.
//!
//! A service calls in here from `main.rs` and `lib.rs` and otherwise keeps to its own nouns. [`process::run`] is where
//! a process starts: it reads the configuration, reports every error in it at once, opens the pool, and hands the
//! service a [`Context`]. [`grpc::Server`] is the path of each request: trace, panic guard, bound, deadline,
//! credential, handler.

pub mod auth;
pub mod authenticator;
pub mod config;
pub mod context;
pub mod error;
pub mod grpc;
pub mod ops;
pub mod pool;
pub mod process;
pub mod running;
pub mod telemetry;

pub use authenticator::Authenticator;
pub use context::{Context, Endpoints};
pub use running::RunningServer;
