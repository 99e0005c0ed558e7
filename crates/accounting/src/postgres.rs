//! The store in PostgreSQL, which the gateways of several machines share.

mod address;
mod link;
mod plain;
mod schema;
mod session;
mod tls;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use auth::KeyHash;

use crate::audit::{AuditEntry, AuditQuery};
use crate::error::StoreError;
use crate::key::{By, KeyChange, LiveKeys, NewKey, StoredKey};
use crate::query::{RowQuery, UsageQuery, UsageSum};
use crate::sql::{Failure, audit, keys, rollup, rows, sums, usage};
use crate::store::{AccountingStore, StoreFuture};
use crate::usage::{Batch, UsageRow};
pub use address::{PostgresAddress, PostgresAddressError};
use link::{Link, transact};

/// A store in a schema of a PostgreSQL database of version 15 or newer.
///
/// It has one connection for writes and one for reads, which are opened again when they break. Every
/// operation fails if it takes longer than 30 seconds.
pub struct Postgres {
    writer: Link,
    reader: Link,
    next_upkeep: Mutex<Instant>,
}

/// The time between two rounds of upkeep.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(10);

impl Postgres {
    /// Connects to the database at `address`, and brings the tables in `schema` up to date; the
    /// schema is created if needed.
    ///
    /// # Errors
    /// Returns [`StoreError::Unreachable`] if the server does not answer, and
    /// [`StoreError::Refused`] if it lets nobody in with this address, if the name of the schema or
    /// the file with the CAs is invalid, or if the tables are of a version that is too new.
    pub async fn connect(address: &PostgresAddress, schema: &str) -> Result<Self, StoreError> {
        let store = Self::new(address, schema)?;
        store.prepare().await?;
        Ok(store)
    }

    /// As [`connect`](Self::connect), but changes nothing: returns `None` if the schema does not
    /// have the tables yet.
    ///
    /// # Errors
    /// Returns the same errors as [`connect`](Self::connect).
    pub async fn connect_to_existing(
        address: &PostgresAddress,
        schema: &str,
    ) -> Result<Option<Self>, StoreError> {
        let store = Self::new(address, schema)?;
        let has_tables = store.has_tables().await?;
        if has_tables {
            store.prepare().await?;
        }
        Ok(has_tables.then_some(store))
    }

    fn new(address: &PostgresAddress, schema: &str) -> Result<Self, StoreError> {
        let refused = |reason: String| StoreError::Refused {
            store: address.to_string(),
            reason,
        };
        let is_name = |name: &str| {
            let is_plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            (1..=63).contains(&name.len()) && name.bytes().all(is_plain)
        };
        if !is_name(schema) {
            return Err(refused(format!(
                "the schema is named {schema:?}: expected 1 to 63 of 'a' to 'z', '0' to '9' and '_'"
            )));
        }
        let tls = tls::connector(&address.trust).map_err(refused)?;
        Ok(Self {
            writer: Link::new(address, tls.clone(), schema),
            reader: Link::new(address, tls, schema),
            next_upkeep: Mutex::new(now()),
        })
    }

    fn prepare(&self) -> StoreFuture<'_, ()> {
        transact!(self.writer, tx => schema::prepare(&tx, self.writer.schema()))
    }

    fn has_tables(&self) -> StoreFuture<'_, bool> {
        transact!(self.writer, tx => schema::exists(&tx, self.writer.schema()))
    }

    /// Computes the sums that are due, if that was not done for a while.
    async fn keep_up(&self) {
        let is_due = {
            let mut next = self
                .next_upkeep
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let is_due = now() >= *next;
            if is_due {
                *next = now() + UPKEEP_INTERVAL;
            }
            is_due
        };
        if is_due {
            // A failure is no matter: the query that needs the sums tries again and reports it.
            let _ = self.sum_up().await;
        }
    }

    fn sum_up(&self) -> StoreFuture<'_, ()> {
        transact!(self.writer, tx => rollup::bring_up_to_date(&tx))
    }

    fn fold_an_hour(&self, before_ms: i64) -> StoreFuture<'_, Option<u64>> {
        transact!(self.writer, tx => rollup::fold_an_hour(&tx, before_ms))
    }

    fn read_sums(&self, query: UsageQuery) -> StoreFuture<'_, Vec<UsageSum>> {
        transact!(self.reader, tx => sums::usage(&tx, &query))
    }

    fn append_batch(&self, batch: Batch) -> StoreFuture<'_, ()> {
        transact!(self.writer, tx => usage::append(&tx, &batch))
    }
}

