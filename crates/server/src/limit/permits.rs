//! Permits, and the count of those that are out.

use std::collections::BTreeMap;

use super::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hands out permits and never waits: a request without one is refused (spec §8.1).
#[derive(Debug)]
pub(crate) struct Limiter {
    out: Arc<Mutex<Out>>,
    size: usize,
    per_key: usize,
}

/// The right to be answered. It goes back when it is dropped, which the response body does last.
#[derive(Debug)]
pub(crate) struct Permit {
    out: Arc<Mutex<Out>>,
    key: String,
}

/// How many permits are out. Both counts change in one step, so that a refusal takes nothing for a moment either.
#[derive(Debug, Default)]
struct Out {
    all: usize,
    /// Of each key that has any.
    of_keys: BTreeMap<String, usize>,
}

impl Limiter {
    /// A limiter for `size` requests over all, and `per_key` for each key.
    pub(crate) fn new(size: usize, per_key: usize) -> Self {
        Self { out: Arc::new(Mutex::new(Out::default())), size, per_key }
    }

    /// A permit for the key of that name, when there is one left.
    pub(crate) fn take(&self, key: &str) -> Option<Permit> {
        let mut out = lock(&self.out);
        let of_key = out.of_keys.get(key).copied().unwrap_or_default();
        if out.all >= self.size || of_key >= self.per_key {
            return None;
        }
        out.all += 1;
        out.of_keys.insert(key.to_owned(), of_key + 1);
        Some(Permit { out: Arc::clone(&self.out), key: key.to_owned() })
    }

    /// How many permits are out.
    pub(crate) fn taken(&self) -> usize {
        lock(&self.out).all
    }

    /// How many keys have permits.
    #[cfg(test)]
    pub(super) fn keys(&self) -> usize {
        lock(&self.out).of_keys.len()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut out = lock(&self.out);
        out.all -= 1;
        if let Some(of_key) = out.of_keys.get_mut(&self.key) {
            *of_key -= 1;
            if *of_key == 0 {
                out.of_keys.remove(&self.key);
            }
        }
    }
}

/// Whoever panicked before has left the counts whole.
fn lock(out: &Mutex<Out>) -> MutexGuard<'_, Out> {
    out.lock().unwrap_or_else(PoisonError::into_inner)
}
