//! Requests that wait for a limit, in an order that is fair to their keys.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;

/// A queue in which the keys take turns, and the entries of a key come in their order: a key with
/// many entries does not delay the entries of another key.
///
/// ```
/// use sluicegate_quota::FairQueue;
///
/// let mut queue = FairQueue::new();
/// for (key, entry) in [("heavy", 1), ("heavy", 2), ("heavy", 3), ("light", 4)] {
///     queue.push(key, entry);
/// }
/// let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
/// assert_eq!(order, [1, 4, 2, 3]);
/// ```
#[derive(Clone, Debug)]
pub struct FairQueue<T> {
    /// The entries by key, without keys that have none.
    lines: HashMap<Arc<str>, VecDeque<T>, RandomState>,
    /// The keys that have entries, in the order of their turns.
    turns: VecDeque<Arc<str>>,
    len: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            lines: HashMap::default(),
            turns: VecDeque::new(),
            len: 0,
        }
    }
}

impl<T> FairQueue<T> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry of a key behind its other ones. A key without entries gets its turn after all
    /// others.
    pub fn push(&mut self, key: &str, entry: T) {
        self.len += 1;
        if let Some(line) = self.lines.get_mut(key) {
            line.push_back(entry);
            return;
        }
        let key: Arc<str> = key.into();
        self.turns.push_back(Arc::clone(&key));
        self.lines.insert(key, VecDeque::from([entry]));
    }

    /// Removes and returns the first entry of the key whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let key = self.turns.pop_front()?;
        let line = self.lines.get_mut(&key)?;
        let entry = line.pop_front()?;
        self.len -= 1;
        if line.is_empty() {
            self.lines.remove(&key);
        } else {
            self.turns.push_back(key);
        }
        Some(entry)
    }

    /// Removes and returns the first entry of a key for which `is_it` returns true.
    pub fn remove(&mut self, key: &str, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let line = self.lines.get_mut(key)?;
        let at = line.iter().position(is_it)?;
        let entry = line.remove(at)?;
        self.len -= 1;
        if line.is_empty() {
            self.lines.remove(key);
            self.turns.retain(|other| **other != *key);
        }
        Some(entry)
    }

    /// Removes and returns the newest entry of the key that has the most, to make room for an entry
    /// of `key`. Returns `None` if `key` would then have as many entries as that key has now: it
    /// already has its fair share.
    pub fn displace(&mut self, key: &str) -> Option<T> {
        let own = self.lines.get(key).map_or(0, VecDeque::len);
        let lines = self.lines.iter();
        let (longest, line) = lines.max_by_key(|(_, line)| line.len())?;
        if line.len() < own + 2 {
            return None;
        }
        let longest = Arc::clone(longest);
        self.len -= 1;
        // At least one entry stays in the line.
        self.lines.get_mut(&longest)?.pop_back()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A key that comes back gets its turn after the keys that were there before.
    #[test]
    fn keys_take_turns() {
        let mut queue = FairQueue::new();
        for (key, entry) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5), ("c", 6)] {
            queue.push(key, entry);
        }
        assert_eq!([queue.pop(), queue.pop()], [Some(1), Some(4)]);
        queue.push("d", 7);
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest, [6, 2, 5, 7, 3]);
        assert!(queue.is_empty() && queue.turns.is_empty() && queue.lines.is_empty());
    }

    #[test]
    fn an_entry_that_leaves_does_not_delay_others() {
        let mut queue = FairQueue::new();
        for (key, entry) in [("a", 1), ("a", 2), ("b", 3), ("c", 4)] {
            queue.push(key, entry);
        }
        assert_eq!(queue.remove("b", |entry| *entry == 3), Some(3));
        assert_eq!(queue.remove("b", |entry| *entry == 3), None);
        assert_eq!(queue.remove("a", |entry| *entry == 1), Some(1));
        assert_eq!(
            queue.remove("a", |entry| *entry == 4),
            None,
            "of another key"
        );
        assert_eq!(queue.len(), 2);
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest, [2, 4]);
    }

    #[test]
    fn the_longest_line_makes_room_for_a_shorter_one() {
        let mut queue = FairQueue::new();
        for (key, entry) in [("a", 1), ("a", 2), ("a", 3), ("b", 4)] {
            queue.push(key, entry);
        }
        assert_eq!(queue.displace("a"), None);
        assert_eq!(queue.displace("b"), Some(3));
        assert_eq!(queue.displace("b"), None);
        assert_eq!(queue.displace("c"), Some(2));
        assert_eq!(queue.displace("c"), None);
        assert_eq!(queue.len(), 2);
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest, [1, 4]);
    }

    proptest! {
        /// While a key has entries, no other key gets two turns between two of its own; the entries
        /// of a key keep their order; and no entry is lost.
        #[test]
        fn every_key_gets_its_turn(steps in vec(prop_oneof![Just(None), (0_u8..4).prop_map(Some)], 0..200)) {
            let mut queue = FairQueue::new();
            let mut waiting = [const { VecDeque::new() }; 4];
            // The turns of other keys since each key had its last one, or began to wait.
            let mut since = [[0; 4]; 4];
            for (number, step) in steps.into_iter().enumerate() {
                if let Some(key) = step {
                    let key = usize::from(key);
                    if waiting[key].is_empty() {
                        since[key] = [0; 4];
                    }
                    waiting[key].push_back(number);
                    queue.push(&key.to_string(), (key, number));
                } else if let Some((key, number)) = queue.pop() {
                    prop_assert_eq!(waiting[key].pop_front(), Some(number));
                    since[key] = [0; 4];
                    for (other, turns) in since.iter_mut().enumerate() {
                        turns[key] += 1;
                        prop_assert!(other == key || waiting[other].is_empty() || turns[key] <= 1);
                    }
                } else {
                    prop_assert!(waiting.iter().all(VecDeque::is_empty));
                }
                prop_assert_eq!(queue.len(), waiting.iter().map(VecDeque::len).sum::<usize>());
            }
        }
    }
}
