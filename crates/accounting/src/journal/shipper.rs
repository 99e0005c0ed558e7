//! The task that sends the entries of journals to the store.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::log::Log;
use super::refused::{self, Refused};
use super::run::{LockedRun, Run};
use super::stats::{Counters, add};
use crate::error::StoreError;
use crate::record::{self, MAX_RECORD, Records};
use crate::segment::{self, Part};
use crate::store::AccountingStore;
use crate::usage::{Batch, Entry, Shipped};

/// The largest number of entries that are sent at once.
const MAX_ENTRIES: usize = 1000;

/// The time for which new entries wait for more.
const DELAY: Duration = Duration::from_millis(10);

/// The first and the longest time between two attempts to reach the store or a file.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The progress of the task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// True once the journals of dead runs are dealt with.
    pub(super) has_adopted: bool,
    /// The position up to which the store has the journal of this run.
    pub(super) position: u64,
    /// True once the files of this run are removed.
    pub(super) is_finished: bool,
}

pub(super) struct Shipper {
    store: Arc<dyn AccountingStore>,
    log: Arc<Log>,
    progress: watch::Sender<Progress>,
    stopped: watch::Receiver<bool>,
}

impl Shipper {
    pub(super) fn new(
        store: Arc<dyn AccountingStore>,
        log: Arc<Log>,
        stopped: watch::Receiver<bool>,
    ) -> (Self, watch::Receiver<Progress>) {
        let (progress, receiver) = watch::channel(Progress::default());
        let shipper = Self {
            store,
            log,
            progress,
            stopped,
        };
        (shipper, receiver)
    }

    /// Sends the journals of dead runs, then the journal of this run until it is finished.
    pub(super) async fn run(mut self, own: Arc<Run>, dead: Vec<LockedRun>) {
        for dead in dead {
            self.adopt(&dead.run).await;
            add(&self.stats().adopted, 1);
        }
        self.progress
            .send_modify(|progress| progress.has_adopted = true);
        let mut position = 0;
        while !*self.stopped.borrow() {
            tokio::select! {
                () = self.log.written.notified() => sleep(DELAY).await,
                _ = self.stopped.changed() => {}
            }
            let end = self.log.position();
            while position < end {
                let Some(next) = self.ship_part(&own, position, end, false).await else {
                    add(&self.stats().missing_bytes, end - position);
                    position = end;
                    break;
                };
                position = next;
                self.report(position);
            }
            self.report(position);
        }
        self.end(&own).await;
        self.progress
            .send_modify(|progress| progress.is_finished = true);
    }

    /// Sends the remaining entries of a dead run, and removes the run.
    async fn adopt(&self, run: &Arc<Run>) {
        let mut position = self.insist(|| self.store.shipped(&run.id)).await;
        while let Some(next) = self.ship_part(run, position, u64::MAX, true).await {
            position = next;
        }
        let abandoned = self.end(run).await;
        add(&self.stats().abandoned, abandoned);
    }

    /// Ends a run whose entries the store has, and returns the number of its open requests.
    ///
    /// The files go before the shipped position, which abandoning forgets: otherwise a crash between
    /// the two would leave files that seem not to be shipped.
    async fn end(&self, run: &Arc<Run>) -> u64 {
        self.insist(|| self.store.sync()).await;
        self.on_files(run, |run| segment::remove_all(&run.folder))
            .await;
        let abandoned = self.insist(|| self.store.abandon(&run.id)).await;
        // Only an empty folder remains. If it cannot be removed now, the next process removes it.
        let folder = Arc::clone(run);
        if let Ok(Err(error)) = spawn_blocking(move || folder.remove()).await {
            self.stats().fail(&self.stats().read_failures, &error);
        }
        abandoned
    }

    /// Sends one part of a journal and returns the position behind it, or `None` at the end.
    async fn ship_part(
        &self,
        run: &Arc<Run>,
        position: u64,
        end: u64,
        is_dead: bool,
    ) -> Option<u64> {
        let part = self
            .on_files(run, move |run| segment::read(&run.folder, position, end))
            .await?;
        add(&self.stats().missing_bytes, part.start - position);
        let records = record::decode(&part.bytes);
        add(&self.stats().corrupt, records.corrupt);
        let behind = behind(&part, &records, is_dead);
        add(&self.stats().missing_bytes, behind.missing_bytes);
        add(&self.stats().corrupt, behind.corrupt);
        add(&self.stats().torn_bytes, behind.torn_bytes);
        let next = behind.position;
        self.append(run, part.start, records.entries, next).await;
        self.remove_shipped(run, next).await;
        Some(next)
    }

