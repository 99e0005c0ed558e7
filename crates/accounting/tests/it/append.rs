//! Entries of usage: one row for each request, in whatever order they arrive.

use proptest::prelude::*;
use sluicegate_accounting::{
    AccountingStore, Batch, Closed, Entry, Opened, RowQuery, Shipped, State, TokenCounts, UsageRow,
};

use crate::support::{append, closed, on_each_store, opened};

on_each_store! {
    a_request_is_open_until_it_is_closed;
    an_end_that_comes_first_makes_the_same_row;
    the_first_of_several_ends_counts;
    open_requests_of_a_dead_run_are_abandoned_and_stay_so;
    the_shipped_position_belongs_to_the_entries_and_never_falls;
    oversized_values_are_clamped_when_stored;
    rows_come_in_pages_in_the_order_of_time;
    every_order_makes_the_same_rows for any shuffled();
}

/// The row of a request that `opened` and `closed` describe.
fn whole_row() -> UsageRow {
    UsageRow {
        request_id: "r1".to_owned(),
        state: State::Closed,
        at_ms: 1_000,
        closed_ms: Some(2_000),
        replica: "gateway-1".to_owned(),
        run: "run-1".to_owned(),
        key: "team-a".to_owned(),
        route: "/v1/responses".to_owned(),
        model: "model-5.5".to_owned(),
        reserved_tokens: 500,
        reserved_nanos: 9_000,
        outcome: "completed".to_owned(),
        status: 200,
        target: Some("upstream-1".to_owned()),
        tokens: TokenCounts {
            input: 100,
            cache_read: 40,
            cache_write: 20,
            cache_write_1h: 5,
            audio_input: 7,
            image_input: 8,
            output: 30,
            reasoning: 10,
            audio_output: 6,
            image_output: 9,
        },
        pictures: 1,
        cost_nanos: Some(7_000),
        service_tier: Some("priority".to_owned()),
        missing_prices: Some("audio_input".to_owned()),
    }
}

async fn row(store: &dyn AccountingStore, request_id: &str) -> UsageRow {
    store.request(request_id).await.unwrap().unwrap()
}

async fn a_request_is_open_until_it_is_closed(store: &dyn AccountingStore) {
    append(store, [opened("r1", 1_000).into()]).await;
    let open = row(store, "r1").await;
    assert_eq!(
        (open.state, open.closed_ms, open.cost_nanos),
        (State::Open, None, None)
    );
    append(store, [closed("r1", 2_000).into()]).await;
    assert_eq!(row(store, "r1").await, whole_row());
    assert_eq!(store.request("r2").await.unwrap(), None);
}

async fn an_end_that_comes_first_makes_the_same_row(store: &dyn AccountingStore) {
    append(store, [closed("r1", 2_000).into()]).await;
    let early = row(store, "r1").await;
    assert_eq!(
        (early.state, early.at_ms, early.key.as_str()),
        (State::Closed, 2_000, "")
    );
    append(store, [opened("r1", 1_000).into()]).await;
    assert_eq!(row(store, "r1").await, whole_row());
}

async fn the_first_of_several_ends_counts(store: &dyn AccountingStore) {
    let other = Closed {
        outcome: "failed".to_owned(),
        ..closed("r1", 3_000)
    };
    let entries = [
        opened("r1", 1_000).into(),
        closed("r1", 2_000).into(),
        other.into(),
    ];
    append(store, entries).await;
    assert_eq!(row(store, "r1").await, whole_row());
}

async fn open_requests_of_a_dead_run_are_abandoned_and_stay_so(store: &dyn AccountingStore) {
    let of_other_run = Opened {
        run: "run-2".to_owned(),
        ..opened("r3", 1_000)
    };
    let entries = [
        opened("r1", 1_000).into(),
        opened("r2", 1_000).into(),
        of_other_run.into(),
        closed("r1", 2_000).into(),
    ];
    append(store, entries).await;
    assert_eq!(store.abandon("run-1").await.unwrap(), 1);
    assert_eq!(store.abandon("run-1").await.unwrap(), 0);
    append(
        store,
        [opened("r2", 1_000).into(), closed("r2", 2_000).into()],
    )
    .await;
    assert_eq!(row(store, "r1").await, whole_row());
    let abandoned = row(store, "r2").await;
    assert_eq!(
        (
            abandoned.state,
            abandoned.closed_ms,
            abandoned.reserved_nanos
        ),
        (State::Abandoned, None, 9_000)
    );
    assert_eq!(row(store, "r3").await.state, State::Open);
}

