//! The interface of a store.

use std::pin::Pin;

use auth::KeyHash;

use crate::audit::{AuditEntry, AuditQuery};
use crate::error::StoreError;
use crate::key::{By, KeyChange, LiveKeys, NewKey, StoredKey};
use crate::query::{RowQuery, UsageQuery, UsageSum};
use crate::usage::{Batch, UsageRow};

/// The future of an operation of a store.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A store of keys, usage and audit entries, which several gateways may share.
///
/// Every operation is atomic. Writes to keys survive a power cut once they have returned; entries of
/// usage do so after [`sync`](Self::sync). An operation whose future is dropped may still take
/// effect.
///
/// Every operation returns [`StoreError::Unreachable`] if the store cannot do it now but may later.
pub trait AccountingStore: Send + Sync {
    /// Returns the epoch of the keys: a number that every write to a key increases. Cheap enough to
    /// be asked every second.
    fn epoch(&self) -> StoreFuture<'_, u64>;

    /// Returns all keys that are not revoked, expired ones included, with the epoch to which they
    /// belong.
    fn keys(&self) -> StoreFuture<'_, LiveKeys>;

    /// Returns the keys in the order of their creation, with revoked ones if `revoked` is true.
    fn list_keys(&self, revoked: bool) -> StoreFuture<'_, Vec<StoredKey>>;

    /// Returns the key with this id, or `None` if there never was one. It may be revoked.
    fn key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<StoredKey>>;

    /// Creates a key and returns it with its new id.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if a property is not valid,
    /// [`StoreError::NameTaken`] if a key that is not revoked has the name,
    /// [`StoreError::HashTaken`] if any key has or had the hash.
    fn create_key(&self, new: NewKey, by: By) -> StoreFuture<'_, StoredKey>;

    /// Changes the given properties of a key and returns the changed key.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if a property is not valid,
    /// [`StoreError::UnknownKey`] if there is no such key or it is revoked,
    /// [`StoreError::NameTaken`] if another key that is not revoked has the new name.
    fn change_key<'a>(
        &'a self,
        id: &'a str,
        change: KeyChange,
        by: By,
    ) -> StoreFuture<'a, StoredKey>;

    /// Gives a key a new hash and returns the changed key. Its other hashes are valid until
    /// `old_until`, in Unix seconds, or until their own end if that is earlier; those that are over
    /// by `by.at` are deleted.
    ///
    /// # Errors
    /// [`StoreError::UnknownKey`] if there is no such key or it is revoked,
    /// [`StoreError::HashTaken`] if any key has the hash.
    fn rotate_key<'a>(
        &'a self,
        id: &'a str,
        hash: KeyHash,
        old_until: i64,
        by: By,
    ) -> StoreFuture<'a, StoredKey>;

    /// Revokes a key permanently and returns it. `ends_streams` states whether its running streams
    /// are to be ended.
    ///
    /// # Errors
    /// [`StoreError::UnknownKey`] if there is no such key or it is already revoked.
    fn revoke_key<'a>(
        &'a self,
        id: &'a str,
        ends_streams: bool,
        by: By,
    ) -> StoreFuture<'a, StoredKey>;

    /// Stores entries of usage, each exactly once by its request id, and in the same transaction the
    /// position in the journal up to which they have been shipped. Repeated entries change nothing.
    fn append(&self, batch: Batch) -> StoreFuture<'_, ()>;

    /// Returns the position up to which the journal of `run` has been shipped; 0 if nothing has.
    fn shipped<'a>(&'a self, run: &'a str) -> StoreFuture<'a, u64>;

    /// Returns once everything that was stored before would survive a power cut.
    fn sync(&self) -> StoreFuture<'_, ()>;

    /// Marks the open requests of a run that has ended as abandoned, forgets the run's shipped
    /// position and returns the number of abandoned requests.
    fn abandon<'a>(&'a self, run: &'a str) -> StoreFuture<'a, u64>;

    /// Returns the sums of usage that `query` asks for, in order of time, key and model. They
    /// include everything that was stored before.
    fn usage(&self, query: UsageQuery) -> StoreFuture<'_, Vec<UsageSum>>;

    /// Returns the row of one request, or `None` if the store has no row for it.
    fn request<'a>(&'a self, request_id: &'a str) -> StoreFuture<'a, Option<UsageRow>>;

    /// Returns one page of rows in order of time and request id.
    fn rows(&self, query: RowQuery) -> StoreFuture<'_, Vec<UsageRow>>;

    /// Returns one page of audit entries, the newest first.
    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditEntry>>;

    /// Deletes the rows of requests that have ended and began before `before_ms`, rounded down to a
    /// whole hour, and their sums by the minute. The sums by hour and day remain. Returns the number
    /// of deleted rows.
    fn retain(&self, before_ms: i64) -> StoreFuture<'_, u64>;
}
