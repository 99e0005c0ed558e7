//! Rows of usage: one request, or an export of all.

use std::io;
use std::sync::Arc;

use accounting::{AccountingStore, RowQuery, StoreError, TokenCounts, UsageRow};
use bytes::Bytes;
use futures_util::stream;
use gateway::exchange::body::Aborted;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use telemetry::outcome::Outcome;

use super::failure::Failure;
use super::parameters::{Kind, Parameter};
use super::usage::{FROM, KEY, MODEL, TO, TokenView};
use super::values::{Amount, Time};
use super::{AdminRequest, Answer, response};

/// The usage of one request.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UsageRow")]
pub(crate) struct Row {
    /// The id of the request.
    request_id: String,
    /// The state: `open`, `closed`, or `abandoned` if its process ended before it.
    state: &'static str,
    /// The time of admission, by which the request counts.
    at: Time,
    /// The time of the end.
    closed: Option<Time>,
    /// The name of the gateway process.
    replica: String,
    /// The id of the run of that process.
    run: String,
    /// The name of the key.
    key: String,
    /// The endpoint.
    route: String,
    /// The model, as the client has named it.
    model: String,
    /// The tokens that were reserved.
    reserved_tokens: u64,
    /// The money that was reserved.
    reserved_cost: Amount,
    /// The outcome, as in the log; empty until the end.
    outcome: String,
    /// The HTTP status; 0 until the end.
    status: u16,
    /// The target that has answered.
    target: Option<String>,
    #[serde(flatten)]
    #[schemars(with = "TokenView")]
    tokens: TokenCounts,
    /// Pictures.
    pictures: u64,
    /// The cost; null until the end and if the model has no price.
    cost: Option<Amount>,
    /// The service tier at which the request was processed; null for the usual one.
    service_tier: Option<String>,
    /// The prices that were missing for an exact cost, with spaces between them; null if none was.
    missing_prices: Option<String>,
}

/// An export that goes on: the query of its next page, and the page at hand.
struct Export {
    store: Arc<dyn AccountingStore>,
    query: RowQuery,
    is_csv: bool,
    /// `None` at the end.
    page: Option<Bytes>,
}

/// Shows one request.
pub(super) async fn request(admin: &AdminRequest<'_>) -> Result<Row, Failure> {
    let found = admin.accounting()?.store.request(admin.id).await?;
    let row = found.ok_or_else(|| {
        let id = wire::truncate_for_error(admin.id);
        Failure::not_found(format!(
            "id: no request '{id}' is stored; one that has just been made is, after a moment"
        ))
    })?;
    Ok(Row::from(row))
}

/// Exports rows, page by page, as fast as the client reads.
pub(super) async fn export(admin: &AdminRequest<'_>) -> Answer {
    let parameters = &admin.parameters;
    let (is_csv, media_type) = match parameters.get("format") {
        Some("csv") => (true, "text/csv; charset=utf-8"),
        _ => (false, "application/jsonl"),
    };
    let (from_ms, to_ms) = parameters.period()?;
    let mut export = Export {
        store: Arc::clone(&admin.accounting()?.store),
        query: RowQuery {
            from_ms,
            to_ms,
            key: parameters.text("key"),
            model: parameters.text("model"),
            ..RowQuery::default()
        },
        is_csv,
        page: None,
    };
    // The first page is read before the response begins, so that its failure has a status.
    let rows = export.next_rows().await?;
    let first = export.write(rows, true).map_err(Failure::internal)?;
    export.page = Some(first);
    let pages = stream::try_unfold(export, |mut export| async move {
        let Some(page) = export.page.take() else {
            return Ok(None);
        };
        export.page = export.next_page().await.map_err(aborted)?;
        Ok::<_, Aborted>(Some((Frame::data(page), export)))
    });
    let body = StreamBody::new(pages).boxed_unsync();
    Ok(response(media_type, body))
}

impl Export {
    async fn next_page(&mut self) -> Result<Option<Bytes>, String> {
        let rows = self.next_rows().await.map_err(|error| error.to_string())?;
        match rows.is_empty() {
            true => Ok(None),
            false => self.write(rows, false).map(Some),
        }
    }

    async fn next_rows(&mut self) -> Result<Vec<UsageRow>, StoreError> {
        let rows = self.store.rows(self.query.clone()).await?;
        if let Some(last) = rows.last() {
            self.query.after = Some((last.at_ms, last.request_id.clone()));
        }
        Ok(rows)
    }

    fn write(&self, rows: Vec<UsageRow>, is_first: bool) -> Result<Bytes, String> {
        let rows = rows.into_iter().map(Row::from);
        match self.is_csv {
            true => csv(rows, is_first).map_err(|error| error.to_string()),
            false => json_lines(rows).map_err(|error| error.to_string()),
        }
    }
}

fn aborted(cause: String) -> Aborted {
    tracing::error!(cause, "an export of usage has failed");
    Aborted {
        outcome: Outcome::Internal,
        cause,
    }
}

fn json_lines(mut rows: impl Iterator<Item = Row>) -> serde_json::Result<Bytes> {
    let mut out = Vec::new();
    rows.try_for_each(|row| {
        serde_json::to_writer(&mut out, &row)?;
        out.push(b'\n');
        Ok(())
    })?;
    Ok(out.into())
}

/// Writes rows with the members of their JSON as columns.
fn csv(rows: impl Iterator<Item = Row>, with_header: bool) -> csv::Result<Bytes> {
    let mut out = csv::Writer::from_writer(Vec::new());
    if with_header {
        let schema = schemars::schema_for!(Row);
        let columns = schema.get("properties").and_then(Value::as_object);
        out.write_record(columns.into_iter().flat_map(Map::keys))?;
    }
    for row in rows {
        let row = serde_json::to_value(row).map_err(io::Error::from)?;
        let members = row.as_object().into_iter().flat_map(Map::values);
        out.write_record(members.map(cell))?;
    }
    let written = out.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(written.into())
}

/// Returns a cell of CSV. An apostrophe is put in front of a text that a spreadsheet would execute
/// (<https://owasp.org/www-community/attacks/CSV_Injection>).
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(FORMULA_STARTS) => format!("'{text}"),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

impl From<UsageRow> for Row {
    fn from(row: UsageRow) -> Self {
        Self {
            request_id: row.request_id,
            state: row.state.as_str(),
            at: Time::millis(row.at_ms),
            closed: row.closed_ms.map(Time::millis),
            replica: row.replica,
            run: row.run,
            key: row.key,
            route: row.route,
            model: row.model,
            reserved_tokens: row.reserved_tokens,
            reserved_cost: Amount::nanos(row.reserved_nanos),
            outcome: row.outcome,
            status: row.status,
            target: row.target,
            tokens: row.tokens,
            pictures: row.pictures,
            cost: row.cost_nanos.map(Amount::nanos),
            service_tier: row.service_tier,
            missing_prices: row.missing_prices,
        }
    }
}

/// The characters with which formulas begin, also in their wide forms, and those that spreadsheets
/// skip before them.
const FORMULA_STARTS: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// The query parameters of an export.
pub(super) const OF_ROWS: [Parameter; 5] = [
    FROM,
    TO,
    KEY,
    MODEL,
    Parameter {
        name: "format",
        kind: Kind::Word(&["jsonl", "csv"]),
        description: "The form: a JSON object in each line, or comma-separated values with a line of names. Default: jsonl.",
    },
];
