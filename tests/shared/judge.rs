//! The model server of the tests, which sees how many requests are really in progress.

use std::time::{Duration, Instant};

use serde_json::json;
use simulator::{Play, Simulator};

/// A model server that takes a fixed time for each request.
pub(crate) struct Judge {
    pub(crate) simulator: Simulator,
    time: Duration,
}

impl Judge {
    /// A model server that takes 200 ms for each request.
    pub(crate) fn start() -> Self {
        Self::taking(Duration::from_millis(200))
    }

    /// A model server that takes this time for each request.
    pub(crate) fn taking(time: Duration) -> Self {
        let simulator = Simulator::start(move |_| {
            let reply = json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1_789_000_000, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
            });
            Play::new().pause(time).then(Play::json(200, &reply))
        });
        Self {
            simulator: simulator.unwrap(),
            time,
        }
    }

    /// The number of requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.simulator.requests().len()
    }

    /// Checks that no more requests have come since `from` than a full bucket and what flows off by this
    /// rate.
    #[track_caller]
    pub(crate) fn check_rate(&self, from: Instant, per_minute: u128) {
        let asked = self.asked() as u128;
        let most = per_minute + from.elapsed().as_millis() * per_minute / 60_000 + 1;
        assert!(asked <= most, "{asked} requests instead of {most}");
    }

    /// The most requests that were in progress at the same time, among those that came at `from` or
    /// later. Each one is in progress for the time of the server at least, also if its gateway has died.
    pub(crate) fn most_at_once(&self, from: Instant) -> usize {
        let mut starts: Vec<Instant> = self.simulator.requests().iter().map(|it| it.at).collect();
        starts.retain(|start| *start >= from);
        starts.sort_unstable();
        let most = starts.iter().enumerate().map(|(at, start)| {
            let earlier = starts[..=at].iter().rev();
            earlier
                .take_while(|other| **other + self.time > *start)
                .count()
        });
        most.max().unwrap_or(0)
    }
}

/// The time.
#[allow(
    clippy::disallowed_methods,
    reason = "when requests came is compared with it"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
