//! The threads that own the connections: one that writes and one that reads.

use std::io;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::jobs::{Job, Thread};
use crate::error::StoreError;
use crate::sql::Failure;
use crate::store::StoreFuture;

/// The largest number of entries that one transaction stores, unless a single write has more.
const MAX_ENTRIES: usize = 1000;

/// The time after which a transaction takes no further writes.
const MAX_TIME: Duration = Duration::from_millis(10);

/// The time between two rounds of upkeep.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(10);

/// The thread that writes.
pub(super) struct Writer(Thread<Write>);

/// The thread that reads.
pub(super) struct Reader(Thread<Box<dyn Job>>);

/// A write that waits for its transaction.
struct Write {
    job: Box<dyn Job>,
    entries: usize,
    /// True if the write must have reached the disk when it is answered. It gets a transaction of its
    /// own.
    is_synced: bool,
}

impl Writer {
    /// Starts the thread. It runs `upkeep` between transactions from time to time.
    pub(super) fn start(
        connection: Connection,
        store: &str,
        upkeep: fn(&Connection) -> Result<(), Failure>,
    ) -> io::Result<Self> {
        let name = store.to_owned();
        Thread::start("accounting-write", store, move |writes| {
            let mut waiting = None;
            let mut next_upkeep = now() + UPKEEP_INTERVAL;
            while let Some(first) = waiting.take().or_else(|| writes.recv().ok()) {
                waiting = transact(&connection, first, &writes, &name);
                if now() >= next_upkeep {
                    keep_up(&connection, upkeep);
                    next_upkeep = now() + UPKEEP_INTERVAL;
                }
            }
        })
        .map(Self)
    }

    /// Runs `work`, which stores this many entries, in a transaction. If `work` fails, nothing of it
    /// remains.
    pub(super) fn write<T: Send + 'static>(
        &self,
        entries: usize,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        self.0.ask(work, |job| Write {
            job,
            entries,
            is_synced: false,
        })
    }

    /// Runs `work` in a transaction of its own, which is on the disk when the future returns, with
    /// all transactions before it.
    pub(super) fn write_synced<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        self.0.ask(work, |job| Write {
            job,
            entries: 0,
            is_synced: true,
        })
    }
}

impl Reader {
    pub(super) fn start(connection: Connection, store: &str) -> io::Result<Self> {
        let name = store.to_owned();
        Thread::start(
            "accounting-read",
            store,
            move |jobs: Receiver<Box<dyn Job>>| {
                for mut job in jobs {
                    // Everything that one job reads is of the same moment.
                    let done = match connection.unchecked_transaction() {
                        Ok(_transaction) => job.run(&connection),
                        Err(error) => Err(error.into()),
                    };
                    job.answer(done.map_err(|failure| failure.at(&name)));
                }
            },
        )
        .map(Self)
    }

    /// Runs `work` in a transaction that only reads.
    pub(super) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        self.0.ask(work, |job| job)
    }
}

/// Runs `first`, and what waits behind it, in one transaction and answers all of it. Returns a write
/// that has to begin the next transaction.
fn transact(
    connection: &Connection,
    first: Write,
    writes: &Receiver<Write>,
    store: &str,
) -> Option<Write> {
    let (answers, next) = match begin(connection, first.is_synced) {
        Ok(()) => run_waiting(connection, first, writes, store),
        Err(error) => (vec![(first.job, Err(Failure::from(error).at(store)))], None),
    };
    let committed = match connection.is_autocommit() {
        // SQLite has rolled the transaction back by itself, after an error that is in the answers.
        true => answers.iter().find_map(|(_, done)| done.clone().err()),
        false => connection.execute_batch("COMMIT").err().map(|error| {
            let _ = connection.execute_batch("ROLLBACK");
            Failure::from(error).at(store)
        }),
    };
    for (job, done) in answers {
        let all = committed.clone().map_or(Ok(()), Err);
        job.answer(done.and(all));
    }
    next
}

/// Runs `upkeep` in a transaction. A failure is no matter: the work remains due, and the query that
/// needs it does it again and reports what is wrong.
fn keep_up(connection: &Connection, upkeep: fn(&Connection) -> Result<(), Failure>) {
    if begin(connection, false).is_ok() {
        let end = if upkeep(connection).is_ok() {
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        if connection.execute_batch(end).is_err() && !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK");
        }
    }
}

fn begin(connection: &Connection, is_synced: bool) -> rusqlite::Result<()> {
    // In WAL mode, FULL syncs the log at each commit, NORMAL only before it is copied to the file.
    let level = if is_synced { "FULL" } else { "NORMAL" };
    connection.pragma_update(None, "synchronous", level)?;
    connection.execute_batch("BEGIN IMMEDIATE")
}

/// A job that has run, with its success.
type Done = (Box<dyn Job>, Result<(), StoreError>);

fn run_waiting(
    connection: &Connection,
    first: Write,
    writes: &Receiver<Write>,
    store: &str,
) -> (Vec<Done>, Option<Write>) {
    let deadline = now() + MAX_TIME;
    let is_alone = first.is_synced;
    let mut entries = 0_usize;
    let mut answers = Vec::new();
    let mut next = Some(first);
    while let Some(mut write) = next.take() {
        entries = entries.saturating_add(write.entries);
        let done = run_within(connection, write.job.as_mut()).map_err(|failure| failure.at(store));
        answers.push((write.job, done));
        if is_alone || connection.is_autocommit() || now() >= deadline {
            break;
        }
        next = writes.try_recv().ok();
        let fits = |write: &Write| {
            !write.is_synced && entries.saturating_add(write.entries) <= MAX_ENTRIES
        };
        if !next.as_ref().is_none_or(fits) {
            break;
        }
    }
    (answers, next)
}

/// Runs a job within the open transaction; if it fails, only the job is rolled back.
fn run_within(connection: &Connection, job: &mut dyn Job) -> Result<(), Failure> {
    connection.execute_batch("SAVEPOINT job")?;
    let done = job.run(connection);
    if done.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK TO job")?;
    }
    if !connection.is_autocommit() {
        connection.execute_batch("RELEASE job")?;
    }
    done
}

#[allow(clippy::disallowed_methods, reason = "row 4 may read the clock")]
fn now() -> Instant {
    Instant::now()
}
