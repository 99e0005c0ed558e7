//! Members that an event lacks, and ids that it changes, which those who pass it on can correct.

/// Members that an event lacks, and by which clients find its item, part or output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The `output_index` by which clients find the item, if the event has no index or the index of
    /// an earlier item.
    pub output_index: Option<usize>,
    /// The `content_index` by which clients find the part, if the event has none or another one.
    pub content_index: Option<u64>,
    /// The `summary_index` that is missing.
    pub summary_index: Option<u64>,
    /// True if the response has no `output`, or if it is empty in the response at the end.
    pub output: bool,
}

/// An id of an event that differs from the one before, of the same response, item or call.
///
/// GitHub Copilot gives the response and each item a new id in every event, and vLLM gives a call
/// another id in the final output. Clients that find an item or a call by its id need the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedId {
    /// The object that has it.
    pub owner: IdOwner,
    /// The name of its member: `id`, `item_id` or `call_id`.
    pub name: &'static str,
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
    pub(super) fn new(owner: IdOwner, name: &'static str, first: &str) -> Self {
        Self {
            owner,
            name,
            first: first.to_owned(),
        }
    }
}
