//! The store in PostgreSQL. The tests need a database in which they may create schemas, whose URL is in
//! `SLUICEGATE_TEST_POSTGRES`: `cargo xtask shared` brings it.

use std::sync::atomic::{AtomicU64, Ordering};

use sluicegate_accounting::{
    AccountingStore, Batch, Opened, Postgres, PostgresAddress, StoreError, UsageQuery,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_postgres::NoTls;

use crate::support::{append, by, closed, new_key, opened};

/// Returns the URL of the database.
fn url() -> String {
    let url = std::env::var("SLUICEGATE_TEST_POSTGRES");
    url.expect("SLUICEGATE_TEST_POSTGRES is the URL of a database")
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
pub(crate) async fn on_new_schema<T>(test: impl AsyncFn(&dyn AccountingStore) -> T) -> T {
    let url = url();
    let schema = new_schema();
    let store = Postgres::connect(&address(&url), &schema).await.unwrap();
    let result = test(&store).await;
    drop(store);
    execute(&url, &format!("DROP SCHEMA {schema} CASCADE")).await;
    result
}

fn address(url: &str) -> PostgresAddress {
    url.parse().unwrap()
}

#[tokio::test]
#[ignore = "needs a PostgreSQL: cargo xtask shared"]
async fn concurrent_starts_create_one_schema_and_share_writes() {
    let url = url();
    let schema = new_schema();
    let named = address(&format!("{url}?application_name={schema}"));
    let connect = || Postgres::connect(&named, &schema);
    let existing = Postgres::connect_to_existing(&named, &schema).await;
    assert!(existing.unwrap().is_none());
    let (first, second) = tokio::join!(connect(), connect());
    let (first, second) = (first.unwrap(), second.unwrap());
    let existing = Postgres::connect_to_existing(&named, &schema).await;
    assert_eq!(existing.unwrap().unwrap().epoch().await.unwrap(), 0);
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
            "the schema has version 4 and needs a gateway that knows version 7 or newer, but this \
             one knows 4: use a newer gateway"
        ),
        other => panic!("{other}"),
    }
    execute(&url, &format!("DROP SCHEMA {schema} CASCADE")).await;
}

#[tokio::test]
async fn unreachable_server_and_invalid_schema_are_errors() {
    let gone = address("postgres://secret:word@127.0.0.1:1/db");
    let gone = Postgres::connect(&gone, "accounting").await;
    assert_eq!(
        gone.err().unwrap().to_string(),
        "the accounting store postgres://127.0.0.1:1/db is not available: error connecting to \
         server: Connection refused (os error 111)"
    );
    let unnamed = Postgres::connect(&address("postgres://127.0.0.1/db"), "a; b").await;
    let error = unnamed.err().unwrap();
    assert_eq!(
        error.to_string(),
        "the accounting store postgres://127.0.0.1/db refuses the operation: the schema is named \"a; b\": \
         expected 1 to 63 of 'a' to 'z', '0' to '9' and '_'"
    );
}

/// A client names a model as it likes: with NUL, and longer than an entry of an index.
#[tokio::test]
#[ignore = "needs a PostgreSQL: cargo xtask shared"]
async fn texts_that_postgres_does_not_take_are_stored_as_it_does() {
    on_new_schema(async |store| {
        // Random letters, which cannot be compressed.
        let mut seed = 1_u64;
        let letters = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from((seed >> 33) % 26).unwrap())
        });
        let long: String = letters.take(60_000).collect();
        for (id, model) in [("r\0", "m\0"), ("r2", &long)] {
            let entry = Opened {
                model: model.to_owned(),
                ..opened(id, 1_000)
            };
            append(store, [entry.into(), closed(id, 2_000).into()]).await;
        }
        let first = store.request("r\0").await.unwrap().unwrap();
        assert_eq!(
            (first.request_id.as_str(), first.model.as_str()),
            ("r?", "m?")
        );
        let second = store.request("r2").await.unwrap().unwrap();
        assert_eq!(second.model, long[..1000]);
        let query = UsageQuery {
            model: Some(long.clone()),
            ..UsageQuery::default()
        };
        assert_eq!(store.usage(query).await.unwrap()[0].totals.requests, 1);
        let query = UsageQuery {
            key: Some("a\0".to_owned()),
            ..UsageQuery::default()
        };
        assert_eq!(store.usage(query).await.unwrap(), []);
        assert_eq!(store.key("key_\0").await.unwrap(), None);
    })
    .await;
}

