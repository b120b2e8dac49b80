//! The client against servers on sockets, honest and lying, and against recorded traffic.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

mod answers;
mod captures;
mod common;
mod legacy;
mod listings;
mod pipes;
mod sessions;
mod streams;
