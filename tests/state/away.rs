//! A store that cannot be written for a while, and gateways without one.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use simulator::{Protocol, Simulator};
use testkit::requests::{PROTOCOLS, ask, protocol_name};
use testkit::usage::{count, edited};
use testkit::{Config, Gateway, Request, UPSTREAM_KEY, await_that, by_shell};

use crate::GATEWAY;
use crate::store::Store;

fn hello(gateway: &Gateway) -> u16 {
    let body = ask(Protocol::Chat, "chat", "Hello.", false);
    gateway.ask(Protocol::Chat, &body).status
}

/// The number of log lines with this text.
pub(crate) fn lines(gateway: &Gateway, text: &str) -> usize {
    let log = gateway.log.lock().unwrap();
    log.lines().filter(|line| line.contains(text)).count()
}

/// Requests go on while the store can be read but not written, as on a full disk or a file system
/// that has become read-only. The store has them once it is back.
#[test]
fn requests_go_on_while_the_store_cannot_be_written() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let store = Store::new();
    let config = Config::before(&simulator, "", "").section(&store.settings());
    let gateway = config.start(GATEWAY);
    assert_eq!(hello(&gateway), 200);
    store.ended(1);
    let other = store.writer();
    other
        .execute_batch(
            // An overflow, which has nothing to do with the row.
            "CREATE TRIGGER full BEFORE INSERT ON usage
             BEGIN SELECT abs(-9223372036854775808); END",
        )
        .unwrap();
    for _ in 0..10 {
        assert_eq!(hello(&gateway), 200);
    }
    await_that("the log says so", || lines(&gateway, AWAY) == 1);
    assert_eq!(lines(&gateway, BACK), 0);
    assert_eq!(store.rows().len(), 1);
    other.execute_batch("DROP TRIGGER full").unwrap();
    let rows = store.ended(11);
    assert_eq!(rows.len(), 11);
    assert!(rows.iter().all(|row| row.state == "closed"));
    await_that("the log says so", || lines(&gateway, BACK) == 1);
    assert_eq!(lines(&gateway, AWAY), 1);
}

/// A row that the store does not take, whatever the time, is set aside, and those behind it are
/// stored.
#[test]
fn usage_that_the_store_refuses_is_set_aside() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let store = Store::new();
    let config = Config::before(&simulator, "", "").section(&store.settings());
    let mut gateway = config.start(GATEWAY);
    store
        .writer()
        .execute_batch(
            "CREATE TRIGGER picky BEFORE INSERT ON usage WHEN new.model = 'messages'
             BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        .unwrap();
    let ask_for = |gateway: &Gateway, protocol| {
        let body = ask(protocol, protocol_name(protocol), "Hello.", false);
        assert_eq!(gateway.ask(protocol, &body).status, 200);
    };
    for protocol in [Protocol::Chat, Protocol::Messages, Protocol::Chat] {
        ask_for(&gateway, protocol);
    }
    await_that("the log says so", || lines(&gateway, REFUSED) >= 1);
    assert_eq!(lines(&gateway, AWAY), 0);
    assert_eq!(gateway.metric("sluicegate_usage_refused_total"), 1.0);
    gateway.signal("TERM");
    assert!(gateway.wait().success());
    let count = |model: &str| {
        let sql = "SELECT count(*) FROM usage WHERE state = 'closed' AND model = ";
        store.number(&format!("{sql}'{model}'"))
    };
    assert_eq!((count("chat"), count("messages")), (2, 0));
    let journal = store.folder().join("accounting.db.journal");
    let refused = std::fs::read_to_string(journal.join("refused.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(&refused).unwrap();
    assert_eq!(line["entry"]["model"], "messages");
    let reason = line["reason"].as_str().unwrap();
    assert!(reason.ends_with("not this one"), "{reason}");
}

/// Another process that keeps the file locked is no different from a full disk.
#[test]
fn requests_go_on_while_the_store_is_locked() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let store = Store::new();
    let config = Config::before(&simulator, "", "").section(&store.settings());
    let gateway = config.start(GATEWAY);
    let other = store.writer();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for _ in 0..10 {
        assert_eq!(hello(&gateway), 200);
    }
    await_that("the log says so", || lines(&gateway, AWAY) == 1);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.ended(10).len(), 10);
    await_that("the log says so", || lines(&gateway, BACK) == 1);
}

