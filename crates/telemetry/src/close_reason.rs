//! The reasons why client connections end, for the metrics.

/// Why a connection ended, from a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// One side closed it in order.
    Done,
    /// No request for the idle timeout.
    Idle,
    /// No byte was ever received.
    NoFirstByte,
    /// The head of a request was not received in time.
    SlowHead,
    /// The received bytes are not an HTTP/1 request, or violate HTTP/2.
    BadHead,
    /// An HTTP/2 client has sent too many frames that carry no request.
    Flood,
    /// An HTTP/2 client has not answered a ping in time, or is stuck within the head of a request.
    Unresponsive,
    /// The client did not read its response in time.
    SlowReader,
}

impl CloseReason {
    /// The value in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Idle => "idle",
            Self::NoFirstByte => "no_first_byte",
            Self::SlowHead => "slow_head",
            Self::BadHead => "bad_head",
            Self::Flood => "flood",
            Self::Unresponsive => "unresponsive",
            Self::SlowReader => "slow_reader",
        }
    }
}
