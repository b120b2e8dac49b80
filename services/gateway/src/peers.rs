//! Other services of ours, which this one calls.

mod interaction;

pub use self::interaction::{CardError, Cards};
