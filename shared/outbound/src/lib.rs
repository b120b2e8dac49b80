//! Outbound HTTP that cannot be led astray: the address guard and the only client that reaches outside.
//!
//! One request: [`Target::parse`] reads the URL once (odd spellings of an address are read as the address they mean) →
//! [`HttpClient::send`] takes a pooled connection, or resolves the host, asks the [`Guard`] about every address and connects to
//! exactly those that passed → a redirect within the origin is followed, each hop through the same door.
//!
//! It keeps no cookies, reads no proxy from the environment, and never connects to a metadata address.

mod client;
mod connect;
mod error;
pub mod guard;
mod probe;
mod target;

pub use client::{ClientConfig, HttpClient, Request};
pub use error::{Error, TlsFailure, TlsSetupError};
pub use guard::{Guard, Reason, Refused};
pub use probe::{Probe, ProbeFailure, Step, TlsInfo};
pub use target::{BadUrl, Target};
