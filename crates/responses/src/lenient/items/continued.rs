//! Events that only continue a text, read without being parsed.

use wire::lenient::TextPlace;

use super::{Items, PartKind, Place};

impl Items {
    /// Returns the place of a part that has begun.
    pub(in super::super) fn text_place(
        &self,
        Place(item): Place,
        (kind, index): (PartKind, Option<u64>),
    ) -> Option<TextPlace> {
        let part = self.all.get(item)?.position(kind, index)?;
        let revision = self.revision;
        Some(TextPlace {
            item,
            part,
            revision,
        })
    }

    /// Appends a delta to the part at a place. Returns false, and does nothing, if the place is
    /// outdated or the item is done.
    pub(in super::super) fn continue_text(&mut self, place: TextPlace, text: &str) -> bool {
        let item = self.all.get_mut(place.item).filter(|item| !item.is_done);
        let part = item.and_then(|item| item.parts.get_mut(place.part));
        let part = part.filter(|_| place.revision == self.revision);
        let is_known = part.is_some();
        if let Some(part) = part {
            part.text.push_str(text);
        }
        is_known
    }
}
