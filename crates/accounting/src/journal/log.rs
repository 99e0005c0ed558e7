//! The files of this run, as those who write and those who read them share them.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::JournalSync;
use super::stats::{Counters, add};
use crate::record::{self, Borrowed};
use crate::segment::SegmentWriter;
use crate::usage::{Closed, Opened};

pub(super) struct Log {
    segments: Mutex<SegmentWriter>,
    /// The length of the journal. Changed under the lock only.
    position: AtomicU64,
    /// True if something was written since the last sync.
    is_unsynced: AtomicBool,
    /// True if admissions wait for the disk.
    is_synced: bool,
    /// Records of ends that could not be written.
    backlog: Mutex<Vec<u8>>,
    /// Wakes the task that reads what was written.
    pub(super) written: Notify,
    pub(super) stats: Counters,
}

impl Log {
    pub(super) fn create(folder: &Path, segment_bytes: u64, sync: JournalSync) -> io::Result<Self> {
        let is_synced = sync == JournalSync::Sync;
        Ok(Self {
            segments: Mutex::new(SegmentWriter::create(folder, segment_bytes, is_synced)?),
            position: AtomicU64::new(0),
            is_unsynced: AtomicBool::new(false),
            is_synced,
            backlog: Mutex::default(),
            written: Notify::new(),
            stats: Counters::default(),
        })
    }

    /// Returns the length of the journal.
    pub(super) fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    pub(super) fn write_opened(&self, entry: &Opened) -> io::Result<()> {
        let mut record = Vec::with_capacity(512);
        record::encode(Borrowed::Opened(entry), &mut record)?;
        let file = self.write(&record)?;
        if self.is_synced {
            file.sync_data()
                .inspect_err(|error| self.stats.fail(&self.stats.sync_failures, error))?;
        }
        add(&self.stats.opened, 1);
        Ok(())
    }

    /// Writes the end of a request, or keeps it if that fails.
    pub(super) fn write_closed(&self, entry: &Closed) {
        let mut record = Vec::new();
        self.encode_closed(entry, &mut record);
        if self.write(&record).is_err() {
            self.keep(record);
        }
    }

    /// Appends the record of an end to `out`.
    pub(super) fn encode_closed(&self, entry: &Closed, out: &mut Vec<u8>) {
        if let Err(error) = record::encode(Borrowed::Closed(entry), out) {
            self.stats.fail(&self.stats.too_long, &error);
        }
    }

    /// Writes whole records and returns the file that has them.
    pub(super) fn write(&self, records: &[u8]) -> io::Result<Arc<File>> {
        let mut segments = self.segments();
        let written = segments.write(records);
        let is_unwritable = &self.stats.is_unwritable;
        is_unwritable.store(written.is_err(), Ordering::Relaxed);
        if let Err(error) = written {
            self.stats.fail(&self.stats.write_failures, &error);
            return Err(error);
        }
        self.position.store(segments.position(), Ordering::Release);
        self.is_unsynced.store(true, Ordering::SeqCst);
        let file = segments.file();
        drop(segments);
        self.written.notify_one();
        Ok(file)
    }

    /// Finds out whether a journal that could not be written can be written again.
    pub(super) fn probe(&self) {
        if self.stats.is_unwritable.load(Ordering::Relaxed) {
            let written = self.segments().probe();
            let is_unwritable = &self.stats.is_unwritable;
            is_unwritable.store(written.is_err(), Ordering::Relaxed);
        }
    }

    /// Refuses all further writes.
    pub(super) fn finish(&self) {
        self.segments().finish();
    }

    pub(super) fn is_unsynced(&self) -> bool {
        self.is_unsynced.load(Ordering::SeqCst)
    }

    /// Brings everything that was written to the disk.
    pub(super) fn sync(&self) {
        // Before the files are taken: what is written from here on sets it again.
        self.is_unsynced.store(false, Ordering::SeqCst);
        let files = self.segments().take_unsynced();
        for file in files {
            if let Err(error) = file.sync_all() {
                self.stats.fail(&self.stats.sync_failures, &error);
            }
        }
    }

    /// Keeps records for the next attempt to write.
    pub(super) fn keep(&self, records: Vec<u8>) {
        self.backlog
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(&records);
    }

    /// Takes the records that are kept.
    pub(super) fn take_backlog(&self) -> Vec<u8> {
        let mut backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *backlog)
    }

    fn segments(&self) -> MutexGuard<'_, SegmentWriter> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_entries_are_unsynced_until_a_sync() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::create(folder.path(), 1_000, JournalSync::Relaxed).unwrap();
        assert!(!log.is_unsynced());
        log.write_closed(&Closed::default());
        assert!(log.is_unsynced());
        log.sync();
        assert!(!log.is_unsynced());
        assert_eq!(log.stats.snapshot(0).sync_failures, 0);
    }

    #[test]
    fn an_end_that_cannot_be_written_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        std::fs::create_dir(&run).unwrap();
        // Every record begins a new file.
        let log = Log::create(&run, 1, JournalSync::Relaxed).unwrap();
        let entry = Closed::default();
        log.write_closed(&entry);
        let written = log.position();
        assert!(written > 0);
        std::fs::rename(&run, folder.path().join("away")).unwrap();
        log.write_closed(&entry);
        assert_eq!(log.position(), written);
        assert_eq!(log.take_backlog().len() as u64, written);
        assert_eq!(log.take_backlog(), b"");
    }
}
