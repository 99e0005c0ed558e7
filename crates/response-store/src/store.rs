//! Answers of Responses that are kept in memory, so that later requests of the same key can refer
//! to them: by `previous_response_id`, by `item_reference`, and by their path.
//!
//! The memory is bounded: an answer that does not fit takes the place of the oldest ones of the key
//! that uses most. Nothing is written to disk, and nothing survives the process.

mod stored_response;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::{Responses, bytes};
use policy::shared_bound::SharedBound;
use tokio::time::Instant;

pub use self::stored_response::{InputItem, StoredResponse};

/// The answers that are kept.
pub struct ResponseStore {
    age: Duration,
    capacity: usize,
    answers: Mutex<Answers>,
}

/// The figures of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFigures {
    /// The number of responses that are kept.
    pub responses: usize,
    /// Their memory, in bytes.
    pub bytes: usize,
    /// The number of responses that were removed to make room for others, since the start.
    pub evicted: u64,
}

#[derive(Default)]
struct Answers {
    /// The answers of each key, by its id. A key without answers is not in it.
    of_keys: HashMap<String, OfKey>,
    /// The key and the id of each answer, oldest first.
    order: BTreeMap<u64, (String, String)>,
    next: u64,
    bytes: SharedBound,
    evicted: u64,
}

#[derive(Default)]
struct OfKey {
    answers: HashMap<String, Entry>,
    /// The answer with an output item, by the id of the item, and its position there.
    items: HashMap<String, (Arc<StoredResponse>, usize)>,
}

struct Entry {
    answer: Arc<StoredResponse>,
    number: u64,
    kept_at: Instant,
}

impl ResponseStore {
    /// Creates an empty store, or `None` if no answers are to be kept.
    pub fn new(settings: &Responses) -> Option<Self> {
        Some(Self {
            age: settings.keep?,
            capacity: bytes(settings.keep_bytes),
            answers: Mutex::default(),
        })
    }

    /// Keeps an answer for a key, and removes the oldest ones of the key that uses most if it does not
    /// fit otherwise. Returns false if it is larger than the whole store, or if its key would use most
    /// by this answer alone.
    pub fn insert(&self, key: &str, answer: StoredResponse) -> bool {
        let size = answer.size() + key.len();
        if size > self.capacity {
            let (id, capacity) = (&answer.id, self.capacity);
            tracing::debug!(id, size, capacity, "answer too large to be kept");
            return false;
        }
        let mut answers = self.lock();
        answers.remove(key, &answer.id);
        let answer = Arc::new(answer);
        answers.add(key, Arc::clone(&answer), size);
        while answers.bytes.total() > self.capacity && answers.evict() {}
        answers.has(key, &answer.id)
    }

    /// Returns an answer of this key.
    pub fn get(&self, key: &str, id: &str) -> Option<Arc<StoredResponse>> {
        let answers = self.lock();
        let entry = answers.of_keys.get(key)?.answers.get(id)?;
        Some(Arc::clone(&entry.answer))
    }

    /// Returns the answer of this key with an output item, and the position of the item.
    pub fn item(&self, key: &str, id: &str) -> Option<(Arc<StoredResponse>, usize)> {
        self.lock().of_keys.get(key)?.items.get(id).cloned()
    }

    /// Removes an answer of this key. Returns false if the key has no such answer.
    pub fn remove(&self, key: &str, id: &str) -> bool {
        self.lock().remove(key, id)
    }

    /// Returns the figures of the store at this moment.
    pub fn figures(&self) -> StoreFigures {
        let answers = self.lock();
        StoreFigures {
            responses: answers.order.len(),
            bytes: answers.bytes.total(),
            evicted: answers.evicted,
        }
    }

    /// Locks the answers, without those that are too old.
    fn lock(&self) -> MutexGuard<'_, Answers> {
        // No step of a change panics halfway.
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        while answers
            .oldest()
            .is_some_and(|entry| entry.kept_at.elapsed() >= self.age)
        {
            answers.remove_oldest();
        }
        answers
    }
}

impl Answers {
    fn add(&mut self, key: &str, answer: Arc<StoredResponse>, size: usize) {
        let (number, id) = (self.next, answer.id.clone());
        self.next += 1;
        self.bytes.add(key, number, &id, size);
        self.order.insert(number, (key.to_owned(), id.clone()));
        let of_key = self.of_keys.entry(key.to_owned()).or_default();
        for (item, position) in answer.item_ids() {
            of_key
                .items
                .insert(item.to_owned(), (Arc::clone(&answer), position));
        }
        let kept_at = Instant::now();
        let entry = Entry {
            answer,
            number,
            kept_at,
        };
        of_key.answers.insert(id, entry);
    }

    fn oldest(&self) -> Option<&Entry> {
        let (_, (key, id)) = self.order.first_key_value()?;
        self.of_keys.get(key)?.answers.get(id)
    }

    fn has(&self, key: &str, id: &str) -> bool {
        let of_key = self.of_keys.get(key);
        of_key.is_some_and(|of_key| of_key.answers.contains_key(id))
    }

    /// Removes the oldest answer of the key that uses most. Returns false if no answer is left.
    fn evict(&mut self) -> bool {
        let place = self.bytes.oldest_of_largest();
        let Some((key, id)) = place.map(|(key, id)| (key.to_owned(), id.to_owned())) else {
            return false;
        };
        self.evicted += 1;
        self.remove(&key, &id)
    }

    /// Removes the oldest answer. Returns false if no answer is left.
    fn remove_oldest(&mut self) -> bool {
        let oldest = self.order.first_key_value();
        let Some((key, id)) = oldest.map(|(_, place)| place.clone()) else {
            return false;
        };
        self.remove(&key, &id)
    }

    fn remove(&mut self, key: &str, id: &str) -> bool {
        let Some(of_key) = self.of_keys.get_mut(key) else {
            return false;
        };
        let Some(Entry { answer, number, .. }) = of_key.answers.remove(id) else {
            return false;
        };
        for (item, _) in answer.item_ids() {
            // A later answer may have an item of the same id.
            let is_of = |(other, _): &(Arc<StoredResponse>, usize)| Arc::ptr_eq(other, &answer);
            if of_key.items.get(item).is_some_and(is_of) {
                of_key.items.remove(item);
            }
        }
        if of_key.answers.is_empty() {
            self.of_keys.remove(key);
        }
        self.order.remove(&number);
        self.bytes.remove(key, number);
        true
    }
}

#[cfg(test)]
mod tests;
