//! The built command against a gateway with canned answers: what it prints, where, and with which exit code.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]
#![expect(clippy::unnecessary_wraps, reason = "fields of messages are options")]

mod cards;
mod commands;
mod files;
mod grpc_fake;
mod grpc_fake_calls;
mod grpc_fake_cards;
mod grpc_fake_files;
mod grpc_fake_profiles;
mod grpc_fake_sessions;
mod grpc_fake_tools;
mod refusals;
mod tools;
mod world;
