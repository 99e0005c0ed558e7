//! Sums of usage.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sluicegate_accounting::{
    AccountingStore, Closed, Entry, Granularity, Opened, RowQuery, State, TokenCounts, Totals,
    UsageQuery, UsageSum,
};

use crate::support::{append, closed, on_each_store, opened};

on_each_store! {
    sums_are_by_time_key_and_model;
    sums_are_filtered_by_interval_key_and_model;
    an_abandoned_request_counts_with_its_reservation;
    deleted_rows_remain_in_the_sums_of_hours_and_days;
    deleted_rows_are_summed_by_the_quarter_of_an_hour;
    sums_equal_the_rows for any prop::collection::vec(prop::collection::vec(entry(), 0..8), 1..6);
}

const HOUR: i64 = 3_600_000;
const DAY: i64 = 86_400_000;

fn request(request_id: &str, at_ms: i64, key: &str, model: &str) -> Entry {
    Opened {
        key: key.to_owned(),
        model: model.to_owned(),
        ..opened(request_id, at_ms)
    }
    .into()
}

/// Three requests in the first hour of the second day, one in its second hour and an open one.
async fn fill(store: &dyn AccountingStore) {
    let unpriced = Closed {
        cost_nanos: None,
        ..closed("r3", DAY + 90_000)
    };
    append(
        store,
        [
            request("r1", DAY, "a", "m1"),
            closed("r1", DAY + 500_000).into(),
            request("r2", DAY + 59_999, "a", "m2"),
            closed("r2", DAY + 60_000).into(),
            request("r3", DAY + 60_000, "b", "m1"),
            unpriced.into(),
            request("r4", DAY + HOUR, "a", "m1"),
            closed("r4", DAY + HOUR).into(),
            request("r5", DAY + HOUR + 1, "a", "m1"),
        ],
    )
    .await;
}

/// The sums of a number of requests that `closed` describes.
fn totals(requests: u64) -> Totals {
    Totals {
        requests,
        inexact: requests,
        tokens: TokenCounts {
            input: 100 * requests,
            cache_read: 40 * requests,
            cache_write: 20 * requests,
            cache_write_1h: 5 * requests,
            audio_input: 7 * requests,
            image_input: 8 * requests,
            output: 30 * requests,
            reasoning: 10 * requests,
            audio_output: 6 * requests,
            image_output: 9 * requests,
        },
        pictures: requests,
        cost_nanos: 7_000 * requests.cast_signed(),
        ..Totals::default()
    }
}

fn briefly(sums: &[UsageSum]) -> Vec<(Option<i64>, &str, &str, u64)> {
    sums.iter()
        .map(|sum| {
            (
                sum.start_ms,
                sum.key.as_deref().unwrap_or("*"),
                sum.model.as_deref().unwrap_or("*"),
                sum.totals.requests,
            )
        })
        .collect()
}

async fn sums_are_by_time_key_and_model(store: &dyn AccountingStore) {
    fill(store).await;
    let sums = async |query: UsageQuery| store.usage(query).await.unwrap();
    let all = sums(UsageQuery::default()).await;
    let mut expected = totals(4);
    expected.requests = 5;
    expected.open = 1;
    expected.open_nanos = 9_000;
    expected.unpriced = 1;
    expected.cost_nanos = 21_000;
    assert_eq!(briefly(&all), [(None, "*", "*", 5)]);
    assert_eq!(all[0].totals, expected);

    let by = |granularity, by_key, by_model| UsageQuery {
        granularity,
        by_key,
        by_model,
        ..UsageQuery::default()
    };
    assert_eq!(
        briefly(&sums(by(None, true, true)).await),
        [
            (None, "a", "m1", 3),
            (None, "a", "m2", 1),
            (None, "b", "m1", 1)
        ]
    );
    assert_eq!(
        briefly(&sums(by(Some(Granularity::Minute), true, false)).await),
        [
            (Some(DAY), "a", "*", 2),
            (Some(DAY + 60_000), "b", "*", 1),
            (Some(DAY + HOUR), "a", "*", 2)
        ]
    );
    assert_eq!(
        briefly(&sums(by(Some(Granularity::Hour), false, false)).await),
        [(Some(DAY), "*", "*", 3), (Some(DAY + HOUR), "*", "*", 2)]
    );
    assert_eq!(
        briefly(&sums(by(Some(Granularity::Day), false, true)).await),
        [(Some(DAY), "*", "m1", 4), (Some(DAY), "*", "m2", 1)]
    );
}

