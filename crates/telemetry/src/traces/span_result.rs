//! The results of exporting spans, as a metric counts them.

/// The result of exporting a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanResult {
    /// The collector has accepted it.
    Sent,
    /// There was no room in the queue.
    QueueFull,
    /// The collector could not be reached, or has refused the whole export.
    Failed,
    /// The collector has accepted other spans of the same export, but not this one.
    Rejected,
}

impl SpanResult {
    /// All results.
    pub const ALL: [Self; 4] = [Self::Sent, Self::QueueFull, Self::Failed, Self::Rejected];

    /// The value in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::QueueFull => "queue_full",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
        }
    }
}
