//! What the suites stand on. Everything ends with the test that made it, also when the test panics.

pub(crate) mod admin_grpc;
pub(crate) mod cards;
pub(crate) mod engine;
pub(crate) mod fakes;
pub(crate) mod gate;
pub(crate) mod peers;
pub(crate) mod process;

pub(crate) use self::{
    engine::Engine,
    gate::{Gate, Options},
};

use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

/// Asks until there is an answer, for waits that may be longer than `gatehouse_testkit::eventually` allows.
pub(crate) async fn within<T>(deadline: Duration, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    let mut tick = interval(Duration::from_millis(50));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(started.elapsed() < deadline, "not within {deadline:?}: {what}");
    }
}
