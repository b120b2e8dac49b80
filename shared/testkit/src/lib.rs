//! What tests share: databases, fake servers, a way to wait.
//!
//! Everything here ends with the test that made it, also when the test panics.

pub mod bucket;
pub mod database;
pub mod mcp_server;
pub mod wait;

pub use bucket::Bucket;
pub use database::Database;
pub use wait::eventually;
