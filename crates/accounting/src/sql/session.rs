//! A transaction in which statements run, and the dialect in which it takes them.

use super::Failure;

/// A transaction of a store.
pub(crate) trait Session {
    /// True if the `WITH` of a statement may have statements that write.
    const WRITES_IN_WITH: bool;

    /// The operator between columns and [`rows`](Self::rows) in parentheses that selects those rows.
    const IS_IN: &'static str;

    /// The end of a `SELECT` that keeps other transactions from changing the rows of the table that it
    /// names `held`.
    const HOLDING: &'static str;

    /// The statement after which all others of a transaction see the same moment, if it needs one.
    const SEE_ONE_MOMENT: Option<&'static str>;

    /// The statement that keeps other transactions from computing sums until the end of this one, if
    /// it needs one.
    const LOCK_SUMS: Option<&'static str>;

    /// Returns the query for rows of values. The first row shows the types of the columns.
    fn rows(first: &[Value<'_>]) -> String;

    /// Returns the failure of a statement that has to find a row and does not.
    fn no_row() -> Failure;

    /// Runs a statement and returns the number of rows that it has changed.
    async fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Failure>;

    /// Runs a statement and returns its rows as `read` reads them.
    async fn query<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>, Failure>;

    /// Runs a statement that contains [`rows`](Self::rows), which are at least one: once for
    /// all of them, or for one after the other.
    async fn query_each<T>(
        &self,
        sql: &str,
        rows: &[Vec<Value<'_>>],
        read: Read<T>,
    ) -> Result<Vec<T>, Failure>;

    /// Returns the number that a statement finds.
    async fn number(&self, sql: &str) -> Result<i64, Failure> {
        let rows = self.query(sql, &[], |row| row.number(0)).await?;
        rows.into_iter().next().ok_or_else(Self::no_row)
    }

    /// Runs the statement that `sql` makes of the query for rows of values, if there are any.
    async fn query_rows<T>(
        &self,
        rows: &[Vec<Value<'_>>],
        sql: impl FnOnce(&str) -> String,
        read: Read<T>,
    ) -> Result<Vec<T>, Failure> {
        match rows.first() {
            Some(first) => self.query_each(&sql(&Self::rows(first)), rows, read).await,
            None => Ok(Vec::new()),
        }
    }
}

/// A value in the place of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value<'a> {
    /// A whole number, or NULL.
    Number(Option<i64>),
    /// A text, or NULL.
    Text(Option<&'a str>),
    /// A text that a client has chosen, or NULL. A store that does not take every text changes it.
    Given(Option<&'a str>),
    /// A truth value.
    Truth(bool),
}

/// A function that reads a row.
pub(crate) type Read<T> = fn(&dyn Row) -> Result<T, Failure>;

/// A row that a statement returns.
pub(crate) trait Row {
    /// Returns the whole number in this column, or `None` for NULL.
    fn number_or_null(&self, at: usize) -> Result<Option<i64>, Failure>;

    /// Returns the whole number in this column.
    fn number(&self, at: usize) -> Result<i64, Failure>;

    /// Returns the text in this column, or `None` for NULL.
    fn text_or_null(&self, at: usize) -> Result<Option<String>, Failure>;

    /// Returns the text in this column.
    fn text(&self, at: usize) -> Result<String, Failure>;

    /// Returns the truth value in this column.
    fn truth(&self, at: usize) -> Result<bool, Failure>;

    /// Returns the whole number in this column, which is not below zero.
    fn count(&self, at: usize) -> Result<u64, Failure> {
        Ok(u64::try_from(self.number(at)?).unwrap_or_default())
    }
}
