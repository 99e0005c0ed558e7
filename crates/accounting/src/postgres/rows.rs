//! Rows of usage and sums of them.

use tokio_postgres::{Row, Transaction};

use super::failure::Failure;
use super::plain::plain;
use super::rollup::over_sums;
use crate::columns::{AFTER_TOKENS, OF_ROW, TOKENS};
use crate::query::{RowQuery, Totals, UsageQuery, UsageSum};
use crate::rollup::{self, condition};
use crate::tokens::TokenCounts;
use crate::usage::{State, UsageRow};

pub(super) async fn find(
    tx: &Transaction<'_>,
    request_id: &str,
) -> Result<Option<UsageRow>, Failure> {
    let sql = format!("SELECT {} FROM usage WHERE request_id = $1", *OF_ROW);
    Ok(tx
        .query_opt(&sql, &[&plain(request_id)])
        .await?
        .as_ref()
        .map(read))
}

pub(super) async fn page(tx: &Transaction<'_>, query: &RowQuery) -> Result<Vec<UsageRow>, Failure> {
    let first = query.from_ms.unwrap_or(i64::MIN);
    let (after_ms, after_id) = query.after.clone().unwrap_or((i64::MIN, String::new()));
    let sql = format!(
        "SELECT {} FROM usage
         WHERE at_ms >= $1 AND ($2::bigint IS NULL OR at_ms < $2)
           AND (at_ms, request_id) > ($3, $4)
           AND ($5::text IS NULL OR key = $5) AND ($6::text IS NULL OR model = $6)
         ORDER BY at_ms, request_id LIMIT $7",
        *OF_ROW
    );
    let rows = tx
        .query(
            &sql,
            &[
                &first.max(after_ms),
                &query.to_ms,
                &after_ms,
                &plain(after_id),
                &query.key.as_ref().map(plain),
                &query.model.as_ref().map(plain),
                &i64::from(query.limit),
            ],
        )
        .await?;
    Ok(rows.iter().map(read).collect())
}

pub(super) async fn sums(
    tx: &Transaction<'_>,
    query: &UsageQuery,
) -> Result<Vec<UsageSum>, Failure> {
    let group = [
        (query.granularity.is_some(), "start_ms", "NULL::bigint"),
        (query.by_key, "key", "NULL::text"),
        (query.by_model, "model", "NULL::text"),
    ]
    .map(|(is_asked, column, nothing)| if is_asked { column } else { nothing })
    .join(", ");
    let sql = format!(
        "SELECT {group}, {} FROM rollups
         WHERE ({}) AND ($1::text IS NULL OR key = $1) AND ($2::text IS NULL OR model = $2)
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        over_sums(),
        condition(query),
    );
    let [key, model] = [&query.key, &query.model].map(|name| name.as_ref().map(plain));
    let rows = tx.query(&sql, &[&key, &model]).await?;
    Ok(rows.iter().map(read_sum).collect())
}

fn read_sum(row: &Row) -> UsageSum {
    let count = |at: usize| unsigned(row.get(at));
    UsageSum {
        start_ms: row.get(0),
        key: row.get(1),
        model: row.get(2),
        totals: Totals {
            requests: count(3),
            open: count(4),
            abandoned: count(5),
            unpriced: count(6),
            inexact: count(7),
            tokens: tokens(row, GROUPS + rollup::TOKENS),
            pictures: count(GROUPS + rollup::AFTER_TOKENS),
            cost_nanos: row.get(GROUPS + rollup::AFTER_TOKENS + 1),
            open_nanos: row.get(GROUPS + rollup::AFTER_TOKENS + 2),
            abandoned_nanos: row.get(GROUPS + rollup::AFTER_TOKENS + 3),
        },
    }
}

fn read(row: &Row) -> UsageRow {
    let count = |at: usize| unsigned(row.get(at));
    UsageRow {
        request_id: row.get(0),
        state: match row.get::<_, &str>(1) {
            "open" => State::Open,
            "abandoned" => State::Abandoned,
            _ => State::Closed,
        },
        at_ms: row.get(2),
        closed_ms: row.get(3),
        replica: row.get(4),
        run: row.get(5),
        key: row.get(6),
        route: row.get(7),
        model: row.get(8),
        reserved_tokens: count(9),
        reserved_nanos: row.get(10),
        outcome: row.get(11),
        status: u16::try_from(row.get::<_, i64>(12)).unwrap_or_default(),
        target: row.get(13),
        tokens: tokens(row, TOKENS),
        pictures: count(AFTER_TOKENS),
        cost_nanos: row.get(AFTER_TOKENS + 1),
        service_tier: row.get(AFTER_TOKENS + 2),
        missing_prices: row.get(AFTER_TOKENS + 3),
    }
}

/// Reads the token counts that begin at this column.
fn tokens(row: &Row, first: usize) -> TokenCounts {
    std::array::from_fn(|at| unsigned(row.get(first + at))).into()
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}

/// The columns by which sums are grouped, which come before them.
const GROUPS: usize = 3;
