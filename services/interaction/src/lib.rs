//! The interaction service: cards, the questions that wait for a person.
//!
//! One request: [`grpc`] (who asks, what was asked) → [`convert`] and [`check`] (every wrong field at once) → [`state`] (pure:
//! what becomes of the card) → [`store`] (what is remembered). Beside the requests, [`watch`] tells those who wait what has
//! changed, [`sweep`] closes the cards that nobody will answer, and [`retention`] deletes those that are old.
//!
//! It calls no other service, keeps nothing that is not in Postgres, and never sees what a card's arguments hide.

pub mod card;
pub mod check;
mod config;
pub mod convert;
pub mod error;
pub mod grpc;
pub mod page;
pub mod retention;
mod serve;
pub mod state;
pub mod store;
pub mod sweep;
pub mod watch;

pub use config::Config;
pub use serve::{Error, serve};

/// Name of the service, in logs and in [`gatehouse_platform::Endpoints`].
pub const NAME: &str = "interaction";
/// Added to the default port of the ops server when the service is a process of its own.
pub const OPS_OFFSET: u16 = 2;
