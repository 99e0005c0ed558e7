//! Rows of usage as CSV or JSON lines.

use std::io::{self, Write};

use thiserror::Error;

use crate::query::RowQuery;
use crate::store::{AccountingStore, StoreError};
use crate::usage::UsageRow;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A line with the names of the columns, and one line for each row.
    Csv,
    /// A JSON object for each row, in a line of its own.
    JsonLines,
}

/// The reason why an export has ended early.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The store has failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rows cannot be written.
    #[error("cannot write the exported rows: {0}")]
    Write(#[from] io::Error),
}

/// Writes the rows that `query` asks for to `out`, page by page in the order of time and request id,
/// and returns their number. The limit of `query` is the size of a page.
///
/// Rows that are stored during the export may be missing.
///
/// # Errors
/// Returns an error as soon as a page cannot be read or written. Rows before it have been written.
pub async fn export(
    store: &dyn AccountingStore,
    mut query: RowQuery,
    format: ExportFormat,
    mut out: impl Write,
) -> Result<u64, ExportError> {
    let mut exported = 0_u64;
    if format == ExportFormat::Csv {
        write_header(&mut out)?;
    }
    loop {
        let rows = store.rows(query.clone()).await?;
        let Some(last) = rows.last() else {
            break;
        };
        query.after = Some((last.at_ms, last.request_id.clone()));
        write_rows(&rows, format, &mut out)?;
        exported = exported.saturating_add(rows.len() as u64);
    }
    out.flush()?;
    Ok(exported)
}

/// The names of the columns, in the order of the fields of [`UsageRow`].
const COLUMNS: [&str; 21] = [
    "request_id",
    "state",
    "at_ms",
    "closed_ms",
    "replica",
    "run",
    "key",
    "route",
    "model",
    "reserved_tokens",
    "reserved_nanos",
    "outcome",
    "status",
    "target",
    "input",
    "cache_read",
    "cache_write",
    "output",
    "reasoning",
    "pictures",
    "cost_nanos",
];

fn write_header(out: impl Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(COLUMNS)?;
    csv.flush()
}

fn write_rows(rows: &[UsageRow], format: ExportFormat, mut out: impl Write) -> io::Result<()> {
    match format {
        ExportFormat::Csv => {
            let mut csv = csv::WriterBuilder::new()
                .has_headers(false)
                .from_writer(out);
            rows.iter().try_for_each(|row| csv.serialize(row))?;
            csv.flush()
        }
        ExportFormat::JsonLines => rows.iter().try_for_each(|row| {
            serde_json::to_writer(&mut out, row)?;
            out.write_all(b"\n")
        }),
    }
}
