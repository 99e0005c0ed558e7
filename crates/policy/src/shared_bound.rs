//! A bound that several keys share. Entries beyond it replace the oldest entries of the key that
//! uses most, so that no key displaces the entries of others that use less.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The sizes of the entries of keys.
#[derive(Debug, Default)]
pub struct SharedBound {
    of_keys: HashMap<String, OfKey>,
    /// The size of all entries of each key, and the key.
    by_size: BTreeSet<(usize, String)>,
    total: usize,
}

#[derive(Debug, Default)]
struct OfKey {
    size: usize,
    /// The ids and sizes of the entries by their numbers, oldest first.
    entries: BTreeMap<u64, (String, usize)>,
}

impl SharedBound {
    /// Returns the size of all entries.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Adds an entry of a key. Numbers rise with time.
    pub fn add(&mut self, key: &str, number: u64, id: &str, size: usize) {
        let of_key = self.of_keys.entry(key.to_owned()).or_default();
        let before = of_key.size;
        of_key.entries.insert(number, (id.to_owned(), size));
        of_key.size += size;
        self.total += size;
        let after = of_key.size;
        self.resize(key, before, after);
    }

    /// Removes the entry of a key with this number, if there is one.
    pub fn remove(&mut self, key: &str, number: u64) {
        let Some(of_key) = self.of_keys.get_mut(key) else {
            return;
        };
        let Some((_, size)) = of_key.entries.remove(&number) else {
            return;
        };
        let before = of_key.size;
        of_key.size -= size;
        self.total -= size;
        let (after, is_last) = (of_key.size, of_key.entries.is_empty());
        self.resize(key, before, after);
        if is_last {
            self.of_keys.remove(key);
            self.by_size.remove(&(after, key.to_owned()));
        }
    }

    /// Returns the key that uses most, and the id of its oldest entry.
    pub fn oldest_of_largest(&self) -> Option<(&str, &str)> {
        let (_, key) = self.by_size.last()?;
        let (_, (id, _)) = self.of_keys.get(key)?.entries.first_key_value()?;
        Some((key, id))
    }

    fn resize(&mut self, key: &str, before: usize, after: usize) {
        self.by_size.remove(&(before, key.to_owned()));
        self.by_size.insert((after, key.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_of_the_largest_key_is_next() {
        let mut bound = SharedBound::default();
        assert_eq!(bound.oldest_of_largest(), None);
        bound.add("small", 0, "s", 3);
        for number in 1..=3 {
            bound.add("large", number, &format!("l{number}"), 2);
        }
        assert_eq!(bound.total(), 9);
        assert_eq!(bound.oldest_of_largest(), Some(("large", "l1")));
        bound.remove("large", 1);
        bound.remove("large", 1);
        assert_eq!(bound.oldest_of_largest(), Some(("large", "l2")));
        bound.remove("large", 2);
        assert_eq!(bound.oldest_of_largest(), Some(("small", "s")));
        bound.remove("small", 0);
        bound.remove("large", 3);
        assert_eq!((bound.total(), bound.oldest_of_largest()), (0, None));
        assert!(bound.of_keys.is_empty() && bound.by_size.is_empty());
    }
}
