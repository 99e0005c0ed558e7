//! Finds items by their index and their id, however many an answer has.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The positions of items, by the keys that events use for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Lookup(BTreeSet<(u64, usize)>);

/// A key that finds an item.
#[derive(Clone, Copy, Hash)]
pub(super) enum Key<'i> {
    /// The index in its events, or none.
    Index(Option<u64>),
    /// Its id.
    Id(&'i str),
    /// Its `call_id`.
    CallId(&'i str),
    /// Both of them.
    IndexAndId(Option<u64>, &'i str),
    /// The index by which clients find it.
    Shown(u64),
}

impl Lookup {
    /// Adds an item at this position.
    pub(super) fn add(&mut self, key: Key<'_>, at: usize) {
        self.0.insert((key.hash(), at));
    }

    /// Removes an item at this position.
    pub(super) fn remove(&mut self, key: Key<'_>, at: usize) {
        self.0.remove(&(key.hash(), at));
    }

    /// Returns the positions in order, from `first` on, of the items that may have this key. Whoever
    /// looks for one compares it, because keys are known by their hashes.
    pub(super) fn of(
        &self,
        key: Option<Key<'_>>,
        first: usize,
    ) -> impl DoubleEndedIterator<Item = usize> + use<'_> {
        let key = key.map(Key::hash);
        let range = key.map(|key| self.0.range((key, first)..=(key, usize::MAX)));
        range.into_iter().flatten().map(|(_, at)| *at)
    }
}

impl Key<'_> {
    fn hash(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        Hash::hash(&self, &mut hasher);
        hasher.finish()
    }
}