async fn sums_are_filtered_by_interval_key_and_model(store: &dyn AccountingStore) {
    fill(store).await;
    let count = async |from_ms, to_ms, key: Option<&str>, model: Option<&str>| {
        let query = UsageQuery {
            from_ms,
            to_ms,
            key: key.map(str::to_owned),
            model: model.map(str::to_owned),
            ..UsageQuery::default()
        };
        let sums = store.usage(query).await.unwrap();
        sums.iter().map(|sum| sum.totals.requests).sum::<u64>()
    };
    assert_eq!(count(None, None, Some("a"), None).await, 4);
    assert_eq!(count(None, None, Some("a"), Some("m1")).await, 3);
    assert_eq!(count(None, None, None, Some("m3")).await, 0);
    // Both ends within an hour, rounded to minutes; then across whole hours.
    assert_eq!(
        count(Some(DAY + 60_001), Some(DAY + 70_000), None, None).await,
        1
    );
    assert_eq!(count(Some(DAY), Some(DAY + 59_000), None, None).await, 2);
    assert_eq!(
        count(Some(DAY + 60_000), Some(DAY + 2 * HOUR), None, None).await,
        3
    );
    assert_eq!(
        count(Some(DAY - HOUR), Some(DAY + HOUR + 1), None, None).await,
        5
    );
    assert_eq!(count(Some(DAY - 1), Some(DAY + HOUR), None, None).await, 3);
    assert_eq!(count(None, Some(DAY + HOUR), None, None).await, 3);
    assert_eq!(count(Some(DAY + HOUR), None, None, None).await, 2);
}

async fn an_abandoned_request_counts_with_its_reservation(store: &dyn AccountingStore) {
    append(store, [opened("r1", DAY).into()]).await;
    assert_eq!(
        store.usage(UsageQuery::default()).await.unwrap()[0]
            .totals
            .open,
        1
    );
    store.abandon("run-1").await.unwrap();
    let expected = Totals {
        requests: 1,
        abandoned: 1,
        abandoned_nanos: 9_000,
        ..Totals::default()
    };
    assert_eq!(
        store.usage(UsageQuery::default()).await.unwrap()[0].totals,
        expected
    );
}

async fn deleted_rows_remain_in_the_sums_of_hours_and_days(store: &dyn AccountingStore) {
    fill(store).await;
    let hours = UsageQuery {
        granularity: Some(Granularity::Hour),
        by_key: true,
        ..UsageQuery::default()
    };
    let before = store.usage(hours.clone()).await.unwrap();
    assert_eq!(store.retain(DAY + HOUR + 59_000).await.unwrap(), 3);
    assert_eq!(store.retain(DAY + HOUR + 59_000).await.unwrap(), 0);
    assert_eq!(store.usage(hours.clone()).await.unwrap(), before);
    assert_eq!(store.request("r1").await.unwrap(), None);

    // The open request of the second hour stays, and ends later.
    assert_eq!(store.retain(DAY + 2 * HOUR).await.unwrap(), 1);
    assert_eq!(store.usage(hours.clone()).await.unwrap(), before);
    let minutes = UsageQuery {
        granularity: Some(Granularity::Minute),
        ..UsageQuery::default()
    };
    let left = store.usage(minutes.clone()).await.unwrap();
    assert_eq!(briefly(&left), [(Some(DAY + HOUR), "*", "*", 1)]);
    append(store, [closed("r5", 2 * DAY).into()]).await;
    let last = store.usage(hours.clone()).await.unwrap().pop().unwrap();
    assert_eq!((last.key.as_deref(), last.totals), (Some("a"), totals(2)));
    assert_eq!(store.retain(2 * DAY).await.unwrap(), 1);
    let after = store.usage(hours).await.unwrap();
    assert_eq!(after.last(), Some(&last));
    assert_eq!(store.rows(RowQuery::default()).await.unwrap(), []);
    assert_eq!(
        store.usage(UsageQuery::default()).await.unwrap()[0]
            .totals
            .requests,
        5
    );
    assert_eq!(store.usage(minutes).await.unwrap(), []);
}

