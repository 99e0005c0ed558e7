//! Random schedules of processes that journal requests, are killed at any moment, and share folders
//! and a store that is away, or whose replies are lost. However it goes, each request that was
//! opened ends as one row.
//!
//! `SLUICEGATE_JOURNAL_SCHEDULES` sets how many are run, and `SLUICEGATE_JOURNAL_SEED` the first seed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sluicegate_accounting::{
    AccountingStore, Journal, JournalOptions, Opened, RowQuery, Sqlite, State, TokenCounts, Totals,
    UsageQuery,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::flaky::Flaky;
use crate::support::{closed, opened};

/// The requests by id, and whether the end of each one was journaled.
type Requests = BTreeMap<String, End>;

/// The knowledge of the end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Its process ended before it.
    None,
    /// It was queued, and its process was killed before it was certainly in the file.
    Unsure,
    /// It was journaled.
    Sure,
}

/// A process with its connection to the store.
struct Process {
    folder: PathBuf,
    store: Arc<Flaky>,
    journal: Journal,
    open: Vec<String>,
    /// The requests whose end was queued.
    ended: Vec<String>,
}

struct World {
    random: Random,
    place: TempDir,
    /// Folders of journals. A killed process leaves its files in one of its own.
    folders: Vec<PathBuf>,
    processes: Vec<Process>,
    requests: Requests,
    counts: Counts,
}

/// Evidence that the schedules have tried something.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    kills: u64,
    torn: u64,
    lost_answers: u64,
    abandoned: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let place = place();
        Self {
            random: Random(seed),
            folders: vec![place.path().join("journal-0")],
            place,
            processes: Vec::new(),
            requests: Requests::new(),
            counts: Counts::default(),
        }
    }

    fn sqlite(&self) -> Sqlite {
        Sqlite::open(self.place.path().join("accounting.db")).unwrap()
    }

    async fn step(&mut self) {
        match self.random.below(20) {
            _ if self.processes.is_empty() => self.start(),
            0 if self.processes.len() < 3 => self.start(),
            1 => self.kill(),
            2 => self.finish().await,
            3 => {
                let is_away = self.random.below(2) == 0;
                self.any().store.set_away(is_away);
            }
            4 => {
                self.any().store.lost_answers.fetch_add(1, Ordering::SeqCst);
                self.counts.lost_answers += 1;
            }
            // Lets the tasks of the journals run.
            5 | 6 => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            7..12 => self.end(),
            _ => self.open(),
        }
    }

    fn any(&mut self) -> &mut Process {
        let at = self.random.below(self.processes.len() as u64) as usize;
        &mut self.processes[at]
    }

    fn start(&mut self) {
        let at = self.random.below(self.folders.len() as u64) as usize;
        let folder = self.folders[at].clone();
        let mut options = JournalOptions::new(&folder);
        options.segment_bytes = 300 + self.random.below(2_000);
        let store = Flaky::new(self.sqlite());
        let journal = Journal::open(&options, Arc::<Flaky>::clone(&store) as _).unwrap();
        self.processes.push(Process {
            folder,
            store,
            journal,
            open: Vec::new(),
            ended: Vec::new(),
        });
    }

    fn open(&mut self) {
        let id = format!("request-{}", self.requests.len());
        let process = self.any();
        let entry = Opened {
            run: process.journal.run().to_owned(),
            ..opened(&id, 1_000)
        };
        process.journal.opened(&entry).unwrap();
        process.open.push(id.clone());
        self.requests.insert(id, End::None);
        self.counts.requests += 1;
    }

    fn end(&mut self) {
        let number = self.random.next() as usize;
        let process = self.any();
        if process.open.is_empty() {
            return;
        }
        let id = process.open.swap_remove(number % process.open.len());
        process.journal.closed(closed(&id, 2_000));
        process.ended.push(id);
    }

    /// Ends a process that its operator stops.
    async fn finish(&mut self) {
        let at = self.random.below(self.processes.len() as u64) as usize;
        let process = self.processes.swap_remove(at);
        process.store.set_away(false);
        process.journal.finish().await;
        for id in process.ended {
            self.requests.insert(id, End::Sure);
        }
    }

    /// Kills a process: its files remain, with a part of a record that it was writing.
    fn kill(&mut self) {
        let at = self.random.below(self.processes.len() as u64) as usize;
        let process = self.processes.swap_remove(at);
        process.store.set_away(true);
        let run = process.journal.run().to_owned();
        let left = self
            .place
            .path()
            .join(format!("journal-{}", self.folders.len()));
        fs::create_dir_all(left.join(&run)).unwrap();
        // A copy, because this process itself lives on: what it still writes must not count.
        copy(&process.folder.join(&run), &left.join(&run));
        if self.random.below(2) == 0 {
            self.counts.torn += u64::from(tear(&left.join(&run), self.random.next()));
        }
        self.folders.push(left);
        for id in process.ended {
            self.requests.insert(id, End::Unsure);
        }
        self.counts.kills += 1;
        drop(process.journal);
        // Nobody takes over the files of the dead process itself.
        let _ = fs::remove_dir_all(process.folder.join(&run));
    }

    /// Has what is left in all folders sent, and compares the rows with the requests.
    async fn check(mut self) -> Counts {
        while !self.processes.is_empty() {
            self.finish().await;
        }
        for folder in &self.folders {
            let store: Arc<dyn AccountingStore> = Arc::new(self.sqlite());
            let journal = Journal::open(&JournalOptions::new(folder), store).unwrap();
            journal.finish().await;
            let stats = journal.stats();
            assert_eq!((stats.corrupt, stats.missing_bytes), (0, 0), "{stats:?}");
        }
        let store = self.sqlite();
        let query = RowQuery {
            limit: u32::MAX,
            ..RowQuery::default()
        };
        let rows = store.rows(query).await.unwrap();
        let ids: Vec<_> = rows.iter().map(|row| &row.request_id).collect();
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, self.requests.keys().collect::<Vec<_>>());
        for row in &rows {
            match (self.requests[&row.request_id], row.state) {
                (End::None | End::Unsure, State::Abandoned)
                | (End::Unsure | End::Sure, State::Closed) => {}
                other => panic!("{}: {other:?}", row.request_id),
            }
        }
        let abandoned = rows.iter().filter(|row| row.state == State::Abandoned);
        self.counts.abandoned = abandoned.count() as u64;
        check_sums(&store, self.counts).await;
        self.counts
    }
}

