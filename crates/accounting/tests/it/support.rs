//! Stores and short ways to make keys and entries.

use std::sync::Mutex;

use accounting::{AccountingStore, Batch, By, Closed, Entry, NewKey, Opened, Sqlite};
use auth::{Key, KeyHash, Scope};
use proptest::test_runner::TestCaseError;
use sluicegate_accounting as accounting;

/// Runs a test on a new store of each kind: a SQLite file, and a schema of the PostgreSQL database
/// whose URL `SLUICEGATE_TEST_POSTGRES` names.
pub(crate) async fn on_each(test: impl AsyncFn(&dyn AccountingStore)) {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("accounting.db")).unwrap();
    test(&store).await;
    #[cfg(feature = "postgres")]
    crate::postgres::on_new_schema(test).await;
}

/// Returns the result of a test with random input on each kind of store.
pub(crate) fn check_on_each(
    test: impl AsyncFn(&dyn AccountingStore) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let failures = Mutex::new(Vec::new());
    runtime.block_on(on_each(async |store| {
        let failure = test(store).await.err();
        failures.lock().unwrap().extend(failure);
    }));
    failures.into_inner().unwrap().pop().map_or(Ok(()), Err)
}

/// A hash that differs for each seed.
pub(crate) fn hash(seed: u8) -> KeyHash {
    KeyHash::of(&Key::from_bits([seed; 32]))
}

pub(crate) fn by(at: i64) -> By {
    By {
        actor: "ada".to_owned(),
        at,
    }
}

/// A key for texts without limits.
pub(crate) fn new_key(name: &str, seed: u8) -> NewKey {
    NewKey {
        name: name.to_owned(),
        hash: hash(seed),
        scopes: Scope::Text.into(),
        models: None,
        expires: None,
        limits: None,
    }
}

pub(crate) fn opened(request_id: &str, at_ms: i64) -> Opened {
    Opened {
        request_id: request_id.to_owned(),
        at_ms,
        replica: "gateway-1".to_owned(),
        run: "run-1".to_owned(),
        key: "team-a".to_owned(),
        route: "/v1/responses".to_owned(),
        model: "model-5.5".to_owned(),
        reserved_tokens: 500,
        reserved_nanos: 9_000,
    }
}

pub(crate) fn closed(request_id: &str, at_ms: i64) -> Closed {
    Closed {
        request_id: request_id.to_owned(),
        at_ms,
        outcome: "completed".to_owned(),
        status: 200,
        target: Some("upstream-1".to_owned()),
        input: 100,
        cache_read: 40,
        cache_write: 20,
        output: 30,
        reasoning: 10,
        pictures: 1,
        cost_nanos: Some(7_000),
    }
}

pub(crate) async fn append(store: &dyn AccountingStore, entries: impl Into<Vec<Entry>>) {
    let batch = Batch {
        entries: entries.into(),
        shipped: None,
    };
    store.append(batch).await.unwrap();
}
