//! The gateway.
pub mod audit;
pub mod catalog;
pub mod edge;
pub mod raw;
pub mod results;
pub mod snapshot;
pub mod store;
