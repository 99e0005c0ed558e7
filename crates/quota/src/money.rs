//! Amounts of money, exact to a billionth of the currency's unit, and currencies.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::decimal::{self, Decimal, DecimalError};

/// An exact amount of money in nano-units: 10^-9 of the unit of its currency.
///
/// It is read from a decimal string with at most 9 digits after the point, such as `50.00`, and
/// written as one. Arithmetic saturates at the largest amount, about 9.2 billion units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String", inline)]
pub struct Money(i64);

/// An ISO 4217 currency code, such as `USD`: three capital ASCII letters. The gateway does not
/// convert currencies; the code is for people.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String", inline)]
pub struct Currency([u8; 3]);

/// The error for a text that is not a [`Currency`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a currency: expected three capital letters, such as \"USD\"")]
pub struct CurrencyError(pub String);

impl Money {
    /// No money.
    pub const ZERO: Self = Self(0);
    /// The largest amount, at which arithmetic saturates.
    pub const MAX: Self = Self(i64::MAX);
    /// The largest budget, 9,007,199 units: a lease store computes with doubles, which are exact
    /// up to 2^53 nano-units.
    pub const MAX_BUDGET: Self = Self(9_007_199 * NANOS_PER_UNIT);

    /// Returns the amount of this many nano-units.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the amount in nano-units.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Returns the sum, or the nearest amount that can be represented.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the difference, or the nearest amount that can be represented.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl FromStr for Money {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let (digits, is_negative) = match text.strip_prefix('-') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let max = i64::MAX.unsigned_abs() + u64::from(is_negative);
        let nanos = decimal::parse(digits, PLACES, max)?;
        // Neither saturates: `nanos` is at most `max`.
        Ok(Self(if is_negative {
            0_i64.saturating_sub_unsigned(nanos)
        } else {
            0_i64.saturating_add_unsigned(nanos)
        }))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let units = self.0.unsigned_abs();
        let places = PLACES;
        write!(f, "{sign}{}", Decimal { units, places })
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decimal::from_text(deserializer, "an amount as a string, such as \"50.00\"")
    }
}

impl Currency {
    /// Returns the code.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Never fails: the bytes are ASCII letters.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(text: &str) -> Result<Self, CurrencyError> {
        let code: Option<[u8; 3]> = text.as_bytes().try_into().ok();
        code.filter(|code| code.iter().all(u8::is_ascii_uppercase))
            .map(Self)
            .ok_or_else(|| CurrencyError(text.to_owned()))
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Currency({self})")
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decimal::from_text(deserializer, "a currency, such as \"USD\"")
    }
}

/// Digits after the point.
const PLACES: u8 = 9;
const NANOS_PER_UNIT: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Money {
        text.parse().unwrap()
    }

    #[test]
    fn an_amount_is_read_and_written_exactly() {
        for (text, nanos, shown) in [
            ("0", 0, "0.00"),
            ("-0", 0, "0.00"),
            ("50.00", 50_000_000_000, "50.00"),
            ("50", 50_000_000_000, "50.00"),
            ("0.1", 100_000_000, "0.10"),
            ("0.000125", 125_000, "0.000125"),
            ("0.000000001", 1, "0.000000001"),
            ("-1.5", -1_500_000_000, "-1.50"),
            ("9223372036.854775807", i64::MAX, "9223372036.854775807"),
            ("-9223372036.854775808", i64::MIN, "-9223372036.854775808"),
        ] {
            assert_eq!(money(text).nanos(), nanos, "{text}");
            assert_eq!(Money::from_nanos(nanos).to_string(), shown);
        }
        assert_eq!(Money::MAX_BUDGET.to_string(), "9007199.00");
    }

    #[test]
    fn invalid_amount_error_names_the_accepted_form() {
        let message = |text: &str| text.parse::<Money>().unwrap_err().to_string();
        assert_eq!(
            message("0.0000000001"),
            "\"0.0000000001\" is too precise: expected at most 9 digits after the point"
        );
        assert_eq!(
            message("9223372036.854775808"),
            "\"9223372036.854775808\" is out of range: expected at most 9223372036.854775807"
        );
        assert_eq!(
            message("50 USD"),
            "\"50 USD\" is not a decimal number: expected digits and a point, such as \"1.25\""
        );
    }

    #[test]
    fn sums_saturate() {
        let (one, most, least) = (Money(1), Money(i64::MAX), Money(i64::MIN));
        assert_eq!(most.saturating_add(one), most);
        assert_eq!(least.saturating_sub(one), least);
        assert_eq!(money("1.00").saturating_sub(money("1.50")), money("-0.50"));
    }

    #[test]
    fn amounts_and_currencies_are_strings_in_documents() {
        let read = |json: &str| serde_json::from_str::<Money>(json);
        assert_eq!(read("\"1.25\"").unwrap(), Money(1_250_000_000));
        assert_eq!(
            serde_json::to_string(&Money(1_250_000_000)).unwrap(),
            "\"1.25\""
        );
        assert_eq!(
            read("1.25").unwrap_err().to_string(),
            "invalid type: floating point `1.25`, expected an amount as a string, such as \
             \"50.00\" at line 1 column 4"
        );
        let usd: Currency = serde_json::from_str("\"USD\"").unwrap();
        assert_eq!(serde_json::to_string(&usd).unwrap(), "\"USD\"");
    }

    #[test]
    fn a_currency_is_three_capital_letters() {
        assert_eq!("EUR".parse::<Currency>().unwrap().as_str(), "EUR");
        for text in ["", "eur", "EURO", "E1R", "€"] {
            assert_eq!(
                text.parse::<Currency>(),
                Err(CurrencyError(text.to_owned()))
            );
        }
        assert_eq!(
            CurrencyError("eur".to_owned()).to_string(),
            "\"eur\" is not a currency: expected three capital letters, such as \"USD\""
        );
    }
}
