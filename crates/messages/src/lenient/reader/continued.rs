//! Events that only continue a text, read without being parsed.

use wire::lenient::TextPlace;

use super::Reader;

impl Reader {
    /// Returns the block whose text the last event continues.
    #[must_use]
    pub fn text_place(&self) -> Option<TextPlace> {
        self.text_place
    }

    /// Reads an event as the one that had this place, with other texts. Returns false, and reads
    /// nothing, if such an event may be an error by now.
    #[must_use]
    pub fn continue_text(&mut self, place: TextPlace, texts: [&str; 2]) -> bool {
        if self.check_open().is_err() || !self.blocks.has(place) {
            return false;
        }
        let length = (texts[0].len() + texts[1].len()) as u64;
        self.has_content |= length > 0;
        self.content_length += length;
        true
    }
}
