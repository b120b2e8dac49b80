//! The whole product, from outside: the built binary, MCP over HTTP, gRPC. Real peers, and fake servers that lie.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

mod approvals;
mod changes;
mod edge_protocol;
mod faults;
mod interop;
mod lies;
mod listing;
mod load;
mod processes;
mod real;
mod replicas;
mod restart;
mod results;
mod secrets;
mod speed;
mod support;
