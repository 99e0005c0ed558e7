//! The result of decoding a part of a body.

use std::ops::Range;

use crate::http1::error::Invalid;

/// The result of decoding the bytes of one read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// The place where the data is now.
    pub(crate) data: Range<usize>,
    /// The number of bytes that belong to the body: others follow its end.
    pub(crate) used: usize,
    /// The violation that follows the data, if any.
    pub(crate) violation: Option<Invalid>,
}