    /// Sends entries in batches. The last batch moves the shipped position to `end`.
    async fn append(&self, run: &Arc<Run>, start: u64, entries: Vec<(Entry, usize)>, end: u64) {
        let mut rest = entries.into_iter().peekable();
        loop {
            let batch: Vec<_> = rest.by_ref().take(MAX_ENTRIES).collect();
            let offset = match (rest.peek(), batch.last()) {
                (Some(_), Some((_, len))) => start + *len as u64,
                _ => end,
            };
            let batch = Batch {
                entries: batch.into_iter().map(|(entry, _)| entry).collect(),
                shipped: Some(Shipped {
                    run: run.id.clone(),
                    offset,
                }),
            };
            self.store_or_set_aside(run, batch).await;
            if rest.peek().is_none() {
                return;
            }
        }
    }

    /// Stores a batch. If some of its entries are such that the store will never take them, they are
    /// written to a file of their own, so that they do not hold up those behind them.
    async fn store_or_set_aside(&self, run: &Arc<Run>, batch: Batch) {
        if self.deliver(&batch).await.is_ok() {
            return;
        }
        let mut refused = Vec::new();
        for entry in &batch.entries {
            let alone = Batch {
                entries: vec![entry.clone()],
                shipped: None,
            };
            if let Err(error) = self.deliver(&alone).await {
                let reason = error.to_string();
                refused.push(Refused { reason, entry });
            }
        }
        self.set_aside(run, &refused).await;
        let rest = Batch {
            entries: Vec::new(),
            ..batch
        };
        self.insist(|| self.store.append(rest.clone())).await;
    }

    /// Repeats an append until it succeeds, or until it is clear that it never will.
    async fn deliver(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut pause = BACKOFF.0;
        loop {
            match self.attempt(self.store.append(batch.clone())).await {
                Err(error) if !error.is_unfit() => pause = back_off(pause).await,
                done => return done,
            }
        }
    }

    /// Writes entries to the file of those that are refused. They are in it again if the process
    /// ends before the shipped position has moved.
    async fn set_aside(&self, run: &Arc<Run>, refused: &[Refused<'_>]) {
        let Some(last) = refused.last() else {
            return;
        };
        match refused::lines(refused) {
            Ok(lines) => {
                let lines: Arc<[u8]> = lines.into();
                let write = move |run: &Run| refused::append(run.all(), &lines);
                self.on_files(run, write).await;
            }
            // Entries that were read from JSON can be written as JSON.
            Err(error) => self.stats().fail(&self.stats().write_failures, &error),
        }
        self.stats().refuse(refused.len() as u64, &last.reason);
    }

    /// Removes the files before `position`, once a power cut cannot undo the entries in the store.
    async fn remove_shipped(&self, run: &Arc<Run>, position: u64) {
        let has_some = self
            .on_files(run, move |run| segment::has_before(&run.folder, position))
            .await;
        if has_some {
            self.insist(|| self.store.sync()).await;
            self.on_files(run, move |run| {
                segment::remove_before(&run.folder, position)
            })
            .await;
        }
    }

    /// Repeats an operation of the store until it succeeds.
    async fn insist<'a, T, F>(&'a self, operation: impl Fn() -> F) -> T
    where
        F: Future<Output = Result<T, StoreError>> + 'a,
    {
        let mut pause = BACKOFF.0;
        loop {
            if let Ok(result) = self.attempt(operation()).await {
                return result;
            }
            pause = back_off(pause).await;
        }
    }

