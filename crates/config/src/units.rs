//! Durations and sizes, as settings have them.

use std::time::Duration;

use bytesize::ByteSize;
use jiff::SignedDuration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Reads a duration, which cannot be negative.
pub(crate) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let read = SignedDuration::deserialize(from)?;
    Duration::try_from(read).map_err(|_| D::Error::custom("a duration cannot be negative"))
}

/// Converts a configured size to a number of bytes in memory.
#[must_use]
pub fn bytes(size: ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}
