//! The reasons why an answer is a failure.

use std::fmt;

/// The reason why an answer is a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The data is no event or reply of the protocol. The text gives the reason, without quoting
    /// the data.
    Malformed(String),
    /// The server reports an error. The text is the JSON of the event or reply that contains it.
    Reported(String),
    /// The word for the end is unknown, or means that the model has failed.
    Stop(String),
    /// The answer ended before it was complete.
    Truncated,
    /// Events that contradict each other. The text names the contradiction.
    Contradiction(&'static str),
    /// A call that cannot be executed, in an answer that claims to be complete. The text gives the
    /// reason.
    Call(&'static str),
    /// An index above [`MAX_INDEX`].
    Index(u64),
}

impl ReadError {
    /// The error for JSON that is no event or reply.
    #[must_use]
    pub fn json(error: &serde_json::Error) -> Self {
        Self::Malformed(crate::json_fault(error))
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => write!(f, "malformed event: {why}"),
            Self::Reported(_) => f.write_str("the server reports an error"),
            Self::Stop(word) => write!(
                f,
                "the answer ended with '{}'",
                crate::truncate_for_error(word)
            ),
            Self::Truncated => f.write_str("the answer ended before it was complete"),
            Self::Contradiction(what) => write!(f, "contradicting events: {what}"),
            Self::Call(why) => write!(f, "a call that cannot be executed: {why}"),
            Self::Index(index) => {
                write!(f, "malformed event: the index {index} exceeds {MAX_INDEX}")
            }
        }
    }
}

impl std::error::Error for ReadError {}

/// Checks an index of an item, a block, a choice or a call.
///
/// # Errors
/// If it exceeds [`MAX_INDEX`].
pub fn bounded(index: u64) -> Result<usize, ReadError> {
    match usize::try_from(index) {
        Ok(small) if small <= MAX_INDEX => Ok(small),
        _ => Err(ReadError::Index(index)),
    }
}

/// The largest index of an item, a block, a choice or a call, which also limits their number in one
/// answer.
pub const MAX_INDEX: usize = 4095;
