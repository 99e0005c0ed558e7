//! The upstreams that keep responses, for models that allow it. Later requests about the response go
//! there, and only those of the key that made it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The upstreams of the latest responses, by the id of the response.
#[derive(Default)]
pub(crate) struct Origins(Mutex<Known>);

/// Where a response comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The name of the key that made the request.
    pub(crate) key: String,
    /// The name of the upstream.
    pub(crate) upstream: String,
    /// The client's name of the model.
    pub(crate) model: String,
}

#[derive(Default)]
struct Known {
    by_id: HashMap<String, Origin>,
    /// The ids, oldest first, and some that were removed since.
    order: VecDeque<String>,
}

impl Origins {
    /// Notes where a response comes from, and forgets the oldest one if there are too many.
    pub(crate) fn insert(&self, id: &str, origin: Origin) {
        if id.is_empty() || id.len() > MAX_ID {
            return;
        }
        let mut known = self.lock();
        if known.by_id.insert(id.to_owned(), origin).is_some() {
            return;
        }
        known.order.push_back(id.to_owned());
        if known.order.len() > MAX {
            let oldest = known.order.pop_front();
            oldest.and_then(|id| known.by_id.remove(&id));
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<Origin> {
        self.lock().by_id.get(id).cloned()
    }

    pub(crate) fn remove(&self, id: &str) {
        self.lock().by_id.remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // No step of a change panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of responses whose upstream is known.
const MAX: usize = 16_384;
/// The length of the ids that are noted, in bytes.
const MAX_ID: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(upstream: &str) -> Origin {
        Origin {
            key: "k".to_owned(),
            upstream: upstream.to_owned(),
            model: "m".to_owned(),
        }
    }

    #[test]
    fn the_oldest_responses_are_forgotten() {
        let origins = Origins::default();
        for number in 0..16_386 {
            origins.insert(&format!("resp_{number}"), origin("u"));
        }
        assert_eq!(origins.get("resp_0"), None);
        assert_eq!(origins.get("resp_1"), None);
        assert_eq!(origins.get("resp_2"), Some(origin("u")));
        let known = origins.lock();
        assert_eq!((known.by_id.len(), known.order.len()), (16_384, 16_384));
    }

    #[test]
    fn the_latest_response_of_an_id_counts() {
        let origins = Origins::default();
        origins.insert("resp_1", origin("u"));
        origins.insert("resp_1", origin("v"));
        assert_eq!(origins.get("resp_1"), Some(origin("v")));
        origins.remove("resp_1");
        assert_eq!(origins.get("resp_1"), None);
        origins.insert(&"x".repeat(257), origin("u"));
        assert_eq!(origins.get(&"x".repeat(257)), None);
    }
}
