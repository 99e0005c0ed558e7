//! The failures of an exchange over a connection. Their texts are for logs, and contain none of the
//! data that was sent over the connection.

use std::io;

/// The failure of a connection, or of the response that was read from it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Http1Error {
    /// The host closed the connection before the request was written.
    #[error("connection closed before the request was sent")]
    Closed,
    /// The host sent bytes before the request was written.
    #[error("bytes were received before the request was sent")]
    Unexpected,
    /// The host closed the connection within the head of a response.
    #[error("connection closed before message completed")]
    Incomplete,
    /// Reading failed.
    #[error("connection error: {0}")]
    Read(#[source] io::Error),
    /// Writing the request failed.
    #[error("error writing the request: {0}")]
    Write(#[source] io::Error),
    /// The head or the framing of the response is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// A violation of HTTP/1.1 in a response, or of one of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Invalid {
    /// The head is no HTTP/1.x head.
    #[error("invalid response head: {0}")]
    Head(httparse::Error),
    /// The status is below 100.
    #[error("invalid status code")]
    Status,
    /// The head exceeds its limit.
    #[error("response head is too large")]
    TooLarge,
    /// `Content-Length` is no number, or not the same in all its values.
    #[error("invalid content-length")]
    ContentLength,
    /// An HTTP/1.0 response has `Transfer-Encoding`.
    #[error("unexpected transfer-encoding")]
    TransferEncoding,
    /// The size, the extension or the end of a chunk is invalid or too long.
    #[error("error reading the response body: invalid chunk")]
    Chunk,
    /// The trailers are invalid, too many or too long.
    #[error("error reading the response body: invalid trailers")]
    Trailers,
    /// The connection was closed within the body.
    #[error("error reading the response body: connection closed before its end")]
    Truncated,
}
