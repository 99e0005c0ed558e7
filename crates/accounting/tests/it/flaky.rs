//! A store that can be away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use auth::KeyHash;
use sluicegate_accounting::{
    AccountingStore, AuditEntry, AuditQuery, Batch, By, Entry, KeyChange, LiveKeys, NewKey,
    RowQuery, Sqlite, StoreError, StoreFuture, StoredKey, UsageQuery, UsageRow, UsageSum,
};

/// A store that answers only while it is not away.
pub(crate) struct Flaky {
    pub(crate) store: Sqlite,
    pub(crate) is_away: AtomicBool,
    /// The number of appends that are stored and yet reported as failed.
    pub(crate) lost_answers: AtomicU64,
    /// The error of appends that have an entry of this request.
    pub(crate) refused: Mutex<Option<(&'static str, StoreError)>>,
    /// The writes of journals that were asked for, in their order.
    pub(crate) writes: Mutex<Vec<&'static str>>,
}

impl Flaky {
    pub(crate) fn new(store: Sqlite) -> Arc<Self> {
        Arc::new(Self {
            store,
            is_away: AtomicBool::new(false),
            lost_answers: AtomicU64::new(0),
            refused: Mutex::default(),
            writes: Mutex::default(),
        })
    }

    pub(crate) fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    fn note(&self, write: &'static str) {
        self.writes.lock().unwrap().push(write);
    }

    fn ask<'a, T: Send + 'a>(&self, answer: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(away()) }),
            false => answer,
        }
    }
}

fn id(entry: &Entry) -> &str {
    match entry {
        Entry::Opened(entry) => &entry.request_id,
        Entry::Closed(entry) => &entry.request_id,
    }
}

fn away() -> StoreError {
    StoreError::Unreachable {
        store: "test".to_owned(),
        reason: "away".to_owned(),
    }
}

impl AccountingStore for Flaky {
    fn epoch(&self) -> StoreFuture<'_, u64> {
        self.ask(self.store.epoch())
    }
    fn keys(&self) -> StoreFuture<'_, LiveKeys> {
        self.ask(self.store.keys())
    }
    fn list_keys(&self, revoked: bool) -> StoreFuture<'_, Vec<StoredKey>> {
        self.ask(self.store.list_keys(revoked))
    }
    fn key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<StoredKey>> {
        self.ask(self.store.key(id))
    }
    fn create_key(&self, new: NewKey, by: By) -> StoreFuture<'_, StoredKey> {
        self.ask(self.store.create_key(new, by))
    }
    fn change_key<'a>(
        &'a self,
        id: &'a str,
        change: KeyChange,
        by: By,
    ) -> StoreFuture<'a, StoredKey> {
        self.ask(self.store.change_key(id, change, by))
    }
    fn rotate_key<'a>(
        &'a self,
        id: &'a str,
        hash: KeyHash,
        old_until: i64,
        by: By,
    ) -> StoreFuture<'a, StoredKey> {
        self.ask(self.store.rotate_key(id, hash, old_until, by))
    }
    fn revoke_key<'a>(
        &'a self,
        id: &'a str,
        ends_streams: bool,
        by: By,
    ) -> StoreFuture<'a, StoredKey> {
        self.ask(self.store.revoke_key(id, ends_streams, by))
    }
    fn append(&self, batch: Batch) -> StoreFuture<'_, ()> {
        if self.is_away.load(Ordering::SeqCst) {
            return Box::pin(async { Err(away()) });
        }
        if let Some((request, error)) = &*self.refused.lock().unwrap()
            && batch.entries.iter().any(|entry| id(entry) == *request)
        {
            let error = error.clone();
            return Box::pin(async { Err(error) });
        }
        self.note("append");
        Box::pin(async move {
            self.store.append(batch).await?;
            let is_lost = |left: u64| left.checked_sub(1);
            match self
                .lost_answers
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_lost)
            {
                Ok(_) => Err(away()),
                Err(_) => Ok(()),
            }
        })
    }
    fn shipped<'a>(&'a self, run: &'a str) -> StoreFuture<'a, u64> {
        self.ask(self.store.shipped(run))
    }
    fn sync(&self) -> StoreFuture<'_, ()> {
        self.note("sync");
        self.ask(self.store.sync())
    }
    fn abandon<'a>(&'a self, run: &'a str) -> StoreFuture<'a, u64> {
        if self.is_away.load(Ordering::SeqCst) {
            return Box::pin(async { Err(away()) });
        }
        self.note("abandon");
        self.store.abandon(run)
    }
    fn usage(&self, query: UsageQuery) -> StoreFuture<'_, Vec<UsageSum>> {
        self.ask(self.store.usage(query))
    }
    fn request<'a>(&'a self, request_id: &'a str) -> StoreFuture<'a, Option<UsageRow>> {
        self.ask(self.store.request(request_id))
    }
    fn rows(&self, query: RowQuery) -> StoreFuture<'_, Vec<UsageRow>> {
        self.ask(self.store.rows(query))
    }
    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditEntry>> {
        self.ask(self.store.audit(query))
    }
    fn retain(&self, before_ms: i64) -> StoreFuture<'_, u64> {
        self.ask(self.store.retain(before_ms))
    }
}
