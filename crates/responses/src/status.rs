//! The status of a response and of its items.

wire::open_enum! {
    /// The status of a response or of one of its items.
    pub enum Status {
        /// The model is still generating.
        InProgress = "in_progress",
        /// It is complete.
        Completed = "completed",
        /// It was truncated or filtered.
        Incomplete = "incomplete",
        /// It failed.
        Failed = "failed",
        /// It is queued. The encoder never emits this status.
        Queued = "queued",
        /// It was cancelled. The encoder never emits this status.
        Cancelled = "cancelled",
    }
}