/// Midnight in India is half past six in the evening of UTC, and in Nepal a quarter past.
async fn deleted_rows_are_summed_by_the_quarter_of_an_hour(store: &dyn AccountingStore) {
    const QUARTER: i64 = HOUR / 4;
    // The first and the last moment of each quarter of an hour.
    let moments = (0..8_i64).flat_map(|n| [DAY + n * QUARTER, DAY + (n + 1) * QUARTER - 1]);
    for (n, at_ms) in moments.enumerate() {
        let id = format!("r{n}");
        let entries = [request(&id, at_ms, "a", "m"), closed(&id, at_ms).into()];
        append(store, entries).await;
    }
    assert_eq!(store.retain(DAY + 2 * HOUR).await.unwrap(), 16);
    for quarter in 0..8_u64 {
        let query = UsageQuery {
            from_ms: Some(DAY + QUARTER * quarter.cast_signed()),
            ..UsageQuery::default()
        };
        let sums = store.usage(query).await.unwrap();
        assert_eq!(sums[0].totals, totals(16 - 2 * quarter), "{quarter}");
        let query = UsageQuery {
            to_ms: Some(DAY + QUARTER * quarter.cast_signed()),
            ..UsageQuery::default()
        };
        let sums = store.usage(query).await.unwrap();
        let requests = sums.first().map_or(0, |sum| sum.totals.requests);
        assert_eq!(requests, 2 * quarter);
    }
}

/// An entry of one of a few requests, within three hours around midnight.
fn entry() -> impl Strategy<Value = Entry> {
    let opened = (0..12_u8, 0..180_i64, 0..2_u8).prop_map(|(id, minute, key)| {
        let at_ms = DAY - HOUR + minute * 60_000;
        request(&format!("r{id}"), at_ms, &format!("k{key}"), "m")
    });
    let closed = (0..12_u8, 0..180_i64, prop::option::of(0..100_i64)).prop_map(
        |(id, minute, cost_nanos)| {
            Closed {
                cost_nanos,
                ..closed(&format!("r{id}"), DAY - HOUR + minute * 60_000)
            }
            .into()
        },
    );
    prop_oneof![opened, closed]
}

/// After any appends, the sums of each granularity equal the sums over the rows.
async fn sums_equal_the_rows(
    store: &dyn AccountingStore,
    batches: Vec<Vec<Entry>>,
) -> Result<(), TestCaseError> {
    for batch in &batches {
        append(store, batch.clone()).await;
        for granularity in [Granularity::Minute, Granularity::Hour, Granularity::Day] {
            let query = UsageQuery {
                granularity: Some(granularity),
                by_key: true,
                ..UsageQuery::default()
            };
            let sums = store.usage(query).await.unwrap();
            let found: BTreeMap<_, _> = sums
                .into_iter()
                .map(|sum| ((sum.start_ms.unwrap(), sum.key.unwrap()), sum.totals))
                .collect();
            prop_assert_eq!(found, sums_of_rows(store, granularity.millis()).await);
        }
    }
    Ok(())
}

async fn sums_of_rows(store: &dyn AccountingStore, grain: i64) -> BTreeMap<(i64, String), Totals> {
    let mut sums: BTreeMap<_, Totals> = BTreeMap::new();
    for row in store.rows(RowQuery::default()).await.unwrap() {
        let sum = sums
            .entry((row.at_ms / grain * grain, row.key))
            .or_default();
        sum.requests += 1;
        if row.state == State::Open {
            sum.open += 1;
            sum.open_nanos += row.reserved_nanos;
        }
        sum.unpriced += u64::from(row.state == State::Closed && row.cost_nanos.is_none());
        sum.inexact += u64::from(row.missing_prices.is_some());
        let (tokens, more) = (&mut sum.tokens, row.tokens);
        tokens.input += more.input;
        tokens.cache_read += more.cache_read;
        tokens.cache_write += more.cache_write;
        tokens.cache_write_1h += more.cache_write_1h;
        tokens.audio_input += more.audio_input;
        tokens.image_input += more.image_input;
        tokens.output += more.output;
        tokens.reasoning += more.reasoning;
        tokens.audio_output += more.audio_output;
        tokens.image_output += more.image_output;
        sum.pictures += row.pictures;
        sum.cost_nanos += row.cost_nanos.unwrap_or_default();
    }
    sums
}
