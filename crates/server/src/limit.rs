//! How many requests at once: over all, and for each key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Hands out permits and never waits: a request without one is refused (spec §8.1).
#[derive(Debug)]
pub(crate) struct Limiter {
    all: Arc<Semaphore>,
    size: usize,
    per_key: usize,
    /// The keys that were seen; there are no more than configurations have named.
    keys: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

/// The right to be answered. It goes back when it is dropped, which the response body does last.
#[derive(Debug)]
pub(crate) struct Permit {
    _of_all: OwnedSemaphorePermit,
    _of_key: OwnedSemaphorePermit,
}

impl Limiter {
    /// A limiter for `size` requests over all, and `per_key` for each key.
    pub(crate) fn new(size: usize, per_key: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(size)), size, per_key, keys: Mutex::default() }
    }

    /// A permit for the key of that name, when there is one left.
    pub(crate) fn take(&self, key: &str) -> Option<Permit> {
        let of_key = self.of_key(key).try_acquire_owned().ok()?;
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Permit { _of_all: of_all, _of_key: of_key })
    }

    fn of_key(&self, key: &str) -> Arc<Semaphore> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = keys.get(key) {
            return Arc::clone(known);
        }
        Arc::clone(keys.entry(key.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.per_key))))
    }

    /// How many permits are out.
    pub(crate) fn taken(&self) -> usize {
        self.size.saturating_sub(self.all.available_permits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One key cannot take the places of all: of requests, and of fetches.
    #[test]
    fn f11_o07_one_key_cannot_take_what_is_anothers() {
        let limiter = Limiter::new(3, 2);
        let (first, second) = (limiter.take("a"), limiter.take("a"));
        assert!(first.is_some() && second.is_some() && limiter.take("a").is_none());
        let third = limiter.take("b");
        assert!(third.is_some() && limiter.take("b").is_none(), "three over all");
        drop(first);
        assert_eq!(limiter.taken(), 2);
        assert!(limiter.take("b").is_some());
    }

    /// A refusal takes no permit.
    #[test]
    fn o04_a_refusal_takes_nothing() {
        let limiter = Limiter::new(1, 2);
        let held = limiter.take("a");
        for _ in 0..10 {
            assert!(limiter.take("b").is_none());
        }
        drop(held);
        assert!(limiter.take("b").is_some());
        assert_eq!(limiter.taken(), 0);
    }
}
