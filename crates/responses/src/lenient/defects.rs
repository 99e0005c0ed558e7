//! Members that an event lacks, and ids that it changes, which those who pass it on can correct.

/// Members that an event lacks, and by which clients find its item, part or output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The `output_index` by which clients find the item, if the event has no index or the index of
    /// an earlier item.
    pub output_index: Option<usize>,
    /// The `content_index` that is missing.
    pub content_index: Option<u64>,
    /// The `summary_index` that is missing.
    pub summary_index: Option<u64>,
    /// True if the response has no `output`, or if it is empty in the response at the end.
    pub output: bool,
}

/// An id of an event that differs from the one before, of the same response or item.
///
/// GitHub Copilot gives the response and each item a new id in every event. Clients that find an
/// item by its id need the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedId {
    /// The object that has it.
    pub owner: IdOwner,
    /// The first id.
    pub first: String,
}

/// The object of an event that has an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdOwner {
    /// The event itself: its `item_id`.
    Event,
    /// The `item`.
    Item,
    /// The `response`.
    Response,
    /// The item of the response's `output` at this position.
    Output(usize),
}

impl ChangedId {
    pub(super) fn new(owner: IdOwner, first: &str) -> Self {
        Self {
            owner,
            first: first.to_owned(),
        }
    }
}
