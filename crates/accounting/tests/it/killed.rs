//! Processes that are killed while they journal requests.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sluicegate_accounting::{
    AccountingStore, Journal, JournalOptions, Opened, RowQuery, Sqlite, State,
};

use crate::support::{closed, opened};

/// The folder in which this program journals requests until it is killed. Not set: it is the test.
const FOLDER: &str = "SLUICEGATE_TEST_JOURNAL";

/// The number of processes to kill: 100 unless set. A thorough run takes 1,000.
const KILLS: &str = "SLUICEGATE_TEST_KILLS";

/// After each kill, every request that was reported as opened has one row, which is closed or
/// abandoned.
#[test]
fn killed_processes_lose_no_request_and_count_none_twice() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return journal_until_killed(Path::new(&folder));
    }
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap())
    };
    let kills = number(KILLS).unwrap_or(100);
    let mut random = number("SLUICEGATE_TEST_SEED").unwrap_or(0) | 1;
    let folder = tempfile::tempdir().unwrap();
    let mut reported = Vec::new();
    for _ in 0..kills {
        // xorshift64: each process is killed after another number of requests.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let before = reported.len();
        kill_after(folder.path(), random % 300 + 1, &mut reported);
        assert!(reported.len() > before);
    }
    check(folder.path(), &reported);
}

/// Starts a process, kills it when it has reported this many requests, and adds all that it reported.
fn kill_after(folder: &Path, requests: u64, reported: &mut Vec<String>) {
    let mut process = start(folder);
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut left = requests;
    for line in lines {
        let line = line.unwrap();
        let Some(id) = line
            .strip_prefix("opened ")
            .and_then(|rest| rest.strip_suffix(';'))
        else {
            continue;
        };
        reported.push(id.to_owned());
        left = left.saturating_sub(1);
        if left == 0 {
            process.kill().unwrap();
        }
    }
    assert!(!process.wait().unwrap().success());
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("killed::killed_processes_lose_no_request_and_count_none_twice")
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Journals requests, several at a time, and reports each one that was opened.
fn journal_until_killed(folder: &Path) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _guard = runtime.enter();
    let journal = open(folder);
    let mut stdout = std::io::stdout();
    for number in 0_u64.. {
        let id = |number: u64| format!("{}-{number}", journal.run());
        let entry = Opened {
            run: journal.run().to_owned(),
            ..opened(&id(number), 1_000)
        };
        journal.opened(&entry).unwrap();
        // The semicolon shows that the line is whole.
        writeln!(stdout, "opened {};", entry.request_id).unwrap();
        if let Some(earlier) = number.checked_sub(3) {
            journal.closed(closed(&id(earlier), 2_000));
        }
    }
}

fn open(folder: &Path) -> Journal {
    let store = Arc::new(Sqlite::open(folder.join("accounting.db")).unwrap());
    let mut options = JournalOptions::new(folder.join("journal"));
    options.segment_bytes = 10_000;
    Journal::open(&options, store).unwrap()
}

/// Sends the remaining entries of the killed processes, and compares the rows with their reports.
fn check(folder: &Path, reported: &[String]) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let journal = open(folder);
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, journal.shipped())
            .await
            .unwrap();
        let stats = journal.stats();
        assert_eq!((stats.corrupt, stats.missing_bytes), (0, 0), "{stats:?}");
        drop(journal);
        let store = Sqlite::open(folder.join("accounting.db")).unwrap();
        let query = RowQuery {
            limit: u32::MAX,
            ..RowQuery::default()
        };
        let rows = store.rows(query).await.unwrap();
        let ids: HashSet<_> = rows.iter().map(|row| &row.request_id).collect();
        assert_eq!(ids.len(), rows.len());
        assert!(rows.iter().all(|row| row.state != State::Open));
        for state in [State::Closed, State::Abandoned] {
            assert!(
                rows.iter().any(|row| row.state == state),
                "none is {state:?}"
            );
        }
        assert!(rows.iter().all(|row| row.key == "team-a"));
        let missing: Vec<_> = reported.iter().filter(|id| !ids.contains(id)).collect();
        assert_eq!(missing, [""; 0]);
        // A process may be killed between writing a request and reporting it.
        assert!(rows.len() >= reported.len());
    });
}
