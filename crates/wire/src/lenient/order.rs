//! The order of the texts of an answer.

/// The places of the latest texts of an answer, by their kind.
///
/// A translated answer has one text of each kind, to which pieces are appended as they come. It is
/// the text of the answer only if no piece belongs before one that came earlier.
///
/// ```
/// use sluicegate_wire::lenient::TextOrder;
///
/// let mut order = TextOrder::default();
/// order.note(0, (0, 0));
/// order.note(1, (2, 0));
/// order.note(0, (1, 0));
/// assert!(!order.is_broken());
/// order.note(0, (0, 0));
/// assert!(order.is_broken());
/// ```
#[derive(Clone, Debug, Default)]
pub struct TextOrder {
    latest: [(u64, u64); KINDS],
    is_broken: bool,
}

impl TextOrder {
    /// Notes a piece of a text of this kind: its item or block, and its part in it.
    pub fn note(&mut self, kind: usize, place: (u64, u64)) {
        if let Some(latest) = self.latest.get_mut(kind) {
            self.is_broken |= place < *latest;
            *latest = place.max(*latest);
        }
    }

    /// Returns true if a piece belongs before one of its kind that came earlier.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }
}

/// The number of kinds of text: output text, refusals, reasoning and its summary.
const KINDS: usize = 4;
