//! The journal of one process, which keeps entries of usage until the store has them.

mod log;
mod refused;
mod run;
mod shipper;
mod stats;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::store::AccountingStore;
use crate::usage::{Closed, Opened};
use log::Log;
use run::LockedRun;
use shipper::{Progress, Shipper};
use writer::Writer;

pub use stats::JournalStats;

/// The journal of one run of a gateway: files in which entries of usage wait for the store.
///
/// An entry survives the end of the process as soon as it is in a file, and a power cut once the file
/// has reached the disk. A task sends the entries to the store in their order, as long as it takes.
/// An entry that the store will never take, whatever it is, is set aside in a file, with the reason.
/// The entries that a process leaves behind are sent by the next one that opens a journal in the
/// same folder; the requests that were open when it ended become abandoned.
///
/// Dropping the journal writes queued entries to its file and stops sending.
///
/// ```
/// # use std::sync::Arc;
/// # use sluicegate_accounting::{AccountingStore, Closed, Journal, JournalOptions, Opened};
/// # use sluicegate_accounting::{Sqlite, State};
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let folder = tempfile::tempdir()?;
///     let store = Arc::new(Sqlite::open(folder.path().join("accounting.db"))?);
///     let options = JournalOptions::new(folder.path().join("journal"));
///     let journal = Journal::open(&options, store.clone())?;
///     let (request_id, run) = ("req_1".to_owned(), journal.run().to_owned());
///     journal.opened(&Opened { request_id: request_id.clone(), run, ..Opened::default() })?;
///     journal.closed(Closed { request_id, ..Closed::default() });
///     journal.shipped().await;
///     let row = store.request("req_1").await?;
///     assert_eq!(row.map(|row| row.state), Some(State::Closed));
///     Ok(())
/// }
/// ```
pub struct Journal {
    log: Arc<Log>,
    writer: Writer,
    progress: watch::Receiver<Progress>,
    stop: watch::Sender<bool>,
    task: AbortHandle,
    /// Behind `writer`, which must have ended before the lock is released.
    locked: LockedRun,
}

/// The settings of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalOptions {
    /// The folder of the journals of all runs on this machine. It is created if needed.
    pub folder: PathBuf,
    /// The point at which [`Journal::opened`] returns.
    pub sync: JournalSync,
    /// The length in bytes after which a new file is begun.
    pub segment_bytes: u64,
}

/// The point at which [`Journal::opened`] returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalSync {
    /// The entry is in its file, where it survives the end of the process. A power cut may lose the
    /// entries of the last 50 ms.
    #[default]
    Relaxed,
    /// The entry has reached the disk. The caller is blocked until then.
    Sync,
}

impl JournalOptions {
    /// Returns the default settings of a journal in `folder`.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            sync: JournalSync::default(),
            segment_bytes: 8 * 1024 * 1024,
        }
    }
}

impl Journal {
    /// Begins the journal of a new run, and the task that sends it to `store`, after the journals of
    /// runs that have ended. Has to be called within a tokio runtime.
    ///
    /// # Errors
    /// Returns an error if the folder or its files cannot be created or read, or if there is no
    /// runtime.
    pub fn open(options: &JournalOptions, store: Arc<dyn AccountingStore>) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let (locked, dead) = run::begin(&options.folder)?;
        let run = Arc::clone(&locked.run);
        let log = Arc::new(Log::create(
            &run.folder,
            options.segment_bytes,
            options.sync,
        )?);
        let writer = Writer::start(Arc::clone(&log))?;
        let (stop, stopped) = watch::channel(false);
        let (shipper, progress) = Shipper::new(store, Arc::clone(&log), stopped);
        let task = runtime.spawn(shipper.run(run, dead)).abort_handle();
        Ok(Self {
            log,
            writer,
            progress,
            stop,
            task,
            locked,
        })
    }

    /// Returns the id of this run, which its entries have to carry.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.locked.run.id
    }

    /// Writes the admission of a request to the file.
    ///
    /// # Errors
    /// Returns an error if it cannot be written; then the request must not be served. Also if the
    /// entry is of another run, or longer than 64 KiB.
    pub fn opened(&self, entry: &Opened) -> io::Result<()> {
        if entry.run != self.run() {
            let found = &entry.run;
            let message = format!("the entry is of run {found:?}: expected {:?}", self.run());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.log.write_opened(entry)?;
        self.writer.wake();
        Ok(())
    }

    /// Queues the end of a request for the file. If the queue is full, the entry is written at once;
    /// if that fails, it is kept in memory until the file can be written again.
    pub fn closed(&self, entry: Closed) {
        self.writer.closed(entry);
    }

    /// Tries again to write a journal that could not be written, so that
    /// [`JournalStats::is_unwritable`] does not wait for the next entry.
    pub fn probe(&self) {
        self.log.probe();
    }

    /// Returns the file for entries that the store will never take. It exists if there are some.
    #[must_use]
    pub fn refused_file(&self) -> PathBuf {
        refused::file(self.locked.run.all())
    }

    /// Returns the counters of the journal so far.
    #[must_use]
    pub fn stats(&self) -> JournalStats {
        self.log.stats.snapshot(self.log.position())
    }

    /// Returns once the store has all entries that were given to this journal before, and all
    /// entries of earlier runs. Waits as long as the store is away.
    pub async fn shipped(&self) {
        self.writer.flush().await;
        let end = self.log.position();
        let mut progress = self.progress.clone();
        let reached = |progress: &Progress| progress.has_adopted && progress.position >= end;
        // The sender lives as long as the task, which ends only after this journal.
        let _ = progress.wait_for(reached).await;
    }

    /// Ends the run: sends the remaining entries to the store, marks requests that are still open
    /// as abandoned and removes the files. Entries that come later cannot be written. Waits as long
    /// as the store is away; dropping the future leaves the rest to the next run.
    pub async fn finish(&self) {
        self.writer.flush().await;
        self.log.finish();
        self.shipped().await;
        self.stop.send_replace(true);
        let mut progress = self.progress.clone();
        // An error means that the task has ended.
        let _ = progress.wait_for(|progress| progress.is_finished).await;
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.task.abort();
    }
}
