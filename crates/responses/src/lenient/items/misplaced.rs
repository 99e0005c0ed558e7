//! Finds the items of events that have the index of another item.
//!
//! vLLM and SGLang number the next item before they send the done events of the last one, for
//! models with the Harmony format:
//! <https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/serving_responses.py>.

use super::super::event::{Content, Item};
use super::{ItemKind, ItemState, Items, Key, Place};

impl Items {
    /// Finds the open item with this id. SGLang gives items of different kinds the same one.
    pub(super) fn open_with_id(&self, id: Option<&str>, kind: ItemKind) -> Option<usize> {
        let id = id.filter(|id| !id.is_empty())?;
        let is_it = |at: &usize| {
            let item = &self.all[*at];
            let is_kind = item.kind.is_none_or(|own| own == kind);
            !item.is_done && is_kind && item.id.as_deref() == Some(id)
        };
        let mut open = self.lookup.of(Some(Key::Id(id)), self.done).rev();
        open.find(is_it)
    }

    /// Finds the empty item that was added under the index of an earlier one, and that clients find by
    /// the index of its further events. vLLM adds a message after reasoning so:
    /// <https://github.com/vllm-project/vllm/pull/35184>.
    pub(super) fn added_under_another(&self, shown: u64, kind: Option<ItemKind>) -> Option<usize> {
        let at = self.shown_at(shown)?;
        let item = &self.all[at];
        let is_kind = kind.is_none() || item.kind == kind;
        (is_kind && item.is_displaced()).then_some(at)
    }

    /// Finds the open item that is completed under the index of another one: by the id, else by all
    /// of its content.
    pub(super) fn misplaced(&self, item: &Item<'_>) -> Option<usize> {
        let kind = ItemKind::of(item.kind.or_empty());
        let by_id = self.open_with_id(item.id.get(), kind);
        by_id.or_else(|| {
            let at = self.only_open(kind)?;
            let known = &self.all[at];
            let is_same = known.has_name(item.name.or_empty()) && known.has_all(&all_of(item));
            is_same.then_some(at)
        })
    }

    /// Finds the open call that is completed with these arguments under an index and an id that no
    /// item has.
    pub(in super::super) fn misplaced_call(
        &self,
        index: Option<u64>,
        id: Option<&str>,
        arguments: &str,
    ) -> Option<Place> {
        if index.is_none() || self.known(index, id, Some(ItemKind::Call)).is_some() {
            return None;
        }
        let at = self.only_open(ItemKind::Call)?;
        self.all[at].has_all(arguments).then_some(Place(at))
    }

    /// The item of a kind that is open, if there is one only.
    fn only_open(&self, kind: ItemKind) -> Option<usize> {
        let is_open = |at: &usize| !self.all[*at].is_done && self.all[*at].kind == Some(kind);
        let mut open = (self.done..self.all.len()).filter(is_open);
        open.next().filter(|_| open.next().is_none())
    }
}

impl ItemState {
    /// Returns true if an earlier item has its index, and none of its content has come.
    pub(super) fn is_displaced(&self) -> bool {
        let is_empty = !self.has_text() && self.call.arguments.is_empty();
        self.index != Some(self.shown as u64) && is_empty && !self.is_done
    }

    fn has_name(&self, name: &str) -> bool {
        self.call.name.is_empty() || self.call.name == name
    }

    /// Returns true if it has exactly this content, and any at all.
    fn has_all(&self, content: &str) -> bool {
        let parts = self.parts.iter().map(|part| part.text.as_str());
        let known: String = std::iter::once(self.call.arguments.as_str())
            .chain(parts)
            .collect();
        !known.is_empty() && known == content
    }
}

/// All texts of an item, or the arguments of a call.
fn all_of(item: &Item<'_>) -> String {
    let text = |part: &Content<'_>| [part.text.or_empty(), part.refusal.or_empty()].concat();
    let parts = item.summary.0.iter().chain(&item.content.0);
    let arguments = item.arguments.text().into_owned();
    std::iter::once(arguments).chain(parts.map(text)).collect()
}
