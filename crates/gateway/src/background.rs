//! Requests whose responses are made in the background. Their reservations are held until a
//! retrieval shows the finished response, whose usage is then charged once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::TextEvent;
use policy::accounting::{Ended, JournalEntry};
use policy::limit::{Attempt, Counts, FinalUsage, Permit};
use serde::Deserialize;
use telemetry::metrics::Metrics;
use telemetry::outcome::Outcome;
use translate::outbound;
use vendor::Protocol;

/// The requests that have not been charged yet, by the ids of their responses.
#[derive(Debug, Default)]
pub(crate) struct Background(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    by_id: HashMap<String, Uncharged>,
    /// The ids, oldest first, and some that were charged since.
    order: VecDeque<String>,
}

/// A request that is not charged yet.
#[derive(Debug)]
pub(crate) struct Uncharged {
    /// Its place is released, and its reservation is still held.
    pub(crate) permit: Permit,
    pub(crate) journal: Option<Box<JournalEntry>>,
    /// The attempts that have failed, and may have cost something.
    pub(crate) failed: Vec<Attempt>,
    /// The place of the target that makes the response, and its name.
    pub(crate) target: (usize, String),
    pub(crate) metrics: Arc<Metrics>,
}

/// The parts of a response that show how it has ended.
#[derive(Deserialize)]
struct ResponseView {
    status: String,
}

impl Background {
    /// Adds a request. The oldest one is charged with its reservation if there are too many.
    pub(crate) fn insert(&self, id: String, request: Uncharged) {
        let displaced = {
            let mut pending = self.lock();
            let replaced = pending.by_id.insert(id.clone(), request);
            if replaced.is_none() {
                pending.order.push_back(id);
            }
            let oldest = match pending.order.len() > MAX {
                true => pending.order.pop_front(),
                false => None,
            };
            let oldest = oldest.and_then(|id| pending.by_id.remove(&id));
            [replaced, oldest]
        };
        let unknown = || FinalUsage::Unfinished(Counts::default());
        displaced
            .into_iter()
            .flatten()
            .for_each(|request| request.charge(unknown(), Outcome::Completed));
    }

    /// Charges the request with the usage that its response reports, if the response is finished.
    pub(crate) fn retrieved(&self, id: &str, response: &[u8]) {
        let Some((known, outcome)) = finished(response) else {
            return;
        };
        let request = self.lock().by_id.remove(id);
        if let Some(request) = request {
            request.charge(known, outcome);
        }
    }

    /// Charges the request with its reservation: nobody can retrieve its response any more.
    pub(crate) fn deleted(&self, id: &str) {
        let request = self.lock().by_id.remove(id);
        if let Some(request) = request {
            request.charge(
                FinalUsage::Unfinished(Counts::default()),
                Outcome::Completed,
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // No step of a change panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Uncharged {
    fn charge(self, known: FinalUsage, outcome: Outcome) {
        let (target, name) = self.target;
        let mut attempts = self.failed;
        attempts.push(Attempt { target, known });
        let charge = self.permit.end(&attempts);
        let usage = charge.usage;
        self.metrics.tokens(usage.prompt(), usage.output);
        if let Some(mut entry) = self.journal {
            entry.charge = charge;
            entry.close(&Ended {
                outcome: outcome.as_str(),
                status: 200,
                target: Some(&name),
            });
        }
    }
}

/// Returns the usage of a finished response, and its outcome; `None` if it is not finished.
fn finished(response: &[u8]) -> Option<(FinalUsage, Outcome)> {
    let ResponseView { status } = serde_json::from_slice(response).ok()?;
    let outcome = match &*status {
        "completed" | "cancelled" => Outcome::Completed,
        "incomplete" => Outcome::Incomplete,
        "failed" => Outcome::UpstreamError,
        _ => return None,
    };
    let usage = outbound::usage_of_reply(Protocol::Responses, response);
    let content = match usage {
        Some(_) => 0,
        None => {
            let events = outbound::reply(Protocol::Responses, response).unwrap_or_default();
            events.iter().map(TextEvent::length).sum()
        }
    };
    let counts = Counts {
        usage,
        content,
        ..Counts::default()
    };
    let known = match (&*status, usage) {
        ("failed", None) => FinalUsage::Unused,
        (_, Some(_)) => FinalUsage::Complete(counts),
        (_, None) => FinalUsage::Partial(counts),
    };
    Some((known, outcome))
}

/// The number of requests that are not charged yet: as many as there are known origins of responses.
const MAX: usize = 16_384;
