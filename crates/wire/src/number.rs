//! Deserialization of integers, including integral floats: `3`, and `3.0` from languages with a single number type.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Deserializes an integer; an integral float such as `3.0` is accepted.
///
/// For `#[serde(deserialize_with = "wire::integer")]`.
///
/// # Errors
/// Returns an error if the value is not a number, has a fractional part or does not fit into an `i64`.
pub fn integer<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    from.deserialize_any(Integer)
}

/// Deserializes an integer or `null`; `null` means absent.
///
/// For `#[serde(default, deserialize_with = "wire::integer_or_null")]`.
///
/// # Errors
/// Returns an error under the same conditions as [`integer`].
pub fn integer_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    from.deserialize_option(Nullable)
}

/// Converts `number` to an integer if it is integral and within the exactly representable range.
pub(crate) fn integral(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

struct Integer;

impl Visitor<'_> for Integer {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i64, E> {
        i64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<i64, E> {
        integral(number).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }
}

struct Nullable;

impl<'de> Visitor<'de> for Nullable {
    type Value = Option<i64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer or null")
    }

    fn visit_none<E: Error>(self) -> Result<Option<i64>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<i64>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Option<i64>, D::Error> {
        integer(from).map(Some)
    }
}

/// The largest magnitude up to which an `f64` represents every integer exactly: 2^53.
pub(crate) const EXACT: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Holder {
        #[serde(default, deserialize_with = "super::integer_or_null")]
        n: Option<i64>,
    }

    fn read(text: &str) -> Option<Option<i64>> {
        serde_json::from_str::<Holder>(text).ok().map(|holder| holder.n)
    }

    /// Integral floats are accepted as integers; fractions and out-of-range numbers are rejected.
    #[test]
    fn j03_integral_floats_are_integers_and_nothing_else_is() {
        assert_eq!(read(r#"{"n":1.0}"#), Some(Some(1)));
        assert_eq!(read(r#"{"n":1e2}"#), Some(Some(100)));
        assert_eq!(read(r#"{"n":-0}"#), Some(Some(0)));
        assert_eq!(read(r#"{"n":null}"#), Some(None));
        assert_eq!(read("{}"), Some(None));
        for wrong in
            [r#"{"n":1.5}"#, r#"{"n":"1"}"#, r#"{"n":true}"#, r#"{"n":1e300}"#, r#"{"n":18446744073709551615}"#]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