/// Data that the store refuses is distinguished from a store that is down.
#[tokio::test]
#[ignore = "needs a PostgreSQL: cargo xtask shared"]
async fn an_error_says_whether_the_data_caused_it() {
    let (url, schema) = (url(), new_schema());
    let store = Postgres::connect(&address(&url), &schema).await.unwrap();
    let append = async || {
        let batch = Batch {
            entries: vec![opened("r1", 1_000).into()],
            shipped: None,
        };
        store.append(batch).await.unwrap_err()
    };
    let alter = |what: &str| format!("ALTER TABLE {schema}.usage {what}");
    execute(&url, &alter("ADD CONSTRAINT picky CHECK (model = '')")).await;
    let error = append().await;
    assert!(matches!(error, StoreError::Unfit { .. }), "{error:?}");
    assert!(error.to_string().contains("\"picky\""), "{error}");
    // A disk that is full may have room later.
    let raise = format!(
        "CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON {schema}.usage
             FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()"
    );
    execute(&url, &raise).await;
    let error = append().await;
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    execute(&url, &alter("RENAME TO others")).await;
    let error = append().await;
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    execute(&url, &format!("DROP SCHEMA {schema} CASCADE")).await;
}

/// The mode of TLS decides what is accepted. The server lets nobody in over TCP without TLS and a
/// password, and its certificate is for `localhost`, by a CA of its own.
#[tokio::test]
#[ignore = "needs a PostgreSQL: cargo xtask shared"]
async fn connections_are_encrypted_and_servers_verified() {
    let url = std::env::var("SLUICEGATE_TEST_POSTGRES_TLS");
    let url = url.expect("SLUICEGATE_TEST_POSTGRES_TLS is the URL of a database");
    let (plain, _) = url.split_once('?').unwrap();
    let schema = new_schema();
    for settings in [
        "&sslmode=require",
        "&sslmode=verify-full&channel_binding=require",
        "&sslmode=require&hostaddr=127.0.0.1",
        // The certificate of a loopback address need not be valid.
        "",
        "&sslmode=prefer&hostaddr=127.0.0.1",
    ] {
        let application = new_schema();
        let named = address(&format!("{url}{settings}&application_name={application}"));
        let store = Postgres::connect(&named, &schema).await.unwrap();
        assert_eq!(store.epoch().await.unwrap(), 0, "{settings}");
        assert_eq!(encrypted(&application).await, [true, true], "{settings}");
    }
    let unknown = "invalid peer certificate: UnknownIssuer: expected one of a CA that sslrootcert names, or of a \
                   public one without it";
    let by_address = url.replace("@localhost", "@127.0.0.1");
    for (url, reason) in [
        (format!("{plain}?sslmode=require"), unknown),
        (
            format!("{plain}?sslmode=require&sslrootcert=system"),
            unknown,
        ),
        (
            format!("{by_address}&sslmode=require"),
            "invalid peer certificate: certificate not valid for name \"127.0.0.1\"",
        ),
        (format!("{url}&sslmode=disable"), "no encryption"),
        (
            format!("{plain}?sslmode=require&sslrootcert=/nowhere/ca.pem"),
            "sslrootcert=/nowhere/ca.pem: ",
        ),
    ] {
        let refused = Postgres::connect(&address(&url), &schema).await;
        let error = refused.err().unwrap().to_string();
        assert!(error.contains(reason), "{url}: {error}");
        assert!(
            !error.contains("p@ss") && !error.contains("p%40ss"),
            "{error}"
        );
    }
    execute(&self::url(), &format!("DROP SCHEMA {schema} CASCADE")).await;
}

/// For each connection of an application, whether it is encrypted.
async fn encrypted(application: &str) -> Vec<bool> {
    let (client, connection) = tokio_postgres::connect(&url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
       WHERE application_name = $1";
    let rows = client.query(sql, &[&application]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// A server without TLS gets nothing of what a connection that requires it would send.
#[tokio::test]
async fn nothing_is_sent_without_the_encryption_that_is_required() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    let received = tokio::spawn(async move {
        let (mut socket, _) = server.accept().await.unwrap();
        let mut request = [0; 8];
        socket.read_exact(&mut request).await.unwrap();
        socket.write_all(b"N").await.unwrap();
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).await.unwrap();
        (request, rest)
    });
    let url = format!("postgres://gate:secret@127.0.0.1:{port}/db?sslmode=require");
    let error = Postgres::connect(&address(&url), "accounting").await;
    assert_eq!(
        error.err().unwrap().to_string(),
        format!(
            "the accounting store postgres://127.0.0.1:{port}/db is not available: error performing TLS handshake: \
             server does not support TLS: enable it there, or connect without it by sslmode=disable"
        )
    );
    // The request for TLS is 80877103.
    let (request, rest) = received.await.unwrap();
    assert_eq!(request, [0, 0, 0, 8, 4, 210, 22, 47]);
    assert_eq!(rest, b"");
}
