//! Rows of usage.

use super::Value::{Given, Number};
use super::columns::{AFTER_TOKENS, OF_ROW, TOKENS};
use super::{Failure, Row, Session};
use crate::query::RowQuery;
use crate::tokens::TokenCounts;
use crate::usage::{State, UsageRow};

/// Returns the row of one request.
pub(crate) async fn find(
    session: &impl Session,
    request_id: &str,
) -> Result<Option<UsageRow>, Failure> {
    let sql = format!("SELECT {} FROM usage WHERE request_id = $1", *OF_ROW);
    let mut rows = session
        .query(&sql, &[Given(Some(request_id))], read)
        .await?;
    Ok(rows.pop())
}

/// Returns one page of rows in order of time and request id.
pub(crate) async fn page(
    session: &impl Session,
    query: &RowQuery,
) -> Result<Vec<UsageRow>, Failure> {
    let first = query.from_ms.unwrap_or(i64::MIN);
    let after = query.after.as_ref();
    let (after_ms, after_id) = after.map_or((i64::MIN, ""), |(at_ms, id)| (*at_ms, id.as_str()));
    let sql = format!(
        "SELECT {} FROM usage
         WHERE at_ms >= $1 AND (at_ms < $2 OR $2 IS NULL)
           AND (at_ms, request_id) > ($3, $4)
           AND (key = $5 OR $5 IS NULL) AND (model = $6 OR $6 IS NULL)
         ORDER BY at_ms, request_id LIMIT $7",
        *OF_ROW
    );
    let values = [
        Number(Some(first.max(after_ms))),
        Number(query.to_ms),
        Number(Some(after_ms)),
        Given(Some(after_id)),
        Given(query.key.as_deref()),
        Given(query.model.as_deref()),
        Number(Some(query.limit.into())),
    ];
    session.query(&sql, &values, read).await
}

fn read(row: &dyn Row) -> Result<UsageRow, Failure> {
    Ok(UsageRow {
        request_id: row.text(0)?,
        state: match row.text(1)?.as_str() {
            "open" => State::Open,
            "abandoned" => State::Abandoned,
            _ => State::Closed,
        },
        at_ms: row.number(2)?,
        closed_ms: row.number_or_null(3)?,
        replica: row.text(4)?,
        run: row.text(5)?,
        key: row.text(6)?,
        route: row.text(7)?,
        model: row.text(8)?,
        reserved_tokens: row.count(9)?,
        reserved_nanos: row.number(10)?,
        outcome: row.text(11)?,
        status: u16::try_from(row.number(12)?).unwrap_or_default(),
        target: row.text_or_null(13)?,
        tokens: tokens(row, TOKENS)?,
        pictures: row.count(AFTER_TOKENS)?,
        cost_nanos: row.number_or_null(AFTER_TOKENS + 1)?,
        service_tier: row.text_or_null(AFTER_TOKENS + 2)?,
        missing_prices: row.text_or_null(AFTER_TOKENS + 3)?,
    })
}

/// Reads the token counts that begin at this column.
pub(super) fn tokens(row: &dyn Row, first: usize) -> Result<TokenCounts, Failure> {
    let mut counts = [0; TokenCounts::COLUMNS.len()];
    for (at, count) in (first..).zip(&mut counts) {
        *count = row.count(at)?;
    }
    Ok(counts.into())
}
