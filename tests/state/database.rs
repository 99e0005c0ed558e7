//! A store of any kind, as the tests of kills see it.

use std::path::PathBuf;
use std::process::Command;

use crate::GATEWAY;
use crate::store::Store;

/// A store that is read with plain SQL.
pub(crate) trait Database {
    /// The settings of a gateway with this store, which looks for changes often.
    fn settings(&self) -> String;

    /// The gateway.
    fn command(&self) -> Command;

    /// The folder of the journals, once a gateway has run.
    fn journal(&self) -> PathBuf;

    /// The result of a query with one column of numbers; 0 for null.
    fn numbers(&self, sql: &str) -> Vec<i64>;

    /// The result of a query with one column of texts.
    fn texts(&self, sql: &str) -> Vec<String>;

    /// The result of a query with one number.
    #[track_caller]
    fn figure(&self, sql: &str) -> i64 {
        self.numbers(sql)[0]
    }
}

impl Database for Store {
    fn settings(&self) -> String {
        self.settings()
    }

    fn command(&self) -> Command {
        GATEWAY.command()
    }

    fn journal(&self) -> PathBuf {
        self.folder().join("accounting.db.journal")
    }

    #[track_caller]
    fn numbers(&self, sql: &str) -> Vec<i64> {
        let numbers = self.column::<Option<i64>>(sql).into_iter();
        numbers.map(Option::unwrap_or_default).collect()
    }

    #[track_caller]
    fn texts(&self, sql: &str) -> Vec<String> {
        self.column(sql)
    }
}