/// On a disk that has room for neither the store nor the journal, nothing is served: a request that
/// cannot be counted must not reach a model. The kernel refuses the writes, as a limit of the size
/// of files stands for a full disk.
#[test]
fn nothing_is_served_that_cannot_be_journaled() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let store = Store::new();
    let command = by_shell("trap '' XFSZ; exec \"$@\"", &GATEWAY.command());
    let gateway = Config::before(&simulator, "", "")
        .section(&store.settings())
        .start_by(GATEWAY, command);
    assert_eq!(hello(&gateway), 200);
    store.ended(1);
    limit_files(&gateway, "1");
    for protocol in PROTOCOLS {
        let body = ask(protocol, protocol_name(protocol), "Hello.", false);
        let refused = gateway.ask(protocol, &body);
        assert_eq!(refused.status, 503, "{}", refused.text());
        assert_eq!(refused.header("x-should-retry"), Some("true"));
        assert!(refused.header("retry-after").is_some());
    }
    assert_eq!(simulator.requests().len(), 1);
    limit_files(&gateway, "unlimited");
    assert_eq!(hello(&gateway), 200);
    let rows = store.ended(2);
    assert_eq!(rows.len(), 2);
    assert_eq!(simulator.requests().len(), 2);
}

/// A damaged entry is lost with its usage, which the log, the metrics and the probe tell.
#[test]
fn usage_that_the_journal_loses_is_reported() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let store = Store::new();
    let config = || Config::before(&simulator, "", "").section(&store.settings());
    let mut gateway = config().start(GATEWAY);
    let other = store.writer();
    other
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON usage
             BEGIN SELECT abs(-9223372036854775808); END",
        )
        .unwrap();
    for _ in 0..3 {
        assert_eq!(hello(&gateway), 200);
    }
    let entries = |file: &PathBuf| {
        let text = std::fs::read(file).unwrap();
        text.iter().filter(|byte| **byte == b'\n').count()
    };
    await_that("all entries are journaled", || {
        journal_files(&store).iter().map(entries).sum::<usize>() == 6
    });
    gateway.signal("KILL");
    gateway.wait();
    let file = journal_files(&store).pop().unwrap();
    let mut text = std::fs::read(&file).unwrap();
    let second = text.iter().position(|byte| *byte == b'\n').unwrap() + 20;
    text[second] ^= 1;
    std::fs::write(&file, text).unwrap();
    other.execute_batch("DROP TRIGGER full").unwrap();

    let gateway = config().start(GATEWAY);
    let damaged = "sluicegate_journal_faults_total{kind=\"damaged_entries\"";
    await_that("the metric counts it", || gateway.sum(damaged) == 1.0);
    await_that("the log has it", || lines(&gateway, LOST) == 1);
    let ready = Request::get("/readyz").send(gateway.admin.unwrap());
    assert_eq!(ready.status, 200);
    assert_eq!(
        ready.text(),
        "ok\nthe journal has lost usage of earlier requests: damaged_entries 1\n"
    );
    assert_eq!(hello(&gateway), 200);
}

/// Entries that are written to removed files would never reach the store.
#[test]
fn nothing_is_served_without_the_folder_of_the_journal() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let store = Store::new();
    let config = Config::before(&simulator, "", "").section(&store.settings());
    let gateway = config.start(GATEWAY);
    assert_eq!(hello(&gateway), 200);
    store.ended(1);
    std::fs::remove_dir_all(store.folder().join("accounting.db.journal")).unwrap();
    assert_eq!(hello(&gateway), 503);
    assert_eq!(simulator.requests().len(), 1);
    let ready = Request::get("/readyz").send(gateway.admin.unwrap());
    assert_eq!(ready.status, 503);
    let reason = "the journal of usage cannot be written: No such file or directory";
    assert!(ready.text().starts_with(reason), "{}", ready.text());
    await_that("the log has it", || lines(&gateway, "failed_writes") >= 1);
    let failed = "sluicegate_journal_faults_total{kind=\"failed_writes\"";
    await_that("the metric counts it", || gateway.sum(failed) >= 1.0);
}

