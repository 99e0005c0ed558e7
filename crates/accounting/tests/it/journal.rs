//! The journal of a process: nothing that was given to it is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use sluicegate_accounting::{
    AccountingStore, Journal, JournalOptions, Opened, RowQuery, Sqlite, State, StoreError,
};
use tempfile::TempDir;

use crate::flaky::Flaky;
use crate::support::{closed, opened};

/// A store and the folder of its journals.
struct Place {
    folder: TempDir,
    store: Arc<Flaky>,
    segment_bytes: u64,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(folder.path().join("accounting.db")).unwrap();
        Self {
            folder,
            store: Flaky::new(store),
            segment_bytes: 1_000_000,
        }
    }

    fn journals(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn open(&self) -> Journal {
        let mut options = JournalOptions::new(self.journals());
        options.segment_bytes = self.segment_bytes;
        let store: Arc<dyn AccountingStore> = Arc::<Flaky>::clone(&self.store);
        Journal::open(&options, store).unwrap()
    }

    /// The journal of a run that ended while the store was away: r0 to r4; only r0 is closed.
    fn leave_behind(&self) -> PathBuf {
        self.store.set_away(true);
        let journal = self.open();
        for at in 0..5 {
            open_request(&journal, &format!("r{at}"));
        }
        journal.closed(closed("r0", 2_000));
        let run = journal.run().to_owned();
        drop(journal);
        self.store.set_away(false);
        self.journals().join(run)
    }

    /// The requests in the store, each with its state.
    async fn states(&self) -> Vec<(String, State)> {
        let query = RowQuery {
            limit: 100_000,
            ..RowQuery::default()
        };
        let rows = self.store.store.rows(query).await.unwrap();
        rows.into_iter()
            .map(|row| (row.request_id, row.state))
            .collect()
    }
}

fn open_request(journal: &Journal, request_id: &str) {
    let entry = Opened {
        run: journal.run().to_owned(),
        ..opened(request_id, 1_000)
    };
    journal.opened(&entry).unwrap();
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, future).await.unwrap()
}

/// The files of a folder in their order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn entries_reach_the_store() {
    let place = Place::new();
    let journal = place.open();
    open_request(&journal, "r1");
    open_request(&journal, "r2");
    journal.closed(closed("r1", 2_000));
    soon(journal.shipped()).await;
    let expected = [
        ("r1".to_owned(), State::Closed),
        ("r2".to_owned(), State::Open),
    ];
    assert_eq!(place.states().await, expected);
    let stats = journal.stats();
    assert_eq!(
        (stats.opened, stats.closed, stats.store_failures),
        (2, 1, 0)
    );
    assert!(
        stats.written > 0 && stats.shipped == stats.written,
        "{stats:?}"
    );
}

#[tokio::test]
async fn a_finished_run_leaves_no_files_and_no_open_requests() {
    let place = Place::new();
    let journal = place.open();
    open_request(&journal, "r1");
    soon(journal.finish()).await;
    assert_eq!(place.states().await, [("r1".to_owned(), State::Abandoned)]);
    assert_eq!(files(&place.journals()), [place.journals().join("lock")]);
    let late = Opened {
        run: journal.run().to_owned(),
        ..opened("r2", 1_000)
    };
    let error = journal.opened(&late).unwrap_err().to_string();
    assert_eq!(error, "the journal is finished");
}

/// Otherwise a power cut could undo the entries in the store, with no file to send them from again.
#[tokio::test]
async fn shipped_file_is_removed_after_the_store_has_synced() {
    let mut place = Place::new();
    // Every record begins a new file.
    place.segment_bytes = 1;
    let journal = place.open();
    open_request(&journal, "r1");
    open_request(&journal, "r2");
    soon(journal.shipped()).await;
    // The lock, and the file of the second record.
    assert_eq!(files(&place.journals().join(journal.run())).len(), 2);
    let writes = place.store.writes.lock().unwrap();
    assert_eq!(writes.iter().filter(|write| **write == "sync").count(), 1);
}

