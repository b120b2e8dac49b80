//! What tests share: databases, fake servers, a breakable proxy
//!
//! Everything here ends with the test that made it, also when the test panics.

pub mod database;
pub mod wait;

pub use database::Database;
pub use wait::eventually;