    /// Does an operation of the store, and counts it if it fails.
    async fn attempt<T>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let done = operation.await;
        let failure = done.as_ref().err().filter(|error| !error.is_unfit());
        let is_away = &self.stats().store_is_away;
        is_away.store(failure.is_some(), Ordering::Relaxed);
        if let Some(error) = failure {
            self.stats().fail(&self.stats().store_failures, error);
        }
        done
    }

    /// Repeats work on the files of a run until it succeeds.
    async fn on_files<T: Send + 'static>(
        &self,
        run: &Arc<Run>,
        work: impl Fn(&Run) -> io::Result<T> + Clone + Send + 'static,
    ) -> T {
        let mut pause = BACKOFF.0;
        loop {
            let (run, work) = (Arc::clone(run), work.clone());
            match spawn_blocking(move || work(&run)).await {
                Ok(Ok(result)) => return result,
                Ok(Err(error)) => self.stats().fail(&self.stats().read_failures, &error),
                Err(error) => self.stats().fail(&self.stats().read_failures, &error),
            }
            pause = back_off(pause).await;
        }
    }

    fn report(&self, position: u64) {
        self.stats().shipped.store(position, Ordering::Relaxed);
        self.progress
            .send_modify(|progress| progress.position = position);
    }

    fn stats(&self) -> &Counters {
        &self.log.stats
    }
}

/// Waits, and returns the time to wait after the next failure.
async fn back_off(pause: Duration) -> Duration {
    sleep(pause).await;
    pause.saturating_mul(2).min(BACKOFF.1)
}

/// The position at which reading goes on behind a part, and the bytes between it and the last whole
/// line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Behind {
    position: u64,
    missing_bytes: u64,
    torn_bytes: u64,
    /// The number of damaged records.
    corrupt: u64,
}

fn behind(part: &Part, records: &Records, is_dead: bool) -> Behind {
    let whole = part.start + records.len as u64;
    let rest = (part.bytes.len() - records.len) as u64;
    let damaged = Behind {
        position: whole + rest,
        corrupt: u64::from(rest > 0),
        ..Behind::default()
    };
    match part.next {
        // No record ends here: bytes behind a failed write, or damage.
        Some(next) if part.is_end_of_segment => Behind {
            position: next,
            missing_bytes: next.saturating_sub(whole + rest),
            ..damaged
        },
        None if part.is_end_of_segment && is_dead => Behind {
            corrupt: 0,
            torn_bytes: rest,
            ..damaged
        },
        // Cut in the middle of a record, unless it is too long for one.
        _ if rest <= MAX_RECORD as u64 && records.len > 0 => Behind {
            position: whole,
            ..Behind::default()
        },
        _ => damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part that begins at 1,000 and has a rest of this many bytes behind `whole` ones.
    fn behind_of(
        (whole, rest): (usize, usize),
        (next, is_end_of_segment): (Option<u64>, bool),
        is_dead: bool,
    ) -> Behind {
        let part = Part {
            start: 1_000,
            bytes: vec![b'x'; whole + rest],
            next,
            is_end_of_segment,
        };
        let records = Records {
            len: whole,
            ..Records::default()
        };
        behind(&part, &records, is_dead)
    }

    fn at(position: u64) -> Behind {
        Behind {
            position,
            ..Behind::default()
        }
    }

    #[test]
    fn end_of_a_segment_with_a_next_one_has_no_cut_record() {
        let next = (Some(2_000), true);
        assert_eq!(behind_of((1_000, 0), next, false), at(2_000));
        let damaged = Behind {
            corrupt: 1,
            ..at(2_000)
        };
        assert_eq!(behind_of((990, 10), next, false), damaged);
        let gap = Behind {
            missing_bytes: 100,
            ..damaged
        };
        assert_eq!(behind_of((890, 10), next, true), gap);
    }

    #[test]
    fn end_of_a_dead_journal_may_be_torn() {
        let torn = Behind {
            torn_bytes: 10,
            ..at(1_110)
        };
        assert_eq!(behind_of((100, 10), (None, true), true), torn);
        assert_eq!(behind_of((100, 0), (None, true), true), at(1_100));
        // A process that lives will write the rest.
        assert_eq!(behind_of((100, 10), (None, true), false), at(1_100));
    }

    #[test]
    fn cut_record_is_read_again_unless_it_is_too_long() {
        let within = (None, false);
        assert_eq!(behind_of((100, 10), within, true), at(1_100));
        assert_eq!(behind_of((100, MAX_RECORD), within, true), at(1_100));
        let long = Behind {
            corrupt: 1,
            ..at(1_100 + MAX_RECORD as u64 + 1)
        };
        assert_eq!(behind_of((100, MAX_RECORD + 1), within, true), long);
        // Reading it again would never end.
        let alone = Behind {
            corrupt: 1,
            ..at(1_010)
        };
        assert_eq!(behind_of((0, 10), within, true), alone);
        assert_eq!(behind_of((0, 0), within, true), at(1_000));
    }
}