#[tokio::test]
async fn an_entry_of_another_run_is_refused() {
    let place = Place::new();
    let journal = place.open();
    let error = journal.opened(&opened("r1", 1)).unwrap_err().to_string();
    let expected = format!(
        r#"the entry is of run "run-1": expected "{}""#,
        journal.run()
    );
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_store_that_is_away_loses_nothing() {
    let mut place = Place::new();
    place.segment_bytes = 10_000;
    place.store.set_away(true);
    let journal = place.open();
    for at in 0..3_000 {
        open_request(&journal, &format!("r{at}"));
        journal.closed(closed(&format!("r{at}"), 2_000));
    }
    while journal.stats().store_failures == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let failure = journal.stats().last_failure.unwrap();
    assert_eq!(failure, "the accounting store test is not available: away");
    assert_eq!(place.states().await, []);
    place.store.set_away(false);
    soon(journal.shipped()).await;
    let states = place.states().await;
    assert_eq!(states.len(), 3_000);
    assert!(states.iter().all(|(_, state)| *state == State::Closed));
    // The files are removed once the store has their entries; the last one is in use.
    assert_eq!(files(&place.journals().join(journal.run())).len(), 2);
}

#[tokio::test]
async fn an_answer_that_is_lost_makes_no_second_row() {
    let place = Place::new();
    place.store.lost_answers.store(2, Ordering::SeqCst);
    let journal = place.open();
    open_request(&journal, "r1");
    journal.closed(closed("r1", 2_000));
    soon(journal.shipped()).await;
    assert_eq!(place.states().await, [("r1".to_owned(), State::Closed)]);
    assert_eq!(journal.stats().store_failures, 2);
}

/// An entry that has no place in the store does not hold up those behind it, and is not lost.
#[tokio::test]
async fn an_entry_that_the_store_cannot_hold_is_set_aside() {
    let place = Place::new();
    let unfit = StoreError::Unfit {
        store: "test".to_owned(),
        reason: "too long".to_owned(),
    };
    *place.store.refused.lock().unwrap() = Some(("r2", unfit));
    let journal = place.open();
    for request in ["r1", "r2", "r3"] {
        open_request(&journal, request);
    }
    journal.closed(closed("r1", 2_000));
    soon(journal.shipped()).await;
    let expected = [
        ("r1".to_owned(), State::Closed),
        ("r3".to_owned(), State::Open),
    ];
    assert_eq!(place.states().await, expected);
    let stats = journal.stats();
    assert_eq!((stats.refused, stats.store_failures), (1, 0), "{stats:?}");
    assert!(
        !stats.store_is_away && stats.shipped == stats.written,
        "{stats:?}"
    );
    let reason = "the accounting store test cannot hold the data: too long";
    assert_eq!(stats.last_refusal.as_deref(), Some(reason));
    let file = place.journals().join("refused.jsonl");
    assert_eq!(journal.refused_file(), file);
    let lines = fs::read_to_string(&file).unwrap();
    let line: Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(line["reason"], reason);
    assert_eq!(line["entry"]["entry"], "opened");
    assert_eq!(line["entry"]["request_id"], "r2");
    assert_eq!(line["entry"]["reserved_tokens"], 500);

    // Its end has no place either, and is a line of its own.
    journal.closed(closed("r2", 2_000));
    soon(journal.finish()).await;
    let lines = fs::read_to_string(&file).unwrap();
    assert_eq!(lines.lines().count(), 2);
    assert_eq!(
        files(&place.journals()),
        [place.journals().join("lock"), file]
    );
}

/// A store that refuses everything, such as one whose password was changed, is waited for.
#[tokio::test]
async fn nothing_is_set_aside_because_the_store_refuses_the_gateway() {
    let place = Place::new();
    let refused = StoreError::Refused {
        store: "test".to_owned(),
        reason: "the password is wrong".to_owned(),
    };
    *place.store.refused.lock().unwrap() = Some(("r1", refused));
    let journal = place.open();
    open_request(&journal, "r1");
    while journal.stats().store_failures < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(journal.stats().store_is_away);
    assert!(!journal.refused_file().exists());
    *place.store.refused.lock().unwrap() = None;
    soon(journal.shipped()).await;
    assert_eq!(place.states().await, [("r1".to_owned(), State::Open)]);
    assert_eq!(journal.stats().refused, 0);
}

#[tokio::test]
async fn a_full_queue_loses_nothing() {
    let place = Place::new();
    let journal = place.open();
    for at in 0..20_000 {
        journal.closed(closed(&format!("r{at}"), 2_000));
    }
    soon(journal.shipped()).await;
    assert_eq!(place.states().await.len(), 20_000);
    assert_eq!(journal.stats().closed, 20_000);
}

#[tokio::test]
async fn restart_ships_leftover_entries_and_abandons_open_requests() {
    let place = Place::new();
    let left = place.leave_behind();
    assert_eq!(place.states().await, []);
    let journal = place.open();
    soon(journal.shipped()).await;
    let expected = [
        ("r0".to_owned(), State::Closed),
        ("r1".to_owned(), State::Abandoned),
        ("r2".to_owned(), State::Abandoned),
        ("r3".to_owned(), State::Abandoned),
        ("r4".to_owned(), State::Abandoned),
    ];
    assert_eq!(place.states().await, expected);
    let stats = journal.stats();
    assert_eq!((stats.adopted, stats.abandoned), (1, 4));
    // The files are removed only after the entries would survive a power cut.
    let writes = place.store.writes.lock().unwrap().clone();
    assert_eq!(writes, ["append", "sync", "abandon"]);
    assert_eq!(
        (stats.corrupt, stats.torn_bytes, stats.missing_bytes),
        (0, 0, 0)
    );
    assert!(!left.exists());
}

#[tokio::test]
async fn a_run_that_lives_is_left_alone() {
    let place = Place::new();
    let first = place.open();
    open_request(&first, "r1");
    let second = place.open();
    soon(first.shipped()).await;
    soon(second.shipped()).await;
    assert_eq!(second.stats().adopted, 0);
    assert_eq!(place.states().await, [("r1".to_owned(), State::Open)]);
}

#[tokio::test]
async fn a_torn_record_at_the_end_is_cut_off() {
    let place = Place::new();
    let left = place.leave_behind();
    let file = files(&left).remove(0);
    let mut bytes = fs::read(&file).unwrap();
    // The end of r0 is the last record; 7 of its bytes are lost.
    bytes.truncate(bytes.len() - 7);
    let torn = bytes.len() - bytes.iter().rposition(|byte| *byte == b'\n').unwrap() - 1;
    fs::write(&file, bytes).unwrap();
    let journal = place.open();
    soon(journal.shipped()).await;
    let states = place.states().await;
    assert_eq!(states.len(), 5);
    assert!(states.iter().all(|(_, state)| *state == State::Abandoned));
    let stats = journal.stats();
    assert_eq!((stats.torn_bytes, stats.corrupt), (torn as u64, 0));
}

#[tokio::test]
async fn a_damaged_record_is_counted_and_the_others_are_read() {
    let place = Place::new();
    let left = place.leave_behind();
    let file = files(&left).remove(0);
    let mut bytes = fs::read(&file).unwrap();
    let record = bytes.windows(4).position(|part| part == b"\"r2\"").unwrap();
    bytes[record + 2] = b'9';
    fs::write(&file, bytes).unwrap();
    let journal = place.open();
    soon(journal.shipped()).await;
    let ids: Vec<_> = place.states().await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["r0", "r1", "r3", "r4"]);
    let stats = journal.stats();
    assert_eq!(
        (stats.corrupt, stats.torn_bytes, stats.missing_bytes),
        (1, 0, 0)
    );
}

