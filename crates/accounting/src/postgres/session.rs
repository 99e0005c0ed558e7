//! The dialect of PostgreSQL, and its transactions as sessions.

use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use super::plain::plain;
use crate::sql::{Failure, Read, Row, Session, Value};

impl Session for Transaction<'_> {
    const WRITES_IN_WITH: bool = true;
    const IS_IN: &'static str = "IN";
    const HOLDING: &'static str = " FOR UPDATE OF held";
    const SEE_ONE_MOMENT: Option<&'static str> =
        Some("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    // The number after the lock for the tables.
    const LOCK_SUMS: Option<&'static str> =
        Some("SELECT pg_advisory_xact_lock(x'534c47540002'::bigint)");

    fn rows(first: &[Value<'_>]) -> String {
        let lists: Vec<_> = (1..)
            .zip(first)
            .map(|(at, value)| match value {
                Value::Number(_) => format!("${at}::bigint[]"),
                _ => format!("${at}::text[]"),
            })
            .collect();
        format!("SELECT * FROM unnest({})", lists.join(", "))
    }

    fn no_row() -> Failure {
        // As the client reports it, whose error nobody else can make.
        Failure::Unavailable("query returned an unexpected number of rows".to_owned())
    }

    async fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Failure> {
        let values: Vec<_> = values.iter().map(parameter).collect();
        Ok(Transaction::execute(self, sql, &references(&values)).await?)
    }

    async fn query<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>, Failure> {
        run(self, sql, values.iter().map(parameter).collect(), read).await
    }

    async fn query_each<T>(
        &self,
        sql: &str,
        rows: &[Vec<Value<'_>>],
        read: Read<T>,
    ) -> Result<Vec<T>, Failure> {
        // In the order of their ids, because two gateways that store the same rows would otherwise
        // wait for each other.
        let mut rows = rows.to_vec();
        rows.sort();
        let columns = 0..rows.first().map_or(0, Vec::len);
        run(self, sql, columns.map(|at| list(&rows, at)).collect(), read).await
    }
}

/// A value as the client takes it.
type Parameter<'a> = Box<dyn ToSql + Send + Sync + 'a>;

/// Runs a statement with the values of its placeholders.
async fn run<T>(
    tx: &Transaction<'_>,
    sql: &str,
    values: Vec<Parameter<'_>>,
    read: Read<T>,
) -> Result<Vec<T>, Failure> {
    let rows = tx.query(sql, &references(&values)).await?;
    rows.iter().map(|row| read(row)).collect()
}

/// Returns values as an argument of the client.
fn references<'a>(values: &'a [Parameter<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values
        .iter()
        .map(|value| &**value as &(dyn ToSql + Sync))
        .collect()
}

fn parameter<'a>(value: &Value<'a>) -> Parameter<'a> {
    match *value {
        Value::Number(number) => Box::new(number),
        Value::Text(text) => Box::new(text),
        Value::Given(text) => Box::new(text.map(plain)),
        Value::Truth(truth) => Box::new(truth),
    }
}

/// Returns a column of rows of values as a list.
fn list<'a>(rows: &[Vec<Value<'a>>], at: usize) -> Parameter<'a> {
    let column = rows.iter().filter_map(|row| row.get(at));
    let numbers = column.clone().map(|value| match *value {
        Value::Number(number) => Some(number),
        _ => None,
    });
    let texts = column.map(|value| match *value {
        Value::Text(text) | Value::Given(text) => text.map(plain),
        _ => None,
    });
    match numbers.collect::<Option<Vec<_>>>() {
        Some(numbers) => Box::new(numbers),
        None => Box::new(texts.collect::<Vec<_>>()),
    }
}

impl Row for tokio_postgres::Row {
    fn number_or_null(&self, at: usize) -> Result<Option<i64>, Failure> {
        Ok(self.try_get(at)?)
    }

    fn number(&self, at: usize) -> Result<i64, Failure> {
        Ok(self.try_get(at)?)
    }

    fn text_or_null(&self, at: usize) -> Result<Option<String>, Failure> {
        Ok(self.try_get(at)?)
    }

    fn text(&self, at: usize) -> Result<String, Failure> {
        Ok(self.try_get(at)?)
    }

    fn truth(&self, at: usize) -> Result<bool, Failure> {
        Ok(self.try_get(at)?)
    }
}
