//! The tables, and the migration of tables from older versions.

use tokio_postgres::Transaction;

use crate::sql::Failure;

/// The steps from each version of the schema to the next, beginning with nothing. A step that has
/// been released never changes; `compatible_since` in the table `meta` is as in the SQLite store.
const STEPS: [&str; 4] = [
    include_str!("schema/1_keys.sql"),
    include_str!("schema/2_usage.sql"),
    include_str!("schema/3_cache_write_1h.sql"),
    include_str!("schema/4_prices.sql"),
];

/// The advisory lock for the tables. That for the sums is the next one.
const SCHEMA_LOCK: i64 = 0x534c_4754_0001;

/// Creates the schema and takes the steps that it lacks.
pub(super) async fn prepare(tx: &Transaction<'_>, schema: &str) -> Result<(), Failure> {
    // Other gateways wait here until the end of this transaction.
    tx.execute("SELECT pg_advisory_xact_lock($1)", &[&SCHEMA_LOCK])
        .await?;
    tx.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}"))
        .await?;
    let version = match exists(tx, schema).await? {
        false => 0,
        true => meta(tx, "version").await?,
    };
    for step in STEPS
        .iter()
        .skip(usize::try_from(version).unwrap_or(usize::MAX))
    {
        tx.batch_execute(step).await?;
    }
    if version < newest() {
        tx.execute(
            "INSERT INTO meta (name, value) VALUES ('version', $1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            &[&newest()],
        )
        .await?;
    }
    let (version, since) = (
        meta(tx, "version").await?,
        meta(tx, "compatible_since").await?,
    );
    let newest = newest();
    if since <= newest {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "the schema has version {version} and needs a gateway that knows version {since} or newer, \
         but this one knows {newest}: use a newer gateway"
    )))
}

/// Returns true if the schema has the tables, of whatever version.
pub(super) async fn exists(tx: &Transaction<'_>, schema: &str) -> Result<bool, Failure> {
    let found = tx
        .query_one(
            "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1
             AND tablename = 'meta')",
            &[&schema],
        )
        .await?;
    Ok(found.get(0))
}

async fn meta(tx: &Transaction<'_>, name: &str) -> Result<i64, Failure> {
    let row = tx
        .query_opt("SELECT value FROM meta WHERE name = $1", &[&name])
        .await?;
    row.map(|row| row.get(0)).ok_or_else(|| {
        Failure::Refused(format!(
            "the table 'meta' lacks {name:?}: restore it from a backup"
        ))
    })
}

/// The version that this program creates.
const fn newest() -> i64 {
    STEPS.len() as i64
}
