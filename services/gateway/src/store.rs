//! What the gateway remembers: free functions on `&mut PgConnection`. The caller opens the transaction and commits it.

pub mod calls_write;
pub mod edge_sessions;
pub mod replicas;
pub mod snapshot;
pub mod upstream_sessions;