/// The files of all runs of gateways with this store.
fn journal_files(store: &Store) -> Vec<PathBuf> {
    let runs = std::fs::read_dir(store.folder().join("accounting.db.journal")).unwrap();
    let folders = runs
        .map(|run| run.unwrap().path())
        .filter(|run| run.is_dir());
    let files = folders.flat_map(|run| std::fs::read_dir(run).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|end| end == "journal"))
        .collect()
}

/// An end that cannot be written is kept in memory until it can.
#[test]
fn the_end_of_a_request_waits_for_room_on_the_disk() {
    let simulator =
        Simulator::start(|asked| simulator::Play::new().gate().then(edited(asked, count))).unwrap();
    let store = Store::new();
    let command = by_shell("trap '' XFSZ; exec \"$@\"", &GATEWAY.command());
    let gateway = Config::before(&simulator, "", "")
        .section(&store.settings())
        .start_by(GATEWAY, command);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| hello(&gateway));
        assert!(simulator.wait_for_requests(1, testkit::GUARD));
        limit_files(&gateway, "1");
        simulator.release();
        assert_eq!(asking.join().unwrap(), 200);
    });
    assert_eq!(hello(&gateway), 503);
    limit_files(&gateway, "unlimited");
    let rows = store.ended(1);
    assert_eq!((rows.len(), rows[0].state.as_str()), (1, "closed"));
    assert_eq!(rows[0].tokens.output, 317);
}

/// Without the section no file is made and none is written to: a process that is killed when it
/// writes even one byte to a file goes on.
#[test]
fn without_a_store_no_file_is_written() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let home = GATEWAY.file("upstream.key", UPSTREAM_KEY);
    let folder = home.0.parent().unwrap();
    let config = Config::before(&simulator, "", "")
        .section("[[prices]]\nmodel = \"*\"\ninput = \"2\"\noutput = \"8\"")
        .quota("requests_per_minute = 1000\ntokens_per_minute = 1000000");
    let mut command = by_shell("ulimit -f 0; exec \"$@\"", &GATEWAY.command());
    command.current_dir(folder).args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ]);
    for variable in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME"] {
        command.env(variable, folder);
    }
    let file = GATEWAY.file("sluicegate.toml", &config.text(&home.0));
    let beside = file.0.parent().unwrap().to_owned();
    let mut gateway = Gateway::run(&command, Stdio::piped(), Some(file));
    for protocol in PROTOCOLS {
        for stream in [false, true] {
            let body = ask(protocol, protocol_name(protocol), "Hello.", stream);
            let response = gateway.ask(protocol, &body);
            assert_eq!(response.status, 200, "{}", response.text());
        }
    }
    gateway.signal("TERM");
    assert!(gateway.wait().success());
    let files = |folder| {
        let files = std::fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    assert_eq!(files(folder), ["upstream.key"]);
    assert_eq!(files(&beside), ["sluicegate.toml"]);
}

/// Limits the size to which the process can write files, in bytes.
#[track_caller]
fn limit_files(gateway: &Gateway, bytes: &str) {
    let status = Command::new("prlimit")
        .args(["--pid", &gateway.id().to_string()])
        .arg(format!("--fsize={bytes}:unlimited"))
        .status();
    assert!(status.expect("prlimit runs").success());
}

pub(crate) const AWAY: &str = "the accounting store is away";
const REFUSED: &str = "the accounting store refuses some usage, which was set aside";
const LOST: &str = "the journal has lost usage of earlier requests";
pub(crate) const BACK: &str = "the accounting store is back";
