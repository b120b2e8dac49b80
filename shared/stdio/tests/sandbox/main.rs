//! Programs in each tier, among them one that tries to get out.
//!
//! As root, everything is done once more by an owner that is not root ([`life`]), since the two hold programs differently.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod escapes;
mod life;
mod limits;
mod start;
mod world;
