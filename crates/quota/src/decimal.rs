//! Exact decimal numbers as text: digits with an optional point, stored as integers of a small
//! unit.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};

/// The reason why a text is not an accepted decimal number. `Display` repeats the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecimalError {
    /// The text is not digits with at most one point between them.
    #[error("{found:?} is not a decimal number: expected digits and a point, such as \"1.25\"")]
    Syntax {
        /// The text.
        found: String,
    },
    /// There are too many digits after the point.
    #[error("{found:?} is too precise: expected at most {places} digits after the point")]
    Precision {
        /// The text.
        found: String,
        /// The accepted number of digits after the point.
        places: u8,
    },
    /// The number does not fit.
    #[error("{found:?} is out of range: expected at most {max}")]
    Range {
        /// The text.
        found: String,
        /// The largest accepted magnitude, as text.
        max: String,
    },
}

/// Parses a number without a sign into units of 10^-`places`, at most `max` of them.
pub(crate) fn parse(text: &str, places: u8, max: u64) -> Result<u64, DecimalError> {
    let found = || text.to_owned();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) {
        return Err(DecimalError::Syntax { found: found() });
    }
    let missing = usize::from(places).checked_sub(fraction.len());
    let Some(missing) = missing else {
        let found = found();
        return Err(DecimalError::Precision { found, places });
    };
    let digits = whole.bytes().chain(fraction.bytes());
    let digits = digits.chain(std::iter::repeat_n(b'0', missing));
    append(0, digits)
        .filter(|units| *units <= max)
        .ok_or_else(|| DecimalError::Range {
            found: found(),
            max: Decimal { units: max, places }.to_string(),
        })
}

/// Appends ASCII digits to the decimal digits of `units`. Returns `None` on overflow.
pub(crate) fn append(units: u64, digits: impl IntoIterator<Item = u8>) -> Option<u64> {
    digits.into_iter().try_fold(units, |units, digit| {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        units.checked_mul(10)?.checked_add(digit)
    })
}

/// Formats `units` of 10^-`places` with two digits after the point, or more where they are not
/// zero.
pub(crate) struct Decimal {
    pub(crate) units: u64,
    pub(crate) places: u8,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = usize::from(self.places) + 1;
        let digits = format!("{:0width$}", self.units);
        let (whole, fraction) = digits.split_at(digits.len() - usize::from(self.places));
        write!(f, "{whole}.{:0<2}", fraction.trim_end_matches('0'))
    }
}

/// Deserializes a value from a string by its `FromStr`; for a value of another type, the error
/// names `expected`.
pub(crate) fn from_text<'de, D, T>(deserializer: D, expected: &'static str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    struct Text<T>(&'static str, PhantomData<T>);

    impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text(expected, PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_parse_exactly_or_name_the_accepted_form() {
        assert_eq!(parse("1.25", 6, u64::MAX), Ok(1_250_000));
        assert_eq!(parse("0007", 2, u64::MAX), Ok(700));
        assert_eq!(parse("18446744073709551.615", 3, u64::MAX), Ok(u64::MAX));
        let message = |text: &str| parse(text, 3, 5_000).unwrap_err().to_string();
        for text in [
            "", ".", ".5", "5.", "-5", "+5", "1e3", "1_000", "1,5", " 1", "1.2.3", "\u{664}",
        ] {
            let expected = "is not a decimal number: expected digits and a point, such as \"1.25\"";
            assert_eq!(message(text), format!("{text:?} {expected}"));
        }
        assert_eq!(
            message("1.0000"),
            "\"1.0000\" is too precise: expected at most 3 digits after the point"
        );
        for text in ["5.001", "18446744073709551.616", "99999999999999999999999"] {
            let expected = "is out of range: expected at most 5.00";
            assert_eq!(message(text), format!("{text:?} {expected}"));
        }
    }

    #[test]
    fn zeros_beyond_two_places_are_not_written() {
        let shown = |units, places| Decimal { units, places }.to_string();
        assert_eq!(shown(0, 9), "0.00");
        assert_eq!(shown(1, 9), "0.000000001");
        assert_eq!(shown(500_000_000, 9), "0.50");
        assert_eq!(shown(1_250_000, 6), "1.25");
        assert_eq!(shown(1_234_000, 6), "1.234");
        assert_eq!(shown(u64::MAX, 6), "18446744073709.551615");
    }
}
