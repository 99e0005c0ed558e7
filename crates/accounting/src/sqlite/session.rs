//! The dialect of SQLite, and a connection as a session: a thread has begun a transaction on it.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ToSql, params_from_iter};

use crate::sql::{Failure, Read, Row, Session, Value};

/// Returns the result of an operation. Statements of SQLite are done when they return, so that it
/// never waits.
pub(super) fn at_once<T>(
    operation: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    match pin!(operation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Failure::Unavailable("an operation waits".to_owned())),
    }
}

impl Session for Connection {
    const WRITES_IN_WITH: bool = false;
    // The rows come one after the other. `IN` would use the first column of an index alone.
    const IS_IN: &'static str = "=";
    // A transaction that writes is alone from its beginning, and others see one moment anyway.
    const HOLDING: &'static str = "";
    const SEE_ONE_MOMENT: Option<&'static str> = None;
    const LOCK_SUMS: Option<&'static str> = None;

    fn rows(first: &[Value<'_>]) -> String {
        let places: Vec<_> = (1..=first.len()).map(|at| format!("${at}")).collect();
        format!("VALUES ({})", places.join(", "))
    }

    fn no_row() -> Failure {
        rusqlite::Error::QueryReturnedNoRows.into()
    }

    async fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Failure> {
        let mut statement = self.prepare_cached(&placed(sql))?;
        let changed = statement.execute(params_from_iter(values))?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    async fn query<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>, Failure> {
        self.query_each(sql, &[values.to_vec()], read).await
    }

    async fn query_each<T>(
        &self,
        sql: &str,
        rows: &[Vec<Value<'_>>],
        read: Read<T>,
    ) -> Result<Vec<T>, Failure> {
        let mut statement = self.prepare_cached(&placed(sql))?;
        let mut found = Vec::new();
        for values in rows {
            let mut answer = statement.query(params_from_iter(values))?;
            while let Some(row) = answer.next()? {
                found.push(read(row)?);
            }
        }
        Ok(found)
    }
}

/// Returns a statement with the placeholders of SQLite, which takes `$1` for a name.
fn placed(sql: &str) -> String {
    sql.replace('$', "?")
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Number(number) => number.to_sql(),
            Self::Text(text) | Self::Given(text) => text.to_sql(),
            Self::Truth(truth) => truth.to_sql(),
        }
    }
}

impl Row for rusqlite::Row<'_> {
    fn number_or_null(&self, at: usize) -> Result<Option<i64>, Failure> {
        Ok(self.get(at)?)
    }

    fn number(&self, at: usize) -> Result<i64, Failure> {
        Ok(self.get(at)?)
    }

    fn text_or_null(&self, at: usize) -> Result<Option<String>, Failure> {
        Ok(self.get(at)?)
    }

    fn text(&self, at: usize) -> Result<String, Failure> {
        Ok(self.get(at)?)
    }

    fn truth(&self, at: usize) -> Result<bool, Failure> {
        Ok(self.get(at)?)
    }
}
