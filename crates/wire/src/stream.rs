//! The errors of event streams, which all protocols share.

use std::fmt;

use serde::de::DeserializeOwned;

use crate::json_fault;

/// A server-sent event that is invalid in its protocol. The text gives the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventError {
    protocol: &'static str,
    fault: String,
}

/// Deserializes the data of an event of `protocol`, a name for error messages.
///
/// # Errors
/// Returns an error if the data is not the JSON of a `T`.
pub fn read_event<T: DeserializeOwned>(
    protocol: &'static str,
    data: &str,
) -> Result<T, EventError> {
    serde_json::from_str(data).map_err(|error| EventError {
        protocol,
        fault: json_fault(&error),
    })
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid {} event: {}", self.protocol, self.fault)
    }
}

impl std::error::Error for EventError {}

/// The reason why a stream yields no reply.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamError<O, F> {
    /// The stream violates the grammar.
    Offence(O),
    /// The stream reported a failure.
    Failed(F),
}

impl<O: fmt::Display, F: fmt::Display> fmt::Display for StreamError<O, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offence(offence) => offence.fmt(f),
            Self::Failed(failure) => write!(f, "the stream failed: {failure}"),
        }
    }
}

impl<O: fmt::Debug + fmt::Display, F: fmt::Debug + fmt::Display> std::error::Error
    for StreamError<O, F>
{
}
