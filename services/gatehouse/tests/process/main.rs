//! Processes of the command, from outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a step that fails fails the test")]

mod grpc;
mod support;
mod up;
