//! The file of the SQLite store: its schema, its versions and its mode.

use std::path::Path;

use auth::KeyHash;
use rusqlite::Connection;
use sluicegate_accounting::{
    AccountingStore as _, Batch, Granularity, Sqlite, StoreError, UsageQuery,
};

use crate::support::{append, by, closed, new_key, opened};

/// Returns the reason for which a store is refused after `change`, or "opened".
fn reopened_after(change: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("accounting.db");
    drop(Sqlite::open(&path).unwrap());
    reason_to_refuse(&path, change)
}

/// Returns the reason for which the file is refused after `change`, or "opened".
fn reason_to_refuse(path: &Path, change: &str) -> String {
    Connection::open(path)
        .unwrap()
        .execute_batch(change)
        .unwrap();
    match Sqlite::open(path) {
        Ok(_) => "opened".to_owned(),
        Err(StoreError::Refused { reason, .. }) => reason,
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_file_of_version_1_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("accounting.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("fixtures/version-1.sql"))
        .unwrap();
    drop(old);
    let store = Sqlite::open(&path).unwrap();
    let live = store.keys().await.unwrap();
    assert_eq!((live.epoch, live.keys.len()), (3, 1));
    let key = &live.keys[0];
    assert_eq!(
        (key.id.as_str(), key.name.as_str()),
        ("key_0102030405060708090a0b0c", "team-a")
    );
    let expected: KeyHash =
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            .parse()
            .unwrap();
    assert_eq!(key.hashes[0].hash, expected);
    append(
        &store,
        [opened("r1", 60_000).into(), closed("r1", 61_000).into()],
    )
    .await;
    let query = UsageQuery {
        granularity: Some(Granularity::Day),
        ..UsageQuery::default()
    };
    assert_eq!(store.usage(query).await.unwrap()[0].totals.requests, 1);
}

#[tokio::test]
async fn keys_and_entries_survive_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("accounting.db");
    let store = Sqlite::open(&path).unwrap();
    let key = store.create_key(new_key("a", 1), by(1)).await.unwrap();
    append(&store, [opened("r1", 60_000).into()]).await;
    drop(store);
    let store = Sqlite::open(&path).unwrap();
    assert_eq!(store.keys().await.unwrap().keys, [key]);
    assert!(store.request("r1").await.unwrap().is_some());
}

#[test]
fn a_newer_schema_is_used_if_it_says_that_it_may_be() {
    assert_eq!(
        reopened_after("ALTER TABLE keys ADD COLUMN new TEXT; PRAGMA user_version = 9;"),
        "opened"
    );
    assert_eq!(
        reopened_after(
            "PRAGMA user_version = 9;
             UPDATE meta SET value = 7 WHERE name = 'compatible_since';"
        ),
        "the schema has version 9 and needs a gateway that knows version 7 or newer, but this one \
         knows 4: use a newer gateway"
    );
}

#[test]
fn a_file_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("accounting.db");
    assert_eq!(
        reason_to_refuse(&path, "CREATE TABLE bookmarks (url TEXT);"),
        "the file has 1 tables and indexes of another program (application id 0): expected a new \
         file or an accounting store"
    );
}

#[test]
fn a_folder_that_is_not_there_is_reported_with_the_path() {
    let error = Sqlite::open("/nonexistent/accounting.db").err().unwrap();
    assert_eq!(
        error.to_string(),
        "the accounting store /nonexistent/accounting.db is not available: No such file or \
         directory (os error 2)"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_file_and_its_companions() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("accounting.db")).unwrap();
    store.create_key(new_key("a", 1), by(1)).await.unwrap();
    let mut modes: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap())
        .map(|file| {
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            (file.file_name().into_string().unwrap(), mode)
        })
        .collect();
    modes.sort();
    assert_eq!(
        modes,
        [
            ("accounting.db".to_owned(), 0o600),
            ("accounting.db-shm".to_owned(), 0o600),
            ("accounting.db-wal".to_owned(), 0o600)
        ]
    );
}

/// Data that the store refuses is distinguished from a store that is down.
#[tokio::test]
async fn an_error_says_whether_the_data_caused_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("accounting.db");
    let store = Sqlite::open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    let append = async || {
        let batch = Batch {
            entries: vec![opened("r1", 1_000).into()],
            shipped: None,
        };
        store.append(batch).await
    };
    other
        .execute_batch(
            "CREATE TRIGGER picky BEFORE INSERT ON usage
             BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        .unwrap();
    let expected = Err(StoreError::Unfit {
        store: path.display().to_string(),
        reason: "not this one".to_owned(),
    });
    assert_eq!(append().await, expected);
    other.execute_batch("DROP TABLE usage").unwrap();
    let error = append().await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
}
