//! Deserialization of integers, including integral floats: `3`, and `3.0` from languages with a
//! single number type.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Number;

/// Deserializes an integer; an integral float such as `3.0` is accepted.
///
/// For `#[serde(deserialize_with = "wire::integer")]`.
///
/// # Errors
/// Returns an error if the value is not a number, has a fractional part or does not fit into an
/// `i64`.
pub fn integer<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    to_integer(&Number::deserialize(from)?)
}

/// Deserializes an integer or `null`; `null` means absent.
///
/// For `#[serde(default, deserialize_with = "wire::integer_or_null")]`.
///
/// # Errors
/// Returns an error under the same conditions as [`integer`].
pub fn integer_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Option::<Number>::deserialize(from)?
        .as_ref()
        .map(to_integer)
        .transpose()
}

fn to_integer<E: Error>(number: &Number) -> Result<i64, E> {
    let integer = if number.is_f64() {
        number.as_f64().and_then(integral)
    } else {
        number.as_i64()
    };
    integer.ok_or_else(|| E::custom(format_args!("expected an integer, but got {number}")))
}

/// Converts `number` to an integer if it is integral and within the exactly representable range.
pub(crate) fn integral(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
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
        serde_json::from_str::<Holder>(text)
            .ok()
            .map(|holder| holder.n)
    }

    /// Integral floats are accepted as integers; fractions and out-of-range numbers are rejected.
    #[test]
    fn j03_integral_floats_are_integers_and_nothing_else_is() {
        assert_eq!(read(r#"{"n":1.0}"#), Some(Some(1)));
        assert_eq!(read(r#"{"n":1e2}"#), Some(Some(100)));
        assert_eq!(read(r#"{"n":-0}"#), Some(Some(0)));
        assert_eq!(read(r#"{"n":null}"#), Some(None));
        assert_eq!(read("{}"), Some(None));
        for wrong in [
            r#"{"n":1.5}"#,
            r#"{"n":"1"}"#,
            r#"{"n":true}"#,
            r#"{"n":1e300}"#,
            r#"{"n":18446744073709551615}"#,
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
