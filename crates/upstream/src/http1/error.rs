//! The failures of an exchange over a connection. Their texts are for logs, and contain none of the
//! data that was sent over the connection.

use std::io;

/// The failure of a connection, or of the response that was read from it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Http1Error {
    /// The host closed the connection before the request was written. The host or a proxy is at
    /// fault if the connection was new; the request may be sent again, because nothing of it was
    /// written.
    #[error("connection closed before the request was sent")]
    Closed,
    /// The host sent bytes before the request was written. The host or a proxy is at fault; the
    /// request may be sent again, because nothing of it was written.
    #[error("bytes were received before the request was sent")]
    Unexpected,
    /// The host closed the connection before the head of the response was complete. The host or a
    /// proxy is at fault, unless it closed an idle connection just then; the request may be sent
    /// again only in that case (see `Host::exchange`), because the host may have processed it.
    #[error("connection closed before message completed")]
    Incomplete,
    /// Reading failed, for example because the connection was reset. The host, a proxy or the
    /// network is at fault; the request may be sent again if nothing of it was written, or in the
    /// case of an idle connection as after `Incomplete`.
    #[error("connection error: {0}")]
    Read(#[source] io::Error),
    /// Writing the request failed, and no head of a response was received. The host, a proxy or the
    /// network is at fault; the request may be sent again only in the case of an idle connection as
    /// after `Incomplete`.
    #[error("error writing the request: {0}")]
    Write(#[source] io::Error),
    /// The head or the framing of the response is invalid. The host or a proxy is at fault; the
    /// request must not be sent again, because the host may have processed it.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// A violation of HTTP/1.1 in a response, or of one of the limits.
///
/// A proxy is any server between the gateway and the host, such as a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Invalid {
    /// The head is not a valid head of HTTP/1.x, or has more than 100 headers. The host or a proxy
    /// is at fault, or the operator if the base URL leads to a port for TLS or another protocol.
    #[error("invalid response head: {0}")]
    Head(httparse::Error),
    /// The status is below 100. The host or a proxy is at fault, and has to be corrected.
    #[error("invalid status code")]
    Status,
    /// The head is longer than 64 KiB. The host or a proxy is at fault, and has to send fewer or
    /// shorter headers; the limit cannot be changed.
    #[error("response head is too large")]
    TooLarge,
    /// `Content-Length` is not a number, or its values differ. The host or a proxy is at fault, and
    /// has to be corrected: the end of the body is unknown.
    #[error("invalid content-length")]
    ContentLength,
    /// An HTTP/1.0 response has `Transfer-Encoding`. The host or a proxy is at fault, and has to
    /// use HTTP/1.1 or no transfer coding.
    #[error("unexpected transfer-encoding")]
    TransferEncoding,
    /// The size or the end of a chunk is invalid, or the extensions are invalid or have 16 KiB. The
    /// host or a proxy is at fault, and has to be corrected; the received part is not the whole
    /// body.
    #[error("error reading the response body: invalid chunk")]
    Chunk,
    /// The trailers are invalid, more than 100, or have 64 KiB. The host or a proxy is at fault,
    /// and has to be corrected; the received part is not known to be the whole body.
    #[error("error reading the response body: invalid trailers")]
    Trailers,
    /// The connection was closed before the end of the body. The host, a proxy or the network is at
    /// fault; the received part must not be used as if it were the whole body.
    #[error("error reading the response body: connection closed before its end")]
    Truncated,
}
