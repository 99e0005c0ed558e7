//! Values in the documents of the admin API: times, and amounts of money.

use jiff::Timestamp;
use quota::Money;
use schemars::JsonSchema;
use serde::Serialize;

// Documentation of these types would be a part of the documents of their fields.

// A time, written as of RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, extend("format" = "date-time"))]
pub(crate) struct Time(#[schemars(with = "String")] Timestamp);

// An amount of money, written as a decimal string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, extend("pattern" = "^-?[0-9]+\\.[0-9]{2,9}$"))]
pub(crate) struct Amount(#[schemars(with = "String")] Money);

impl Time {
    /// Creates a time from Unix seconds.
    pub(crate) fn seconds(at: i64) -> Self {
        Self(Timestamp::from_second(at).unwrap_or(Timestamp::MAX))
    }

    /// Creates a time from Unix milliseconds.
    pub(crate) fn millis(at: i64) -> Self {
        Self(Timestamp::from_millisecond(at).unwrap_or(Timestamp::MAX))
    }
}

impl Amount {
    pub(crate) fn nanos(nanos: i64) -> Self {
        Self(Money::from_nanos(nanos))
    }
}

impl From<Money> for Amount {
    fn from(money: Money) -> Self {
        Self(money)
    }
}
