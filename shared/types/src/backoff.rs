//! Growing pauses with jitter.

use std::time::Duration;

/// A pause that doubles from `first` up to `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Pause after the first failure.
    pub first: Duration,
    /// Longest pause.
    pub most: Duration,
}

impl Backoff {
    /// The pause after `failures` failures on end (1 is the first). `jitter`, from 0.0 to 1.0, takes off up to a quarter.
    pub fn pause(&self, failures: u32, jitter: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let whole = self.first.saturating_mul(1 << doublings).min(self.most);
        whole.mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_most_and_jitter_takes_off_a_quarter() {
        let backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(1) };
        assert_eq!(backoff.pause(1, 0.0), Duration::from_millis(100));
        assert_eq!(backoff.pause(3, 0.0), Duration::from_millis(400));
        assert_eq!(backoff.pause(40, 0.0), Duration::from_secs(1));
        assert_eq!(backoff.pause(2, 1.0), Duration::from_millis(150));
    }
}
