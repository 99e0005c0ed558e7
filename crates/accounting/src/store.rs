//! The interface of a store, and its errors.

use std::pin::Pin;

use auth::KeyHash;
use thiserror::Error;

use crate::audit::{AuditEntry, AuditQuery};
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

    /// Revokes a key for good and returns it. `ends_streams` states whether its running streams are
    /// to be ended.
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

    /// Returns the row of one request, or `None` if there is none.
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

/// The reason why an operation of a store has failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached or is not able to do the operation now: it is busy, gone, full
    /// or read-only. The same operation may succeed later.
    #[error("the accounting store {store} is not available: {reason}")]
    Unreachable {
        /// The file or address of the store, without credentials.
        store: String,
        /// The report of the store or the system.
        reason: String,
    },
    /// The store has refused the operation, as it would refuse others: its tables are not as they
    /// should be, or this gateway has no right to use it. Repeating it does not help until an
    /// operator has mended that.
    #[error("the accounting store {store} refuses the operation: {reason}")]
    Refused {
        /// The file or address of the store, without credentials.
        store: String,
        /// The reason, with what was found and what is accepted.
        reason: String,
    },
    /// The store cannot hold the data of the operation. Repeating it does not help, but the store
    /// takes other data.
    #[error("the accounting store {store} cannot hold the data: {reason}")]
    Unfit {
        /// The file or address of the store, without credentials.
        store: String,
        /// The report of the store.
        reason: String,
    },
    /// A property of a key is not valid. `Display` states what was found and what is accepted.
    #[error("the key cannot be stored: {0}")]
    Invalid(String),
    /// There is no key with this id, or it is revoked.
    #[error("the key {0:?} is unknown or revoked: expected the id of a key that is in use")]
    UnknownKey(String),
    /// A key that is not revoked has this name.
    #[error("the name {0:?} is in use: expected a name that no other key has")]
    NameTaken(String),
    /// A key already has this hash.
    #[error("the hash belongs to another key: expected a newly generated key")]
    HashTaken,
}

impl StoreError {
    /// Returns true if the same operation may succeed later.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Returns true if the store refuses this data, and not the gateway or every operation.
    #[must_use]
    pub const fn is_unfit(&self) -> bool {
        matches!(self, Self::Unfit { .. })
    }
}
