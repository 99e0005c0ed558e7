//! How answers end.

/// How an answer ended. Exactly one of these is told for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// Whole.
    Completed,
    /// Cut by the cap on the output.
    Incomplete,
    /// Refused before it began, by the client's fault.
    Refused,
    /// Over the concurrency limit or another bound.
    Shed,
    /// The engine failed.
    EngineError,
    /// The engine ended without an end.
    Truncated,
    /// Out of time.
    Timeout,
    /// The client went away.
    ClientGone,
    /// Cut by the end of the process.
    Shutdown,
}

impl Outcome {
    /// The word for logs and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Refused => "refused",
            Self::Shed => "shed",
            Self::EngineError => "engine_error",
            Self::Truncated => "truncated",
            Self::Timeout => "timeout",
            Self::ClientGone => "client_gone",
            Self::Shutdown => "shutdown",
        }
    }
}
