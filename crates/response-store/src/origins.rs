//! The upstreams that keep responses, for models that allow it. A later request about a response
//! goes to its upstream, if it has the key that made the response.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use policy::shared_bound::SharedBound;

/// The upstreams of the latest responses of each key, by the ids of the key and of the response.
///
/// There is room for a number of them. Beyond it, the key that has most loses its oldest one.
#[derive(Default)]
pub struct ResponseOrigins(Mutex<KnownOrigins>);

/// Where a response comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseOrigin {
    /// The name of the upstream.
    pub upstream: String,
    /// The client's name of the model.
    pub model: String,
}

#[derive(Default)]
struct KnownOrigins {
    /// The origins with their numbers, by key and response.
    of_keys: HashMap<String, HashMap<String, (ResponseOrigin, u64)>>,
    count: SharedBound,
    next: u64,
}

impl ResponseOrigins {
    /// Notes where a response to a key comes from, and forgets one if there are too many.
    pub fn insert(&self, key: &str, id: &str, origin: ResponseOrigin) {
        if id.is_empty() || id.len() > MAX_ID {
            return;
        }
        let mut known = self.lock();
        known.remove(key, id);
        let number = known.next;
        known.next += 1;
        let of_key = known.of_keys.entry(key.to_owned()).or_default();
        of_key.insert(id.to_owned(), (origin, number));
        known.count.add(key, number, id, 1);
        if known.count.total() > MAX {
            let oldest = known.count.oldest_of_largest();
            let oldest = oldest.map(|(key, id)| (key.to_owned(), id.to_owned()));
            if let Some((key, id)) = oldest {
                known.remove(&key, &id);
            }
        }
    }

    /// Returns the origin of a response to this key.
    pub fn get(&self, key: &str, id: &str) -> Option<ResponseOrigin> {
        let known = self.lock();
        let (origin, _) = known.of_keys.get(key)?.get(id)?;
        Some(origin.clone())
    }

    /// Forgets a response to this key.
    pub fn remove(&self, key: &str, id: &str) {
        self.lock().remove(key, id);
    }

    fn lock(&self) -> MutexGuard<'_, KnownOrigins> {
        // No step of a change panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownOrigins {
    fn remove(&mut self, key: &str, id: &str) {
        let Some(of_key) = self.of_keys.get_mut(key) else {
            return;
        };
        if let Some((_, number)) = of_key.remove(id) {
            self.count.remove(key, number);
        }
        if of_key.is_empty() {
            self.of_keys.remove(key);
        }
    }
}

/// The number of responses whose upstream is known.
const MAX: usize = 16_384;
/// The length of the ids that are noted, in bytes.
const MAX_ID: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(upstream: &str) -> ResponseOrigin {
        ResponseOrigin {
            upstream: upstream.to_owned(),
            model: "m".to_owned(),
        }
    }

    #[test]
    fn a_key_with_many_responses_forgets_its_own() {
        let origins = ResponseOrigins::default();
        for number in 0..3 {
            origins.insert("few", &format!("resp_{number}"), origin("u"));
        }
        for number in 0..16_384 {
            origins.insert("many", &format!("resp_{number}"), origin("v"));
        }
        let find = |key, number| origins.get(key, &format!("resp_{number}"));
        assert_eq!(find("few", 0), Some(origin("u")));
        assert_eq!(
            [0, 1, 2].map(|number| find("many", number)),
            [None, None, None]
        );
        assert_eq!(find("many", 3), Some(origin("v")));
        assert_eq!(origins.lock().count.total(), 16_384);
    }

    #[test]
    fn the_latest_response_of_an_id_counts() {
        let origins = ResponseOrigins::default();
        origins.insert("k", "resp_1", origin("u"));
        origins.insert("k", "resp_1", origin("v"));
        origins.insert("other", "resp_1", origin("w"));
        assert_eq!(origins.get("k", "resp_1"), Some(origin("v")));
        origins.remove("k", "resp_1");
        assert_eq!(origins.get("k", "resp_1"), None);
        assert_eq!(origins.get("other", "resp_1"), Some(origin("w")));
        origins.insert("k", &"x".repeat(257), origin("u"));
        assert_eq!(origins.get("k", &"x".repeat(257)), None);
    }
}
