//! Sums of usage.

use accounting::{Granularity, TokenCounts, UsageQuery, UsageSum};
use policy::clock;
use schemars::JsonSchema;
use serde::Serialize;

use super::AdminRequest;
use super::failure::Failure;
use super::parameters::{Kind, Parameter};
use super::values::{Amount, Time};

/// Sums of usage, in order of time, key and model.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Usage {
    /// The sums; none where nothing was used.
    usage: Vec<Sum>,
}

/// A sum of usage.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UsageSum")]
pub(crate) struct Sum {
    /// The beginning of the interval, if `per` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Time>,
    /// The name of the key, if `by` has `key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The model, if `by` has `model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Requests of any state.
    requests: u64,
    /// Requests that have not ended.
    open: u64,
    /// Requests whose process ended before them.
    abandoned: u64,
    /// Requests that have ended without a known cost.
    unpriced: u64,
    /// Requests whose cost is not exact, because a price was missing.
    inexact: u64,
    #[serde(flatten)]
    #[schemars(with = "TokenView")]
    tokens: TokenCounts,
    /// Pictures.
    pictures: u64,
    /// The cost of the requests that have ended.
    cost: Amount,
    /// The reservations of open requests.
    open_cost: Amount,
    /// The reservations of abandoned requests, which stand for their unknown cost.
    abandoned_cost: Amount,
}

/// The token counts of requests.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes `TokenCounts`")]
pub(super) struct TokenView {
    /// Tokens of the input outside of caches.
    input: u64,
    /// Tokens read from a cache.
    cache_read: u64,
    /// Tokens written to a cache, for whatever time.
    cache_write: u64,
    /// Those of them that are kept for an hour.
    cache_write_1h: u64,
    /// Tokens of the input that are audio, whether cached or not.
    audio_input: u64,
    /// Tokens of the input that are images, whether cached or not.
    image_input: u64,
    /// Tokens of the output, reasoning included.
    output: u64,
    /// Tokens of reasoning.
    reasoning: u64,
    /// Tokens of the output that are audio.
    audio_output: u64,
    /// Tokens of the output that are images.
    image_output: u64,
}

/// Answers with the sums that the query asks for.
pub(super) async fn sums(admin: &AdminRequest<'_>) -> Result<Usage, Failure> {
    let parameters = &admin.parameters;
    let granularity = match parameters.get("per") {
        Some("minute") => Some(Granularity::Minute),
        Some("hour") => Some(Granularity::Hour),
        Some("day") => Some(Granularity::Day),
        _ => None,
    };
    let (from_ms, to_ms) = parameters.period()?;
    let query = UsageQuery {
        from_ms,
        to_ms,
        key: parameters.text("key"),
        model: parameters.text("model"),
        by_key: parameters.has("by", "key"),
        by_model: parameters.has("by", "model"),
        granularity,
    };
    check_intervals(&query)?;
    let sums = admin.accounting()?.store.usage(query).await?;
    let usage = sums.into_iter().map(Sum::from).collect();
    Ok(Usage { usage })
}

/// Refuses a question for too many intervals.
fn check_intervals(query: &UsageQuery) -> Result<(), Failure> {
    let Some(granularity) = query.granularity else {
        return Ok(());
    };
    let from = query.from_ms.ok_or_else(|| {
        Failure::invalid("from", "is missing, but must be a time if 'per' is given")
    })?;
    let to = query.to_ms.unwrap_or_else(clock::unix_ms);
    let intervals = to.saturating_sub(from) / granularity.millis();
    match intervals {
        ..=MAX_INTERVALS => Ok(()),
        _ => Err(Failure::invalid(
            "per",
            format!(
                "divides the time from 'from' to 'to' into {intervals} intervals, but at most {MAX_INTERVALS} are accepted"
            ),
        )),
    }
}

impl From<UsageSum> for Sum {
    fn from(sum: UsageSum) -> Self {
        let totals = sum.totals;
        Self {
            start: sum.start_ms.map(Time::millis),
            key: sum.key,
            model: sum.model,
            requests: totals.requests,
            open: totals.open,
            abandoned: totals.abandoned,
            unpriced: totals.unpriced,
            inexact: totals.inexact,
            tokens: totals.tokens,
            pictures: totals.pictures,
            cost: Amount::nanos(totals.cost_nanos),
            open_cost: Amount::nanos(totals.open_nanos),
            abandoned_cost: Amount::nanos(totals.abandoned_nanos),
        }
    }
}

/// The query parameters of sums.
pub(super) const OF_USAGE: [Parameter; 6] = [
    FROM,
    TO,
    KEY,
    MODEL,
    Parameter {
        name: "by",
        kind: Kind::Words(&["key", "model"]),
        description: "Returns a sum for each key, each model, or each pair of both.",
    },
    Parameter {
        name: "per",
        kind: Kind::Word(&["minute", "hour", "day"]),
        description: "Returns a sum for each interval of this length; needs `from`. Days begin at midnight UTC.",
    },
];

pub(super) const FROM: Parameter = Parameter {
    name: "from",
    kind: Kind::Time,
    description: "The first moment; sums round it down to a whole interval. Absent: since the beginning.",
};
pub(super) const TO: Parameter = Parameter {
    name: "to",
    kind: Kind::Time,
    description: "The moment after the last one; sums round it up to a whole interval. Absent: until now.",
};
pub(super) const KEY: Parameter = Parameter {
    name: "key",
    kind: Kind::Text,
    description: "Only usage of the key with this name.",
};
pub(super) const MODEL: Parameter = Parameter {
    name: "model",
    kind: Kind::Text,
    description: "Only usage of this model, as clients name it.",
};
/// The largest number of intervals of an answer.
const MAX_INTERVALS: i64 = 10_000;
