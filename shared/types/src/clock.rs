//! Where the time comes from.

use std::fmt;

use time::OffsetDateTime;

/// A source of wall-clock time. Tests bring their own.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time now, in UTC.
    fn now(&self) -> OffsetDateTime;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }
}