async fn the_shipped_position_belongs_to_the_entries_and_never_falls(store: &dyn AccountingStore) {
    assert_eq!(store.shipped("run-1").await.unwrap(), 0);
    let batch = |request_id, offset| Batch {
        entries: vec![opened(request_id, 1_000).into()],
        shipped: Some(Shipped {
            run: "run-1".to_owned(),
            offset,
        }),
    };
    store.append(batch("r1", 700)).await.unwrap();
    store.append(batch("r2", 300)).await.unwrap();
    assert_eq!(store.shipped("run-1").await.unwrap(), 700);
    assert_eq!(store.shipped("run-2").await.unwrap(), 0);
    store.sync().await.unwrap();
    store.abandon("run-1").await.unwrap();
    assert_eq!(store.shipped("run-1").await.unwrap(), 0);
}

async fn oversized_values_are_clamped_when_stored(store: &dyn AccountingStore) {
    let huge = Closed {
        tokens: TokenCounts {
            input: u64::MAX,
            ..TokenCounts::default()
        },
        cost_nanos: Some(i64::MAX),
        ..closed("r1", 2_000)
    };
    append(store, [opened("r1", 1_000).into(), huge.into()]).await;
    let row = row(store, "r1").await;
    assert_eq!(
        (row.tokens.input, row.cost_nanos),
        (1_099_511_627_776, Some(1_000_000_000_000_000))
    );
}

async fn rows_come_in_pages_in_the_order_of_time(store: &dyn AccountingStore) {
    let entries: Vec<Entry> = [("r3", 10), ("r1", 20), ("r2", 20), ("r4", 30)]
        .map(|(request_id, at_ms)| opened(request_id, at_ms).into())
        .into();
    append(store, entries).await;
    let page = async |query: RowQuery| {
        let rows = store.rows(query).await.unwrap();
        rows.into_iter()
            .map(|row| row.request_id)
            .collect::<Vec<_>>()
    };
    let all = RowQuery::default();
    assert_eq!(page(all.clone()).await, ["r3", "r1", "r2", "r4"]);
    let first = RowQuery {
        limit: 2,
        ..all.clone()
    };
    assert_eq!(page(first.clone()).await, ["r3", "r1"]);
    let second = RowQuery {
        after: Some((20, "r1".to_owned())),
        ..first
    };
    assert_eq!(page(second).await, ["r2", "r4"]);
    let between = RowQuery {
        from_ms: Some(20),
        to_ms: Some(30),
        ..all.clone()
    };
    assert_eq!(page(between).await, ["r1", "r2"]);
    let of_another = RowQuery {
        key: Some("team-b".to_owned()),
        ..all
    };
    assert_eq!(page(of_another).await, [""; 0]);
}

/// The entries of three requests: r1 ends, r2 does not, and of r3 only the end is known.
fn shuffled() -> impl Strategy<Value = Vec<Vec<Entry>>> {
    let entries: Vec<Entry> = vec![
        opened("r1", 1_000).into(),
        closed("r1", 2_000).into(),
        opened("r2", 1_000).into(),
        closed("r3", 2_000).into(),
    ];
    let twice: Vec<Entry> = entries.iter().chain(&entries).cloned().collect();
    let cuts = prop::collection::vec(1..4_usize, 8);
    (Just(twice).prop_shuffle(), cuts).prop_map(|(entries, cuts)| {
        let mut rest = entries.as_slice();
        cuts.into_iter()
            .map(|cut| {
                let (batch, left) = rest.split_at(cut.min(rest.len()));
                rest = left;
                batch.to_vec()
            })
            .collect()
    })
}

/// Whatever the order, the repetitions and the batches: one row for each request, in its right
/// state.
async fn every_order_makes_the_same_rows(
    store: &dyn AccountingStore,
    batches: Vec<Vec<Entry>>,
) -> Result<(), TestCaseError> {
    for batch in &batches {
        append(store, batch.clone()).await;
    }
    let rows = store.rows(RowQuery::default()).await.unwrap();
    let ids: Vec<_> = rows
        .iter()
        .map(|row| (row.request_id.as_str(), row.state))
        .collect();
    let expected = [
        ("r1", State::Closed),
        ("r2", State::Open),
        ("r3", State::Closed),
    ];
    prop_assert_eq!(ids, expected);
    prop_assert_eq!(&rows[0], &whole_row());
    Ok(())
}
