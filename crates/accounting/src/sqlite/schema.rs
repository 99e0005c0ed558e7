//! The tables, and the migration of tables from older versions.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use crate::sql::Failure;

/// The steps from each version of the schema to the next, beginning with an empty file. A step that
/// has been released never changes. A step whose result older gateways cannot work with, such as one
/// that adds a limit that they would not keep, sets `compatible_since` in the table `meta` to its own
/// version.
const STEPS: [&str; 4] = [
    include_str!("schema/1_keys.sql"),
    include_str!("schema/2_usage.sql"),
    include_str!("schema/3_cache_write_1h.sql"),
    include_str!("schema/4_prices.sql"),
];

/// The number by which a file of this program is recognized: "SLGT" in ASCII.
const APPLICATION_ID: i64 = 0x534c_4754;

/// Prepares an open file: checks that it is a store, and takes the steps that it lacks.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), Failure> {
    check_owner(connection)?;
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
    while version(connection)? < newest() {
        step(connection)?;
    }
    check_version(connection)
}

/// Writes something, so that a commit syncs the log.
pub(super) fn touch(connection: &Connection) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO meta (name, value) VALUES ('syncs', 1)
             ON CONFLICT (name) DO UPDATE SET value = (value + 1) % 1000000",
        )?
        .execute([])?;
    Ok(())
}

/// Takes one step in a transaction, unless another process was faster.
fn step(connection: &mut Connection) -> Result<(), Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = version(&transaction)?;
    if let Some(step) = usize::try_from(version).ok().and_then(|at| STEPS.get(at)) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version + 1)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    Ok(transaction.commit()?)
}

/// Refuses a file of another program.
fn check_owner(connection: &Connection) -> Result<(), Failure> {
    // In this order: another process that creates the tables now sets both in one transaction.
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let owner: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if owner == APPLICATION_ID || (owner == 0 && tables == 0) {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "the file has {tables} tables and indexes of another program (application id {owner}): \
         expected a new file or an accounting store"
    )))
}

/// Refuses a schema that is too new.
fn check_version(connection: &Connection) -> Result<(), Failure> {
    let version = version(connection)?;
    let since = connection
        .query_row(
            "SELECT value FROM meta WHERE name = 'compatible_since'",
            [],
            |row| row.get::<_, i64>(0),
        )
        .optional()?;
    let newest = newest();
    match since {
        Some(since) if since <= newest => Ok(()),
        Some(since) => Err(Failure::Refused(format!(
            "the schema has version {version} and needs a gateway that knows version {since} or \
             newer, but this one knows {newest}: use a newer gateway"
        ))),
        None => Err(Failure::Refused(
            "the table 'meta' lacks 'compatible_since': restore the file from a backup".to_owned(),
        )),
    }
}

fn version(connection: &Connection) -> Result<i64, Failure> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// The version that this program creates.
const fn newest() -> i64 {
    STEPS.len() as i64
}
