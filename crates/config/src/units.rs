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
    /// Reads a duration, which can be neither negative nor longer than [`LONGEST`].
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let read = SignedDuration::deserialize(from).map_err(|_| D::Error::custom(A_TIME))?;
        let time = Duration::try_from(read);
        let time = time.map_err(|_| D::Error::custom("a duration cannot be negative"))?;
        match time > LONGEST {
            true => Err(D::Error::custom("a duration can be 876000h at most")),
            false => Ok(time),
        }
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
        ByteSize::deserialize(from).map_err(|_| D::Error::custom(A_SIZE))
    }

    /// Reads a size that may be absent.
    pub(crate) fn deserialize_some<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<ByteSize>, D::Error> {
        Self::deserialize(from).map(Some)
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

const A_TIME: &str = "expected a duration with its unit, such as \"90s\" or \"1h 30m\"";
const A_SIZE: &str = "expected a size such as \"32MiB\", or a number of bytes";
/// The longest duration, 100 years: the clock of the system cannot represent every later time.
const LONGEST: Duration = Duration::from_hours(876_000);

/// Converts a configured size to a number of bytes in memory.
#[must_use]
pub fn bytes(size: ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Setting {
        #[serde(with = "Time")]
        time: Duration,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct SizeSetting {
        #[serde(default, deserialize_with = "Size::deserialize_some")]
        size: Option<ByteSize>,
    }

    #[test]
    fn durations_and_sizes_need_a_unit() {
        for time in ["30", "\"30\"", "\"soon\""] {
            let error = toml::from_str::<Setting>(&format!("time = {time}")).unwrap_err();
            let expected = "expected a duration with its unit, such as \"90s\" or \"1h 30m\"";
            assert_eq!(error.message(), expected, "{time}");
        }
        for size in ["-5", "\"32 megs\"", "true"] {
            let error = toml::from_str::<SizeSetting>(&format!("size = {size}")).unwrap_err();
            let expected = "expected a size such as \"32MiB\", or a number of bytes";
            assert_eq!(error.message(), expected, "{size}");
        }
        let read: SizeSetting = toml::from_str("size = 1024").unwrap();
        assert_eq!(read.size, Some(ByteSize::kib(1)));
    }

    #[test]
    fn durations_are_at_most_100_years() {
        let read = |text: &str| {
            let read = toml::from_str::<Setting>(&format!("time = {text:?}"));
            read.map(|setting| setting.time.as_secs())
                .map_err(|error| error.message().to_owned())
        };
        assert_eq!(read("876000h"), Ok(3_153_600_000));
        assert_eq!(read("0s"), Ok(0));
        let too_long = Err("a duration can be 876000h at most".to_owned());
        assert_eq!(read("876000h 1s"), too_long);
        assert_eq!(read("2562047788015215h"), too_long);
        assert_eq!(read("-1s"), Err("a duration cannot be negative".to_owned()));
    }
}
