//! The registry over the wire: a real server on a free port, a real database, one caller or another.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod access;
mod audit;
mod changes;
mod files;
mod grants;
mod harness;
mod keys;
mod listing;
mod masks;
mod policies;
mod profiles;
mod programs;
mod retention;
mod risks;
mod runs;
mod secrets;
mod servers;
mod sessions;
mod settings;
mod store;
mod tokens;
mod tools;
mod upstream;
