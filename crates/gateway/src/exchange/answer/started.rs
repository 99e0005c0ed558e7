//! An answer that a target has started.

/// An answer that has started.
pub(crate) struct Started<A> {
    /// The fields of the request that were dropped.
    pub(crate) dropped: Vec<String>,
    pub(crate) answer: A,
}
