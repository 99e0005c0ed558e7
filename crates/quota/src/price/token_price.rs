//! The price of one token.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::decimal::{self, Decimal, DecimalError};

/// The price of a token in pico-units: 10^-12 of the currency's unit.
///
/// It is read and written as a decimal string in units per million tokens, with at most 6 digits
/// after the point. `1.25` is 1,250,000 pico-units a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String", inline, example = &"1.25")]
pub struct PicoPrice(u64);

impl PicoPrice {
    /// The price of a token that costs nothing.
    pub const ZERO: Self = Self(0);

    /// Returns the price of this many pico-units a token.
    #[must_use]
    pub const fn from_pico(pico: u64) -> Self {
        Self(pico)
    }

    /// Returns the price in pico-units a token.
    #[must_use]
    pub const fn pico(self) -> u64 {
        self.0
    }

    /// Returns twice the price.
    pub(super) const fn doubled(self) -> Self {
        Self(self.0.saturating_mul(2))
    }

    /// Returns the price of `count` tokens in pico-units.
    pub(super) fn times(self, count: u64) -> u128 {
        u128::from(self.0) * u128::from(count)
    }
}

impl FromStr for PicoPrice {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        decimal::parse(text, PLACES, u64::MAX).map(Self)
    }
}

impl fmt::Display for PicoPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, places) = (self.0, PLACES);
        Decimal { units, places }.fmt(f)
    }
}

impl Serialize for PicoPrice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PicoPrice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a price per million tokens as a string, such as \"1.25\"";
        decimal::from_text(deserializer, expected)
    }
}

/// Digits after the point: a pico-unit per token is a millionth of a unit per million tokens.
const PLACES: u8 = 6;
