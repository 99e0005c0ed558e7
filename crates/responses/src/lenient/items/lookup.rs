//! Finds items by their index and their id, however many an answer has.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The positions of items by the index in their events, by their id, and by the index by which clients
/// find them.
#[derive(Clone, Debug, Default)]
pub(super) struct Lookup {
    by_index: BTreeSet<(Option<u64>, usize)>,
    /// By the hash of the id: who looks for one compares it.
    by_id: BTreeSet<(u64, usize)>,
    by_shown: BTreeSet<(u64, usize)>,
}

impl Lookup {
    /// Notes an item that begins.
    pub(super) fn add(&mut self, at: usize, index: Option<u64>, shown: usize) {
        self.by_index.insert((index, at));
        self.by_shown.insert((shown as u64, at));
    }

    /// Notes the index of an item that had none.
    pub(super) fn set_index(&mut self, at: usize, index: Option<u64>) {
        self.by_index.remove(&(None, at));
        self.by_index.insert((index, at));
    }

    /// Notes the id of an item that had none.
    pub(super) fn set_id(&mut self, at: usize, id: &str) {
        self.by_id.insert((hash(id), at));
    }

    /// Returns the positions of the items with this index, or without any, in order.
    pub(super) fn of_index(
        &self,
        index: Option<u64>,
    ) -> impl DoubleEndedIterator<Item = usize> + Clone {
        at(self.by_index.range((index, 0)..=(index, usize::MAX)))
    }

    /// Returns the positions of the items that may have this id, in order.
    pub(super) fn of_id(
        &self,
        id: Option<&str>,
    ) -> impl DoubleEndedIterator<Item = usize> + Clone + use<'_> {
        let id = id.map(hash);
        let found = id.map(|id| at(self.by_id.range((id, 0)..=(id, usize::MAX))));
        found.into_iter().flatten()
    }

    /// Returns the position of the item that clients find by this index.
    pub(super) fn of_shown(&self, shown: u64) -> Option<usize> {
        at(self.by_shown.range((shown, 0)..=(shown, usize::MAX))).next()
    }
}

fn at<'a, K: 'a>(
    range: impl DoubleEndedIterator<Item = &'a (K, usize)> + Clone,
) -> impl DoubleEndedIterator<Item = usize> + Clone {
    range.map(|(_, at)| *at)
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