#[allow(clippy::disallowed_methods, reason = "row 4 may read the clock")]
fn now() -> Instant {
    Instant::now()
}

impl AccountingStore for Postgres {
    fn epoch(&self) -> StoreFuture<'_, u64> {
        transact!(self.reader, tx => keys::epoch(&tx))
    }

    fn keys(&self) -> StoreFuture<'_, LiveKeys> {
        transact!(self.reader, tx => keys::live_keys(&tx))
    }

    fn list_keys(&self, revoked: bool) -> StoreFuture<'_, Vec<StoredKey>> {
        transact!(self.reader, tx => keys::list(&tx, revoked))
    }

    fn key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<StoredKey>> {
        transact!(self.reader, tx => keys::find(&tx, id))
    }

    fn create_key(&self, new: NewKey, by: By) -> StoreFuture<'_, StoredKey> {
        transact!(self.writer, tx => keys::create(&tx, &new, &by))
    }

    fn change_key<'a>(
        &'a self,
        id: &'a str,
        change: KeyChange,
        by: By,
    ) -> StoreFuture<'a, StoredKey> {
        transact!(self.writer, tx => keys::change(&tx, id, &change, &by))
    }

    fn rotate_key<'a>(
        &'a self,
        id: &'a str,
        hash: KeyHash,
        old_until: i64,
        by: By,
    ) -> StoreFuture<'a, StoredKey> {
        transact!(self.writer, tx => keys::rotate(&tx, id, hash, old_until, &by))
    }

    fn revoke_key<'a>(
        &'a self,
        id: &'a str,
        ends_streams: bool,
        by: By,
    ) -> StoreFuture<'a, StoredKey> {
        transact!(self.writer, tx => keys::revoke(&tx, id, ends_streams, &by))
    }

    fn append(&self, batch: Batch) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.append_batch(batch).await?;
            self.keep_up().await;
            Ok(())
        })
    }

    fn shipped<'a>(&'a self, run: &'a str) -> StoreFuture<'a, u64> {
        transact!(self.reader, tx => usage::shipped(&tx, run))
    }

    fn sync(&self) -> StoreFuture<'_, ()> {
        // Each commit has waited for the disk of the server.
        Box::pin(async { Ok(()) })
    }

    fn abandon<'a>(&'a self, run: &'a str) -> StoreFuture<'a, u64> {
        transact!(self.writer, tx => usage::abandon(&tx, run))
    }

    fn usage(&self, query: UsageQuery) -> StoreFuture<'_, Vec<UsageSum>> {
        Box::pin(async move {
            self.sum_up().await?;
            self.read_sums(query).await
        })
    }

    fn request<'a>(&'a self, request_id: &'a str) -> StoreFuture<'a, Option<UsageRow>> {
        transact!(self.reader, tx => rows::find(&tx, request_id))
    }

    fn rows(&self, query: RowQuery) -> StoreFuture<'_, Vec<UsageRow>> {
        transact!(self.reader, tx => rows::page(&tx, &query))
    }

    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditEntry>> {
        transact!(self.reader, tx => audit::page(&tx, &query))
    }

    fn retain(&self, before_ms: i64) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let mut deleted = 0_u64;
            while let Some(rows) = self.fold_an_hour(before_ms).await? {
                deleted = deleted.saturating_add(rows);
            }
            Ok(deleted)
        })
    }
}
