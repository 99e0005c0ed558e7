//! Stores and short ways to make keys and entries.

use accounting::{AccountingStore, Batch, By, Closed, Entry, NewKey, Opened, Sqlite, TokenCounts};
use auth::{Key, KeyHash, Scope};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config as ProptestConfig, TestCaseError, TestRunner};
use sluicegate_accounting as accounting;

/// Makes tests of functions that take a store: one of a new SQLite file, and one of a new schema in
/// PostgreSQL. A function with `for any` is tested with random values of a strategy as well.
macro_rules! on_each_store {
    ($($name:ident $(for any $strategy:expr)?;)+) => {
        $(
            mod $name {
                #[allow(unused_imports, reason = "for the strategies")]
                use super::*;

                #[test]
                fn in_sqlite() {
                    on_each_store!(@run $name, $crate::support::on_sqlite $(, $strategy)?);
                }

                #[cfg(feature = "postgres")]
                #[test]
                #[ignore = "needs a PostgreSQL: cargo xtask shared"]
                fn in_postgres() {
                    on_each_store!(@run $name, $crate::postgres::on_new_schema $(, $strategy)?);
                }
            }
        )+
    };
    (@run $name:ident, $on_store:path) => {
        $crate::support::run($on_store(super::$name))
    };
    (@run $name:ident, $on_store:path, $strategy:expr) => {
        $crate::support::check_any(&$strategy, |value| {
            $crate::support::run($on_store(async |store| super::$name(store, value.clone()).await))
        })
    };
}
pub(crate) use on_each_store;

/// Runs a test on a store in a new file.
pub(crate) async fn on_sqlite<T>(test: impl AsyncFn(&dyn AccountingStore) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("accounting.db")).unwrap();
    test(&store).await
}

/// Runs a future to its end.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// Runs a test with random values: few, because each makes a store.
pub(crate) fn check_any<S: Strategy>(
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let mut runner = TestRunner::new(ProptestConfig::with_cases(48));
    if let Err(failure) = runner.run(strategy, test) {
        panic!("{failure}");
    }
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

pub(crate) async fn append(store: &dyn AccountingStore, entries: impl Into<Vec<Entry>>) {
    let batch = Batch {
        entries: entries.into(),
        shipped: None,
    };
    store.append(batch).await.unwrap();
}
