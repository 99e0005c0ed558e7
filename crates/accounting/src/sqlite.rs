//! The store in one SQLite file.

mod jobs;
mod schema;
mod session;
mod threads;

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::Duration;

use auth::KeyHash;
use rusqlite::{Connection, OpenFlags};

use crate::audit::{AuditEntry, AuditQuery};
use crate::error::StoreError;
use crate::key::{By, KeyChange, LiveKeys, NewKey, StoredKey};
use crate::query::{RowQuery, UsageQuery, UsageSum};
use crate::sql::{Failure, audit, keys, rollup, rows, sums, usage};
use crate::store::{AccountingStore, StoreFuture};
use crate::usage::{Batch, UsageRow};
use session::at_once;
use threads::{Reader, Writer};

/// A store in one SQLite file, which operators can read with `sqlite3`.
///
/// Writes go through one thread, which commits those that wait together; reads have a thread and a
/// connection of their own. Several processes of one machine may open the same file. Dropping the
/// store finishes the writes that have begun.
pub struct Sqlite {
    writer: Writer,
    reader: Reader,
}

/// The time for which a write waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

impl Sqlite {
    /// Opens the store at `path`. A new file can be read and written by its owner alone. The schema
    /// of an older version is brought up to date. Blocks while it reads the file.
    ///
    /// # Errors
    /// Returns [`StoreError::Unreachable`] if the file cannot be opened or is busy, and
    /// [`StoreError::Refused`] if it is no store, or one of a version that is too new.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let at_store = |failure: Failure| failure.at(&name);
        create(path).map_err(|error| StoreError::Unreachable {
            store: name.clone(),
            reason: error.to_string(),
        })?;
        let mut writing = connect(path).map_err(at_store)?;
        schema::prepare(&mut writing).map_err(at_store)?;
        let reading = connect(path).map_err(at_store)?;
        reading
            .pragma_update(None, "query_only", true)
            .map_err(|error| at_store(error.into()))?;
        let no_thread = |error: io::Error| StoreError::Unreachable {
            store: name.clone(),
            reason: format!("cannot start a thread: {error}"),
        };
        Ok(Self {
            writer: Writer::start(writing, &name, sum_up).map_err(no_thread)?,
            reader: Reader::start(reading, &name).map_err(no_thread)?,
        })
    }
}

/// Creates the file with mode 0600, unless it exists. SQLite gives its companions the same mode.
fn create(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn connect(path: &Path) -> Result<Connection, Failure> {
    // Without SQLITE_OPEN_URI, a path that begins with `file:` is a path.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Computes the sums that are due.
fn sum_up(connection: &Connection) -> Result<(), Failure> {
    at_once(rollup::bring_up_to_date(connection))
}

impl AccountingStore for Sqlite {
    fn epoch(&self) -> StoreFuture<'_, u64> {
        self.reader
            .read(|connection| at_once(keys::epoch(connection)))
    }

    fn keys(&self) -> StoreFuture<'_, LiveKeys> {
        self.reader
            .read(|connection| at_once(keys::live_keys(connection)))
    }

    fn list_keys(&self, revoked: bool) -> StoreFuture<'_, Vec<StoredKey>> {
        self.reader
            .read(move |connection| at_once(keys::list(connection, revoked)))
    }

    fn key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<StoredKey>> {
        let id = id.to_owned();
        self.reader
            .read(move |connection| at_once(keys::find(connection, &id)))
    }

    fn create_key(&self, new: NewKey, by: By) -> StoreFuture<'_, StoredKey> {
        self.writer
            .write_synced(move |connection| at_once(keys::create(connection, &new, &by)))
    }

    fn change_key<'a>(
        &'a self,
        id: &'a str,
        change: KeyChange,
        by: By,
    ) -> StoreFuture<'a, StoredKey> {
        let id = id.to_owned();
        self.writer
            .write_synced(move |connection| at_once(keys::change(connection, &id, &change, &by)))
    }

    fn rotate_key<'a>(
        &'a self,
        id: &'a str,
        hash: KeyHash,
        old_until: i64,
        by: By,
    ) -> StoreFuture<'a, StoredKey> {
        let id = id.to_owned();
        self.writer.write_synced(move |connection| {
            at_once(keys::rotate(connection, &id, hash, old_until, &by))
        })
    }

    fn revoke_key<'a>(
        &'a self,
        id: &'a str,
        ends_streams: bool,
        by: By,
    ) -> StoreFuture<'a, StoredKey> {
        let id = id.to_owned();
        self.writer.write_synced(move |connection| {
            at_once(keys::revoke(connection, &id, ends_streams, &by))
        })
    }

    fn append(&self, batch: Batch) -> StoreFuture<'_, ()> {
        let entries = batch.entries.len();
        self.writer.write(entries, move |connection| {
            at_once(usage::append(connection, &batch))
        })
    }

    fn shipped<'a>(&'a self, run: &'a str) -> StoreFuture<'a, u64> {
        let run = run.to_owned();
        self.reader
            .read(move |connection| at_once(usage::shipped(connection, &run)))
    }

    fn sync(&self) -> StoreFuture<'_, ()> {
        self.writer.write_synced(schema::touch)
    }

    fn abandon<'a>(&'a self, run: &'a str) -> StoreFuture<'a, u64> {
        let run = run.to_owned();
        self.writer
            .write_synced(move |connection| at_once(usage::abandon(connection, &run)))
    }

    fn usage(&self, query: UsageQuery) -> StoreFuture<'_, Vec<UsageSum>> {
        Box::pin(async move {
            self.writer.write(0, sum_up).await?;
            self.reader
                .read(move |connection| at_once(sums::usage(connection, &query)))
                .await
        })
    }

    fn request<'a>(&'a self, request_id: &'a str) -> StoreFuture<'a, Option<UsageRow>> {
        let request_id = request_id.to_owned();
        self.reader
            .read(move |connection| at_once(rows::find(connection, &request_id)))
    }

    fn rows(&self, query: RowQuery) -> StoreFuture<'_, Vec<UsageRow>> {
        self.reader
            .read(move |connection| at_once(rows::page(connection, &query)))
    }

    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditEntry>> {
        self.reader
            .read(move |connection| at_once(audit::page(connection, &query)))
    }

    fn retain(&self, before_ms: i64) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            // An hour at a time, so that other writes need not wait for all of them.
            let mut deleted = 0_u64;
            while let Some(rows) = self
                .writer
                .write(0, move |connection| {
                    at_once(rollup::fold_an_hour(connection, before_ms))
                })
                .await?
            {
                deleted = deleted.saturating_add(rows);
            }
            Ok(deleted)
        })
    }
}
