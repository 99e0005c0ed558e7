//! The memory budget for request bodies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::exchange::refusal::Refusal;

/// The memory budget for request bodies, shared by all requests. One key can take a part of it
/// only, so that it cannot keep out the others.
#[derive(Debug)]
pub struct Budget {
    all: Arc<Semaphore>,
    /// The blocks that one key can take.
    per_key: usize,
    of_keys: Mutex<OfKeys>,
}

/// The blocks left to each key that has sent a body lately.
#[derive(Debug, Default)]
struct OfKeys {
    left: BTreeMap<String, Arc<Semaphore>>,
    /// The number of keys from which on keys without bodies are dropped.
    full: usize,
}

/// The memory that one body holds of the budget. It is released when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Share(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    all: Arc<Semaphore>,
    of_key: Arc<Semaphore>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Of the complete budget and of the part of the key.
    permits: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
    bytes: usize,
}

impl Budget {
    /// Creates a budget of this many bytes. One key can take `per_key` of them. Both are rounded
    /// down to blocks.
    pub fn new(bytes: u64, per_key: u64) -> Self {
        Self {
            all: Arc::new(Semaphore::new(blocks(bytes))),
            per_key: blocks(per_key),
            of_keys: Mutex::default(),
        }
    }

    /// Returns the empty share of a body that was sent with this key.
    pub fn share(&self, key: &str) -> Share {
        let mut of_keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let of_key = of_keys.left.get(key).cloned();
        let of_key = of_key.unwrap_or_else(|| of_keys.add(key, self.per_key));
        Share(Arc::new(Inner {
            all: Arc::clone(&self.all),
            of_key,
            held: Mutex::default(),
        }))
    }
}

impl OfKeys {
    /// Adds a key that has this many blocks. Keys come and go; now and then all that hold nothing are
    /// dropped, so that each costs little.
    fn add(&mut self, key: &str, blocks: usize) -> Arc<Semaphore> {
        if self.left.len() >= self.full {
            self.left
                .retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
            self.full = 2 * self.left.len() + KEPT_KEYS;
        }
        let of_key = Arc::new(Semaphore::new(blocks));
        self.left.insert(key.to_owned(), Arc::clone(&of_key));
        of_key
    }
}

impl Share {
    /// Takes this many more bytes, or returns 503 if the budget or the part of the key is
    /// exhausted.
    pub fn grow(&self, bytes: usize) -> Result<(), Refusal> {
        let mut held = self.held();
        let missing = (held.bytes + bytes).div_ceil(BLOCK) - held.bytes.div_ceil(BLOCK);
        let blocks = u32::try_from(missing).map_err(|_| Refusal::too_large())?;
        let take = |from: &Arc<Semaphore>| Arc::clone(from).try_acquire_many_owned(blocks).ok();
        let of_key = take(&self.0.of_key)
            .ok_or_else(|| Refusal::overloaded("the key holds limits.body_memory_per_key"))?;
        let all = take(&self.0.all)
            .ok_or_else(|| Refusal::overloaded("all bodies together hold limits.body_memory"))?;
        held.bytes += bytes;
        match &mut held.permits {
            Some(permits) => {
                permits.0.merge(all);
                permits.1.merge(of_key);
            }
            None => held.permits = Some((all, of_key)),
        }
        Ok(())
    }

    /// Returns this many bytes to the budget.
    pub fn shrink(&self, bytes: usize) {
        let mut held = self.held();
        let left = held.bytes.saturating_sub(bytes);
        let blocks = held.bytes.div_ceil(BLOCK) - left.div_ceil(BLOCK);
        held.bytes = left;
        if let Some((all, of_key)) = &mut held.permits {
            drop((all.split(blocks), of_key.split(blocks)));
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of complete blocks in this many bytes.
fn blocks(bytes: u64) -> usize {
    let blocks = usize::try_from(bytes / BLOCK as u64).unwrap_or(usize::MAX);
    blocks.min(Semaphore::MAX_PERMITS)
}

/// The unit of the budget, in bytes.
const BLOCK: usize = 1024;
/// So many keys without bodies are kept in any case.
const KEPT_KEYS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that a body returns before its end is available to other bodies at once.
    #[test]
    fn a_share_shrinks() {
        let budget = Budget::new(4096, 4096);
        let (share, other) = (budget.share("key"), budget.share("key"));
        share.grow(4096).unwrap();
        assert!(other.grow(1).is_err());
        share.shrink(1024);
        other.grow(1024).unwrap();
        assert!(other.grow(1).is_err());
        share.shrink(3072);
        other.grow(3072).unwrap();
    }

    #[test]
    fn keys_without_bodies_are_dropped() {
        let budget = Budget::new(4096, 2048);
        let held = budget.share("held");
        held.grow(2048).unwrap();
        for number in 0..1_000 {
            drop(budget.share(&format!("key {number}")));
        }
        let keys = budget.of_keys.lock().unwrap().left.len();
        assert!(keys <= 2 + KEPT_KEYS, "{keys}");
        assert!(budget.share("held").grow(1).is_err(), "it is still held");
    }

    /// One key takes its part of the memory, in any number of bodies, and leaves the rest to the
    /// others.
    #[test]
    fn l06_one_key_takes_its_part_only() {
        let budget = Budget::new(4096, 2048);
        let (first, second) = (budget.share("greedy"), budget.share("greedy"));
        first.grow(1024).unwrap();
        second.grow(1024).unwrap();
        assert!(first.grow(1).is_err() && second.grow(1).is_err());
        let other = budget.share("modest");
        other.grow(2048).unwrap();
        drop(second);
        first.grow(1024).unwrap();
        let third = budget.share("third");
        assert!(third.grow(1).is_err(), "the complete budget is held");
        drop(other);
        third.grow(2048).unwrap();
    }
}
