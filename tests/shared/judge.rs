//! The model server of the tests, which sees how many requests are really in progress.

use std::time::{Duration, Instant};

use serde_json::json;
use simulator::{Play, Simulator};

/// A model server that takes a fixed time for each request.
pub(crate) struct Judge {
    pub(crate) simulator: Simulator,
}

/// The time that the server takes for a request, at least.
pub(crate) const TIME: Duration = Duration::from_millis(200);

impl Judge {
    pub(crate) fn start() -> Self {
        let simulator = Simulator::start(|_| {
            let reply = json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1_789_000_000, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
            });
            Play::new().pause(TIME).then(Play::json(200, &reply))
        });
        Self {
            simulator: simulator.unwrap(),
        }
    }

    /// The number of requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.simulator.requests().len()
    }

    /// The most requests that were in progress at the same time, among those that came at `from` or
    /// later. Each one is in progress for [`TIME`] at least, also if its gateway has died.
    pub(crate) fn most_at_once(&self, from: Instant) -> usize {
        let mut starts: Vec<Instant> = self.simulator.requests().iter().map(|it| it.at).collect();
        starts.retain(|start| *start >= from);
        starts.sort_unstable();
        let most = starts.iter().enumerate().map(|(at, start)| {
            let earlier = starts[..=at].iter().rev();
            earlier.take_while(|other| **other + TIME > *start).count()
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
