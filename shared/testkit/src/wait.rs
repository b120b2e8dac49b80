//! Waiting for a condition instead of for a while.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long [`eventually`] waits.
pub const DEADLINE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// Asks until there is an answer and returns it.
///
/// # Panics
/// With `what`, when there is no answer within [`DEADLINE`].
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(started.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        sleep(PAUSE).await;
    }
}
