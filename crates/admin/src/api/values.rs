//! Values in the documents of the admin API: times, and amounts of money.

use std::borrow::Cow;

use jiff::Timestamp;
use quota::Money;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

/// A time, written as of RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Time(Timestamp);

/// An amount of money, written as a decimal string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Amount(Money);

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

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

impl JsonSchema for Amount {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^-?[0-9]+\\.[0-9]{2,9}$" })
    }
}
