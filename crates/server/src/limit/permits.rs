//! The permits of concurrent requests.

use std::collections::BTreeMap;
use std::sync::Arc as SharedName;

use super::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hands out permits and never waits: a request without one is refused.
#[derive(Debug)]
pub(crate) struct Limiter {
    out: Arc<Mutex<Out>>,
    size: usize,
    per_key: usize,
}

/// A permit to be answered. It is released on drop, which the response body does last.
#[derive(Debug)]
pub(crate) struct Permit {
    out: Arc<Mutex<Out>>,
    key: SharedName<str>,
}

/// The number of taken permits. Both counts change under one lock, so that a refused request is
/// never counted, not even for a moment.
#[derive(Debug, Default)]
struct Out {
    all: usize,
    /// The counts of the keys that have any. Permits share the names.
    of_keys: BTreeMap<SharedName<str>, usize>,
}

impl Limiter {
    /// Creates a limiter for `size` requests in total and `per_key` for each key.
    pub(crate) fn new(size: usize, per_key: usize) -> Self {
        Self {
            out: Arc::new(Mutex::new(Out::default())),
            size,
            per_key,
        }
    }

    /// Takes a permit for this key, if one is free.
    pub(crate) fn take(&self, key: &str) -> Option<Permit> {
        let mut out = lock(&self.out);
        let counted = out.of_keys.get_key_value(key);
        let (name, of_key) = counted.map_or((None, 0), |(name, of_key)| (Some(name), *of_key));
        if out.all >= self.size || of_key >= self.per_key {
            return None;
        }
        let name = name.map_or_else(|| SharedName::from(key), SharedName::clone);
        out.all += 1;
        out.of_keys.insert(SharedName::clone(&name), of_key + 1);
        Some(Permit {
            out: Arc::clone(&self.out),
            key: name,
        })
    }

    pub(crate) fn taken(&self) -> usize {
        lock(&self.out).all
    }

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

/// Ignores poisoning: no code panics while the counts are inconsistent.
fn lock(out: &Mutex<Out>) -> MutexGuard<'_, Out> {
    out.lock().unwrap_or_else(PoisonError::into_inner)
}
