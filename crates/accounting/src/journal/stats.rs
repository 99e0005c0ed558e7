//! The counters of a journal.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The counters of a journal since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalStats {
    /// Entries given to [`Journal::opened`](crate::Journal::opened) and written.
    pub opened: u64,
    /// Entries given to [`Journal::closed`](crate::Journal::closed).
    pub closed: u64,
    /// Ends of requests that found the queue full.
    pub queue_full: u64,
    /// Ends of requests that cannot be stored, because their record is longer than 64 KiB. Their
    /// requests become abandoned.
    pub too_long: u64,
    /// Bytes written to the files of this run.
    pub written: u64,
    /// Bytes of this run that the store has.
    pub shipped: u64,
    /// Failed writes to the files.
    pub write_failures: u64,
    /// True if the last write to the files has failed, so that no entry can be stored.
    pub is_unwritable: bool,
    /// Failed attempts to bring the files to the disk.
    pub sync_failures: u64,
    /// Failed operations of the store. They are repeated until they succeed.
    pub store_failures: u64,
    /// True if the last operation of the store has failed.
    pub store_is_away: bool,
    /// Entries that the store will never take, which were set aside in a file.
    pub refused: u64,
    /// The reason for the last of them.
    pub last_refusal: Option<String>,
    /// Failed attempts to read or remove files of the journal.
    pub read_failures: u64,
    /// Earlier runs whose entries were sent to the store.
    pub adopted: u64,
    /// Requests of earlier runs that became abandoned.
    pub abandoned: u64,
    /// Damaged lines. Each line was an entry that is lost.
    pub corrupt: u64,
    /// Bytes of unfinished records that earlier runs were writing when they ended.
    pub torn_bytes: u64,
    /// Bytes that the store does not have and whose files are gone.
    pub missing_bytes: u64,
    /// The last failure of a file or of the store.
    pub last_failure: Option<String>,
}

/// The same, while it is being counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) opened: AtomicU64,
    pub(super) closed: AtomicU64,
    pub(super) queue_full: AtomicU64,
    pub(super) too_long: AtomicU64,
    pub(super) shipped: AtomicU64,
    pub(super) write_failures: AtomicU64,
    pub(super) is_unwritable: AtomicBool,
    pub(super) sync_failures: AtomicU64,
    pub(super) store_failures: AtomicU64,
    pub(super) store_is_away: AtomicBool,
    pub(super) read_failures: AtomicU64,
    refused: AtomicU64,
    pub(super) adopted: AtomicU64,
    pub(super) abandoned: AtomicU64,
    pub(super) corrupt: AtomicU64,
    pub(super) torn_bytes: AtomicU64,
    pub(super) missing_bytes: AtomicU64,
    last_failure: Mutex<Option<String>>,
    last_refusal: Mutex<Option<String>>,
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Counters {
    /// Counts a failure and remembers it.
    pub(super) fn fail(&self, counter: &AtomicU64, failure: &dyn Display) {
        add(counter, 1);
        *locked(&self.last_failure) = Some(failure.to_string());
    }

    /// Counts entries that were set aside, and remembers why.
    pub(super) fn refuse(&self, entries: u64, reason: &str) {
        add(&self.refused, entries);
        *locked(&self.last_refusal) = Some(reason.to_owned());
    }

    pub(super) fn snapshot(&self, written: u64) -> JournalStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        JournalStats {
            opened: get(&self.opened),
            closed: get(&self.closed),
            queue_full: get(&self.queue_full),
            too_long: get(&self.too_long),
            written,
            shipped: get(&self.shipped),
            write_failures: get(&self.write_failures),
            is_unwritable: self.is_unwritable.load(Ordering::Relaxed),
            sync_failures: get(&self.sync_failures),
            store_failures: get(&self.store_failures),
            store_is_away: self.store_is_away.load(Ordering::Relaxed),
            refused: get(&self.refused),
            last_refusal: locked(&self.last_refusal).clone(),
            read_failures: get(&self.read_failures),
            adopted: get(&self.adopted),
            abandoned: get(&self.abandoned),
            corrupt: get(&self.corrupt),
            torn_bytes: get(&self.torn_bytes),
            missing_bytes: get(&self.missing_bytes),
            last_failure: locked(&self.last_failure).clone(),
        }
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