/// A megabyte is read at once, and ends within a record.
#[tokio::test]
async fn a_journal_of_several_parts_is_read_whole() {
    let mut place = Place::new();
    place.segment_bytes = 10_000_000;
    place.store.set_away(true);
    let journal = place.open();
    for at in 0..6_000 {
        open_request(&journal, &format!("r{at}"));
    }
    let left = place.journals().join(journal.run());
    drop(journal);
    assert!(fs::metadata(files(&left).remove(0)).unwrap().len() > 1_048_576);
    place.store.set_away(false);
    let journal = place.open();
    soon(journal.shipped()).await;
    assert_eq!(place.states().await.len(), 6_000);
    let stats = journal.stats();
    assert_eq!(
        (stats.corrupt, stats.torn_bytes, stats.missing_bytes),
        (0, 0, 0)
    );
}

/// A line that is longer than a part is two damaged lines: its beginning, and its end.
#[tokio::test]
async fn a_line_without_an_end_is_passed_over() {
    let place = Place::new();
    let left = place.leave_behind();
    let file = files(&left).remove(0);
    let records = fs::read(&file).unwrap();
    let mut bytes = vec![b'x'; 1_048_576 + 100];
    bytes.push(b'\n');
    bytes.extend(records);
    fs::write(&file, bytes).unwrap();
    let journal = place.open();
    soon(journal.shipped()).await;
    assert_eq!(place.states().await.len(), 5);
    let stats = journal.stats();
    assert_eq!(
        (stats.corrupt, stats.torn_bytes, stats.missing_bytes),
        (2, 0, 0)
    );
}

#[tokio::test]
async fn a_file_that_is_gone_is_counted() {
    let mut place = Place::new();
    place.segment_bytes = 1;
    let left = place.leave_behind();
    let second = files(&left).remove(1);
    let lost = fs::metadata(&second).unwrap().len();
    fs::remove_file(second).unwrap();
    let journal = place.open();
    soon(journal.shipped()).await;
    let ids: Vec<_> = place.states().await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["r0", "r2", "r3", "r4"]);
    assert_eq!(journal.stats().missing_bytes, lost);
}

#[tokio::test]
async fn admission_write_failure_refuses_the_request() {
    let mut place = Place::new();
    // Every record begins a new file.
    place.segment_bytes = 1;
    let journal = place.open();
    open_request(&journal, "r1");
    soon(journal.shipped()).await;
    let folder = place.journals().join(journal.run());
    let away = place.folder.path().join("away");
    fs::rename(&folder, &away).unwrap();
    let entry = Opened {
        run: journal.run().to_owned(),
        ..opened("r2", 1_000)
    };
    assert_eq!(
        journal.opened(&entry).unwrap_err().kind(),
        std::io::ErrorKind::NotFound
    );
    journal.closed(closed("r1", 2_000));
    while journal.stats().write_failures < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    fs::rename(&away, &folder).unwrap();
    soon(journal.shipped()).await;
    assert_eq!(place.states().await, [("r1".to_owned(), State::Closed)]);
}
