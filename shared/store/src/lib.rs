//! What more than one service needs of the database: migrations, sealed secrets, the change counters, events, API keys,
//! settings.
//!
//! One request's path ends here in free functions on `&mut PgConnection`: the caller opens the transaction and commits
//! it. Nothing here decides, waits for anything but the database, or speaks to another service.

pub mod api_keys;
pub mod epoch;
pub mod events;
pub mod migrate;
pub mod seal;
pub mod settings;
mod transaction;

pub use migrate::migrate;
pub use seal::{Keyring, Place};
pub use transaction::begin;