/// Asserts that the sums match the rows.
async fn check_sums(store: &Sqlite, counts: Counts) {
    let closed = counts.requests - counts.abandoned;
    let sums = store.usage(UsageQuery::default()).await.unwrap();
    let found = sums.first().map(|sum| sum.totals).unwrap_or_default();
    let expected = Totals {
        requests: counts.requests,
        abandoned: counts.abandoned,
        inexact: closed,
        tokens: TokenCounts {
            input: 100 * closed,
            cache_read: 40 * closed,
            cache_write: 20 * closed,
            cache_write_1h: 5 * closed,
            audio_input: 7 * closed,
            image_input: 8 * closed,
            output: 30 * closed,
            reasoning: 10 * closed,
            audio_output: 6 * closed,
            image_output: 9 * closed,
        },
        pictures: closed,
        cost_nanos: 7_000 * closed as i64,
        abandoned_nanos: 9_000 * counts.abandoned as i64,
        ..Totals::default()
    };
    assert_eq!(found, expected);
}

/// A folder in memory if there is one: nothing here has to survive a power cut.
fn place() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        // The task removes files that the store has.
        let file = file.unwrap();
        let _ = fs::copy(file.path(), to.join(file.file_name()));
    }
}

/// Appends a part of a record to the last segment. Returns false if no record exists to take it
/// from.
fn tear(run: &Path, random: u64) -> bool {
    let files = fs::read_dir(run).unwrap().map(|file| file.unwrap().path());
    let mut segments: Vec<_> = files.filter(|path| path.extension().is_some()).collect();
    segments.sort_unstable();
    let Some(last) = segments.last() else {
        return false;
    };
    let mut text = fs::read(last).unwrap();
    let Some(record) = text.iter().position(|byte| *byte == b'\n') else {
        return false;
    };
    let part = text[..random as usize % record].to_vec();
    text.extend(part);
    fs::write(last, text).unwrap();
    true
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}: expected a number"))
    })
}

/// Backing off takes no time.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

#[test]
fn each_request_has_one_row_after_any_schedule() {
    let count = number("SLUICEGATE_JOURNAL_SCHEDULES", 100);
    let first = number("SLUICEGATE_JOURNAL_SEED", 0);
    let mut sum = Counts::default();
    for seed in first..first + count {
        let tell = Tell(seed);
        let counts = runtime().block_on(async {
            let mut world = World::new(seed);
            for _ in 0..60 {
                world.step().await;
            }
            world.check().await
        });
        drop(tell);
        sum.requests += counts.requests;
        sum.kills += counts.kills;
        sum.torn += counts.torn;
        sum.lost_answers += counts.lost_answers;
        sum.abandoned += counts.abandoned;
    }
    eprintln!("{count} schedules: {sum:?}");
    assert!(sum.requests > 5 * count && sum.kills > count / 2, "{sum:?}");
    assert!(
        sum.torn > count / 10 && sum.lost_answers > count / 2 && sum.abandoned > count / 2,
        "{sum:?}"
    );
}

/// Prints the seed of a schedule that fails.
struct Tell(u64);

impl Drop for Tell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the schedule with SLUICEGATE_JOURNAL_SEED={} failed",
                self.0
            );
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
