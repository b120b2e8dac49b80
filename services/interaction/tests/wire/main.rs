//! The interaction service over the wire: a real server on a free port, a real database, one caller or another.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod access;
mod answers;
mod cards;
mod follow;
mod harness;
mod sweep;
mod wait;
