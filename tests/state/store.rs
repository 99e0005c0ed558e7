//! A folder with a store, and the contents of its file.

use std::path::{Path, PathBuf};

use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags, Row as Columns};
use testkit::{Gateway, Response, Scratch, await_that, log};

use crate::GATEWAY;

/// A store in a temporary folder.
pub(crate) struct Store(Scratch);

/// The row of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) replica: String,
    pub(crate) key: String,
    pub(crate) route: String,
    pub(crate) model: String,
    pub(crate) outcome: String,
    pub(crate) status: u16,
    pub(crate) target: Option<String>,
    pub(crate) tokens: Tokens,
    pub(crate) pictures: i64,
    pub(crate) cost: Option<i64>,
    pub(crate) service_tier: Option<String>,
    pub(crate) missing_prices: Option<String>,
}

/// The tokens of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// Prompt tokens that were neither read from a cache nor written to one.
    pub(crate) input: i64,
    pub(crate) cache_read: i64,
    pub(crate) cache_write: i64,
    /// The part of `cache_write` that is kept for an hour.
    pub(crate) cache_write_1h: i64,
    /// Output tokens, including reasoning.
    pub(crate) output: i64,
    pub(crate) reasoning: i64,
}

impl Store {
    /// A store that no gateway has opened yet.
    pub(crate) fn new() -> Self {
        Self(GATEWAY.file("note.txt", "A store is beside this file."))
    }

    /// The settings of the gateway, which looks for changes often.
    pub(crate) fn settings(&self) -> String {
        format!(
            "[state]\naccounting = \"sqlite:{}\"\nreplica = \"gate-1\"\nrenewal = \"100ms\"\n",
            self.path().display()
        )
    }

    /// The file.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join("accounting.db")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.0.parent().unwrap()
    }

    /// A connection that can write, as another process might open one.
    pub(crate) fn writer(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    /// The result of a query with one column.
    #[track_caller]
    pub(crate) fn column<T: FromSql>(&self, sql: &str) -> Vec<T> {
        self.query(sql, |columns| columns.get(0))
    }

    /// The result of a query with one number.
    #[track_caller]
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.column::<Option<i64>>(sql)[0].unwrap_or_default()
    }

    /// All rows, in the order in which they were stored.
    #[track_caller]
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.query(ROWS, Row::read)
    }

    /// Waits until the request that got this response has ended in the store.
    #[track_caller]
    pub(crate) fn row(&self, gateway: &Gateway, response: &Response) -> Row {
        let id = log::line(gateway, response)["request_id"].clone();
        let find = || {
            let mut rows = self.rows().into_iter();
            rows.find(|row| row.id == id && row.state != "open")
        };
        await_that("the row is stored", || find().is_some());
        find().unwrap()
    }

    /// Waits until all of so many requests have ended in the store.
    #[track_caller]
    pub(crate) fn ended(&self, count: usize) -> Vec<Row> {
        let all = || {
            let rows = self.rows();
            let is_ended = rows.iter().all(|row| row.state != "open");
            (rows.len() >= count && is_ended).then_some(rows)
        };
        await_that("all requests have ended", || all().is_some());
        all().unwrap()
    }

    #[track_caller]
    fn query<T>(&self, sql: &str, read: impl Fn(&Columns<'_>) -> rusqlite::Result<T>) -> Vec<T> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = Connection::open_with_flags(self.path(), flags).unwrap();
        connection.busy_timeout(testkit::GUARD).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |columns| read(columns)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }
}

impl Row {
    fn read(columns: &Columns<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: columns.get("request_id")?,
            state: columns.get("state")?,
            replica: columns.get("replica")?,
            key: columns.get("key")?,
            route: columns.get("route")?,
            model: columns.get("model")?,
            outcome: columns.get("outcome")?,
            status: columns.get("status")?,
            target: columns.get("target")?,
            tokens: Tokens {
                input: columns.get("input")?,
                cache_read: columns.get("cache_read")?,
                cache_write: columns.get("cache_write")?,
                cache_write_1h: columns.get("cache_write_1h")?,
                output: columns.get("output")?,
                reasoning: columns.get("reasoning")?,
            },
            pictures: columns.get("pictures")?,
            cost: columns.get("cost_nanos")?,
            service_tier: columns.get("service_tier")?,
            missing_prices: columns.get("missing_prices")?,
        })
    }
}

const ROWS: &str = "SELECT * FROM usage ORDER BY rowid";
