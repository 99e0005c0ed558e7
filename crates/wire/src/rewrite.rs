//! Edits a text while it is read from front to back.

use std::borrow::Cow;
use std::ops::Range;

/// The edits of a text, in their order. Nothing is copied before the first one.
///
/// ```
/// let mut rewrite = sluicegate_wire::Rewrite::new(b"one two");
/// assert!(rewrite.is_unchanged());
/// rewrite.replace(3..4, b", ");
/// assert_eq!(rewrite.finish(), b"one, two".as_slice());
/// ```
#[derive(Clone, Debug)]
pub struct Rewrite<'a> {
    source: &'a [u8],
    /// The first `copied` bytes of the source, with their edits.
    out: Vec<u8>,
    copied: usize,
    is_unchanged: bool,
}

impl<'a> Rewrite<'a> {
    /// Creates a copy of `source` without edits.
    #[must_use]
    pub fn new(source: &'a [u8]) -> Self {
        Self {
            source,
            out: Vec::new(),
            copied: 0,
            is_unchanged: true,
        }
    }

    /// Replaces a range. It must not begin before the end of the last one. The part before that
    /// end, and the part behind the end of the source, are ignored.
    pub fn replace(&mut self, range: Range<usize>, with: &[u8]) {
        self.keep(range.start);
        self.out.extend_from_slice(with);
        self.copied = self.copied.max(range.end.min(self.source.len()));
        self.is_unchanged = false;
    }

    /// Returns the length of the source.
    #[must_use]
    pub fn source_len(&self) -> usize {
        self.source.len()
    }

    /// Returns true if nothing was replaced.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.is_unchanged
    }

    /// Returns the text with its edits.
    #[must_use]
    pub fn finish(mut self) -> Cow<'a, [u8]> {
        if self.is_unchanged {
            return self.source.into();
        }
        self.keep(self.source.len());
        self.out.into()
    }

    fn keep(&mut self, end: usize) {
        let end = end.min(self.source.len());
        let kept = self.source.get(self.copied..end).unwrap_or_default();
        self.out.extend_from_slice(kept);
        self.copied = self.copied.max(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_apply_in_their_order() {
        let source = b"0123456789";
        let mut rewrite = Rewrite::new(source);
        for (range, with) in [
            (0..0, "a"),
            (1..3, ""),
            (3..4, "bcd"),
            (9..9, "e"),
            (10..10, "f"),
        ] {
            rewrite.replace(range, with.as_bytes());
        }
        assert!(!rewrite.is_unchanged());
        assert_eq!(rewrite.finish(), b"a0bcd45678e9f".as_slice());
        assert!(matches!(Rewrite::new(source).finish(), Cow::Borrowed(_)));
    }

    #[test]
    fn ranges_out_of_order_or_bounds_lose_nothing_twice() {
        let mut rewrite = Rewrite::new(b"0123");
        rewrite.replace(2..3, b"a");
        rewrite.replace(1..2, b"b");
        rewrite.replace(9..12, b"c");
        assert_eq!(rewrite.finish(), b"01ab3c".as_slice());
    }
}
