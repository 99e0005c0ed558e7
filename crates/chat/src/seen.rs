//! Detection of repeated members.

/// The numbers of the members that an object had so far. No repeated member is accepted, because
/// parsers differ in which of two counts.
#[derive(Default)]
pub(crate) struct Seen(u16);

impl Seen {
    /// Notes the member with this number, which is less than 16. Returns `None` if it was noted
    /// before.
    pub(crate) fn once(&mut self, number: u8) -> Option<()> {
        let bit = 1 << number;
        let is_new = self.0 & bit == 0;
        self.0 |= bit;
        is_new.then_some(())
    }
}
