//! Prices of tokens as JSON numbers, which are read exactly.

use crate::PicoPrice;
use crate::decimal;

/// The reason why a JSON value is not an accepted price of a token. `Display` repeats the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PerTokenError {
    /// The value is not a number.
    #[error("{0} is not a price: expected a number")]
    Type(String),
    /// The number is negative.
    #[error("{0} is negative: expected 0 or more")]
    Negative(String),
    /// The number is not a multiple of a pico-unit.
    #[error("{0} is too precise: expected a multiple of 1e-12")]
    Precision(String),
    /// The number does not fit.
    #[error("{0} is too large: expected at most 18446744.073709551615")]
    Range(String),
}

/// Parses a price in units per token, such as `1.25e-06`. `null` is no price.
pub(super) fn per_token(json: &str) -> Result<Option<PicoPrice>, PerTokenError> {
    match json.as_bytes() {
        b"null" => Ok(None),
        [b'0'..=b'9', ..] => parse(json).map(|pico| Some(PicoPrice::from_pico(pico))),
        [b'-', ..] => Err(PerTokenError::Negative(json.to_owned())),
        _ => Err(PerTokenError::Type(json.to_owned())),
    }
}

/// Parses a JSON number without a sign into units of 10^-12.
fn parse(json: &str) -> Result<u64, PerTokenError> {
    let (mantissa, exponent) = json.split_once(['e', 'E']).unwrap_or((json, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let digits = all.trim_end_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    let too_large = || PerTokenError::Range(json.to_owned());
    let too_precise = || PerTokenError::Precision(json.to_owned());
    // The power of ten by which `digits` is multiplied.
    let zeros = all.len().saturating_sub(digits.len()) as i64;
    let power = match exponent.parse::<i64>() {
        Ok(exponent) => exponent
            .saturating_add(PLACES + zeros)
            .saturating_sub(fraction.len() as i64),
        Err(_) if exponent.starts_with('-') => return Err(too_precise()),
        Err(_) => return Err(too_large()),
    };
    if power < 0 {
        return rounded(digits, power).ok_or_else(too_precise);
    }
    // No power that fits is as large as this.
    let power = power.min(MAX_DIGITS) as usize;
    let digits = digits.bytes().chain(std::iter::repeat_n(b'0', power));
    decimal::append(0, digits).ok_or_else(too_large)
}

/// Reads `digits` times ten to a negative `power` as the number that a program meant when its
/// output has the last digits of a binary fraction, such as 0.40000000000000003 for 0.4. Such a
/// number has 16 or 17 digits, and the first 15 are exact. Returns `None` for fewer or more digits,
/// or if the rounded number is not whole either.
fn rounded(digits: &str, mut power: i64) -> Option<u64> {
    let significant = digits.trim_start_matches('0');
    let noise = significant.len().checked_sub(EXACT_DIGITS)?;
    if !(1..=2).contains(&noise) {
        return None;
    }
    let (exact, rest) = significant.split_at(EXACT_DIGITS);
    let mut number = exact.parse::<u64>().ok()? + u64::from(rest.as_bytes()[0] >= b'5');
    power += noise as i64;
    while power < 0 && number.is_multiple_of(10) {
        number /= 10;
        power += 1;
    }
    number.checked_mul(10_u64.checked_pow(u32::try_from(power).ok()?)?)
}

const PLACES: i64 = 12;
/// The decimal digits that a binary fraction of 64 bits keeps.
const EXACT_DIGITS: usize = 15;
/// The digits of the largest 64-bit number.
const MAX_DIGITS: i64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn pico(json: &str) -> Result<u64, String> {
        let price = per_token(json).map_err(|error| error.to_string())?;
        Ok(price.unwrap().pico())
    }

    #[test]
    fn numbers_are_read_exactly() {
        for (json, expected) in [
            ("1.25e-06", 1_250_000),
            ("1.25E-6", 1_250_000),
            ("0.00000125", 1_250_000),
            ("0.0000012500000000000000000000000", 1_250_000),
            ("125e-8", 1_250_000),
            ("3e-07", 300_000),
            ("1e-12", 1),
            ("100e-14", 1),
            ("0", 0),
            ("0.0", 0),
            ("0e-400", 0),
            ("0e99999999999999999999", 0),
            ("1", 1_000_000_000_000),
            ("0.000000000001e+12", 1_000_000_000_000),
            ("18446744.073709551615", u64::MAX),
        ] {
            assert_eq!(pico(json), Ok(expected), "{json}");
        }
        assert_eq!(per_token("null"), Ok(None));
    }

    /// The price list has been written by programs that calculated with binary fractions.
    #[test]
    fn the_last_digits_of_binary_fractions_are_rounded() {
        for (json, expected) in [
            ("4.0000000000000003e-07", 400_000),
            ("1.2499999999999999e-06", 1_250_000),
            ("2.9999999999999997e-07", 300_000),
            ("0.00000040000000000000003", 400_000),
            ("9.999999999999999e-07", 1_000_000),
            ("3.0000000000000004e-12", 3),
            ("1234.0000000000002", 1_234_000_000_000_000),
        ] {
            assert_eq!(pico(json), Ok(expected), "{json}");
        }
        // Sixteen digits that are a price are read exactly.
        assert_eq!(pico("1234.567890123456"), Ok(1_234_567_890_123_456));
        for json in [
            // Fifteen and eighteen digits are no such number.
            "4.00000000000003e-07",
            "4.00000000000000003e-07",
            // These are below a pico-unit with 15 digits too.
            "4.0000005000000003e-07",
            "3.0000000000000004e-13",
        ] {
            assert!(pico(json).unwrap_err().contains("too precise"), "{json}");
        }
    }

    #[test]
    fn invalid_prices_are_reported_with_the_accepted_form() {
        for (json, expected) in [
            ("1.5e-12", "is too precise: expected a multiple of 1e-12"),
            ("1e-13", "is too precise: expected a multiple of 1e-12"),
            (
                "1e-9223372036854775808",
                "is too precise: expected a multiple of 1e-12",
            ),
            (
                "1e-99999999999999999999",
                "is too precise: expected a multiple of 1e-12",
            ),
            (
                "18446744.073709551616",
                "is too large: expected at most 18446744.073709551615",
            ),
            (
                "1e8",
                "is too large: expected at most 18446744.073709551615",
            ),
            (
                "1e9223372036854775807",
                "is too large: expected at most 18446744.073709551615",
            ),
            (
                "1e99999999999999999999",
                "is too large: expected at most 18446744.073709551615",
            ),
            ("-1e-06", "is negative: expected 0 or more"),
            ("\"1e-06\"", "is not a price: expected a number"),
            ("true", "is not a price: expected a number"),
            ("[]", "is not a price: expected a number"),
        ] {
            assert_eq!(pico(json), Err(format!("{json} {expected}")));
        }
    }
}
