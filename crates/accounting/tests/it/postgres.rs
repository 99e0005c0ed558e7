//! The store in PostgreSQL. The tests need a database in which they may create schemas; without the
//! variable `SLUICEGATE_TEST_POSTGRES` they do nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sluicegate_accounting::{AccountingStore, Postgres, StoreError};
use tokio_postgres::NoTls;

use crate::support::{append, by, new_key, opened};

/// Returns the URL of the database, if there is one.
fn url() -> Option<String> {
    std::env::var("SLUICEGATE_TEST_POSTGRES").ok()
}

/// Returns the name of a schema that no other test uses.
fn new_schema() -> String {
    static SCHEMAS: AtomicU64 = AtomicU64::new(0);
    let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
    format!("sluicegate_test_{}_{number}", std::process::id())
}

/// Runs SQL on a connection of its own.
async fn execute(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
}

/// Runs a test on a store in a new schema, which is deleted if the test succeeds.
pub(crate) async fn on_new_schema(test: impl AsyncFn(&dyn AccountingStore)) {
    let Some(url) = url() else {
        return;
    };
    let schema = new_schema();
    let store = Postgres::connect(&url, &schema).await.unwrap();
    test(&store).await;
    drop(store);
    execute(&url, &format!("DROP SCHEMA {schema} CASCADE")).await;
}

#[tokio::test]
async fn gateways_that_start_together_create_one_schema_and_see_each_others_writes() {
    let Some(url) = url() else {
        return;
    };
    let schema = new_schema();
    let named = format!("{url}?application_name={schema}");
    let connect = || Postgres::connect(&named, &schema);
    let (first, second) = tokio::join!(connect(), connect());
    let (first, second) = (Arc::new(first.unwrap()), second.unwrap());
    first.create_key(new_key("a", 1), by(1)).await.unwrap();
    assert_eq!(second.epoch().await.unwrap(), 1);
    append(&second, [opened("r1", 1_000).into()]).await;
    assert!(first.request("r1").await.unwrap().is_some());

    // A connection that the server has ended is opened again.
    execute(
        &url,
        &format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = '{schema}'"
        ),
    )
    .await;
    while second.epoch().await.is_err() {}
    execute(
        &url,
        &format!("UPDATE {schema}.meta SET value = 7 WHERE name = 'compatible_since'"),
    )
    .await;
    match connect().await.err().unwrap() {
        StoreError::Refused { reason, .. } => assert_eq!(
            reason,
            "the schema has version 2 and needs a gateway that knows version 7 or newer, but this \
             one knows 2: use a newer gateway"
        ),
        other => panic!("{other}"),
    }
    execute(&url, &format!("DROP SCHEMA {schema} CASCADE")).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_and_a_schema_that_is_none_are_reported() {
    let gone = Postgres::connect("postgres://secret:word@127.0.0.1:1/db", "accounting").await;
    assert_eq!(
        gone.err().unwrap().to_string(),
        "the accounting store postgres://127.0.0.1/db is not available: error connecting to \
         server: Connection refused (os error 111)"
    );
    let error = Postgres::connect("postgres://127.0.0.1/db", "a; b")
        .await
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "the accounting store postgres refuses the operation: the schema is named \"a; b\": \
         expected 1 to 63 of 'a' to 'z', '0' to '9' and '_'"
    );
}
