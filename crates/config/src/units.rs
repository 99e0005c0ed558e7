//! Durations and sizes, as settings have them.

use std::time::Duration;

use bytesize::ByteSize;
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

// Documentation of these types would be a part of the documentation of their settings.

// The form of a duration: "90s", "1h 30m".
#[derive(JsonSchema)]
#[schemars(inline, extend("type" = "string"))]
pub(crate) struct Time;

// The form of a size: "32MiB", or a number of bytes.
#[derive(JsonSchema)]
#[schemars(inline, extend("type" = ["string", "integer"]))]
pub(crate) struct Size;

impl Time {
    /// Reads a duration, which cannot be negative.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let read = SignedDuration::deserialize(from)?;
        Duration::try_from(read).map_err(|_| D::Error::custom("a duration cannot be negative"))
    }

    /// Reads a duration that may be absent.
    pub(crate) fn deserialize_some<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Self::deserialize(from).map(Some)
    }

    /// Writes a duration in seconds, as most settings have it.
    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{}s", time.as_secs_f64()))
    }
}

impl Size {
    /// Reads a size.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ByteSize, D::Error> {
        ByteSize::deserialize(from)
    }

    /// Writes a size in the largest unit that divides it.
    pub(crate) fn serialize<S: Serializer>(size: &ByteSize, to: S) -> Result<S::Ok, S::Error> {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        let size = size.as_u64();
        let fits = |(bits, _): &(u32, _)| size.trailing_zeros() >= *bits;
        match units.into_iter().find(fits) {
            Some((bits, unit)) => to.collect_str(&format_args!("{}{unit}", size >> bits)),
            None => to.serialize_u64(size),
        }
    }
}

/// Converts a configured size to a number of bytes in memory.
#[must_use]
pub fn bytes(size: ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}
