//! Processes that are killed under load: each request that an upstream was asked for has exactly one
//! row.
//!
//! A request has a model of its own, which both the upstream and the row see: the gateway passes the
//! names of models through. So the two can be compared without trusting either.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use simulator::{Protocol, Simulator};
use testkit::requests::{ask, request};
use testkit::usage::{count, edited};
use testkit::{Config, Connection, Gateway, await_that};

use crate::GATEWAY;
use crate::database::Database;
use crate::store::Store;

/// The models that the upstream was asked for, in order.
type Asked = Arc<Mutex<Vec<String>>>;

#[test]
fn every_upstream_request_has_one_row_after_kills() {
    kill_and_check(&Store::new());
}

#[cfg(feature = "postgres")]
#[test]
#[ignore = "needs a PostgreSQL: cargo xtask shared"]
fn every_upstream_request_has_one_row_after_kills_in_postgres() {
    kill_and_check(&crate::postgres::Postgres::new());
}

fn kill_and_check(store: &dyn Database) {
    let asked = Asked::default();
    let simulator = simulator(&asked);
    let open = || open(&simulator, store);
    let mut dice = Dice::seeded();
    let next = AtomicU64::new(0);
    let mut answered = BTreeSet::new();
    for _ in 0..kills() {
        let mut gateway = open();
        let goal = asked.lock().unwrap().len() + dice.below(60) as usize;
        let pause = Duration::from_micros(dice.below(3_000));
        answered.extend(load(&gateway, &next, || {
            await_that("there is load", || asked.lock().unwrap().len() >= goal);
            std::thread::sleep(pause);
            gateway.signal("KILL");
        }));
        gateway.wait();
    }
    // Another process stores the rows that the last one has left behind, and the sums of all rows.
    let mut gateway = open();
    let journal = store.journal();
    await_that("the journals of the dead are sent", || {
        std::fs::read_dir(&journal).unwrap().count() == 2
    });
    gateway.signal("TERM");
    assert!(gateway.wait().success());
    drop(open());

    let asked = asked.lock().unwrap();
    let asked: BTreeSet<String> = asked.iter().cloned().collect();
    check_rows(store, &asked, &answered);
    check_sums(store);
    let [closed, abandoned] = ["closed", "abandoned"].map(|state| {
        store.figure(&format!(
            "SELECT count(*) FROM usage WHERE state = '{state}'"
        ))
    });
    println!(
        "{} kills: {} requests asked for, {} answered, {closed} rows closed, {abandoned} abandoned",
        kills(),
        asked.len(),
        answered.len()
    );
}

fn check_rows(store: &dyn Database, asked: &BTreeSet<String>, answered: &BTreeSet<String>) {
    let mut rows = BTreeMap::<String, usize>::new();
    for model in store.texts("SELECT model FROM usage") {
        *rows.entry(model).or_default() += 1;
    }
    let missing: Vec<_> = asked
        .iter()
        .filter(|model| !rows.contains_key(*model))
        .collect();
    assert_eq!(missing, Vec::<&String>::new(), "asked for without a row");
    let twice: Vec<_> = rows.iter().filter(|(_, count)| **count != 1).collect();
    assert_eq!(twice, [], "rows of one request");
    assert!(answered.is_subset(asked));
    assert!(!answered.is_empty());
    let states = store.texts("SELECT DISTINCT state FROM usage ORDER BY state");
    assert_eq!(states, ["abandoned", "closed"]);
    // A request that has ended has the reported usage, unless its client was cut off.
    let costs = store.numbers(
        "SELECT DISTINCT cost_nanos FROM usage WHERE state = 'closed' AND outcome = 'completed'",
    );
    assert_eq!(costs, [CHAT_COST]);
}

/// Asserts that the sums of minutes, hours and days are the sums of the rows.
fn check_sums(store: &dyn Database) {
    assert_eq!(store.figure("SELECT count(*) FROM rollups_due"), 0);
    for (sum, over_rows) in [
        ("requests", "count(*)"),
        ("open", "count(CASE state WHEN 'open' THEN 1 END)"),
        ("abandoned", "count(CASE state WHEN 'abandoned' THEN 1 END)"),
        ("input", "sum(input)"),
        ("cache_read", "sum(cache_read)"),
        ("output", "sum(output)"),
        ("reasoning", "sum(reasoning)"),
        ("cost_nanos", "sum(cost_nanos)"),
        (
            "abandoned_nanos",
            "sum(CASE state WHEN 'abandoned' THEN reserved_nanos END)",
        ),
    ] {
        let expected = store.figure(&format!("SELECT CAST({over_rows} AS bigint) FROM usage"));
        for grain in [60_000, 3_600_000, 86_400_000] {
            let found =
                format!("SELECT CAST(sum({sum}) AS bigint) FROM rollups WHERE grain = {grain}");
            assert_eq!(store.figure(&found), expected, "{sum} by {grain} ms");
        }
    }
}

/// An upstream that notes the models that it is asked for.
fn simulator(asked: &Asked) -> Simulator {
    let asked = Arc::clone(asked);
    Simulator::start(move |request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let model = body["model"].as_str().unwrap().to_owned();
        asked.lock().unwrap().push(model);
        edited(request, count)
    })
    .unwrap()
}

/// Starts a gateway that passes all models to the simulator, with a budget that nobody reaches: the
/// spent amount is read at the start.
fn open(simulator: &Simulator, store: &dyn Database) -> Gateway {
    Config::new("")
        .section(&store.settings())
        .section("[[prices]]\nmodel = \"*\"\ninput = \"2\"\noutput = \"8\"")
        .quota("budget = { amount = \"9000.00\", currency = \"USD\", window = \"month\" }")
        .upstream("chat", Protocol::Chat, &simulator.base_url(), "")
        .model("m-*", Protocol::Chat, "[{ upstream = \"chat\" }]")
        .start_by(GATEWAY, store.command())
}

/// Sends requests on several connections, half of them streams and some of them translated, until
/// `kill` has returned and the connections are dead. Returns the models of those that were answered.
fn load(gateway: &Gateway, next: &AtomicU64, kill: impl FnOnce()) -> Vec<String> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = || {
            let mut answered = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let Some(mut connection) = Connection::try_open(gateway.address()) else {
                    continue;
                };
                while let Some(model) = send(&mut connection, next) {
                    answered.push(model);
                }
            }
            answered
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        kill();
        is_over.store(true, Ordering::Relaxed);
        let answered = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        answered.collect()
    })
}

/// Sends a request, and returns its model if it was answered.
fn send(connection: &mut Connection, next: &AtomicU64) -> Option<String> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    let model = format!("m-{number}");
    let protocol = match number % 3 {
        0 => Protocol::Messages,
        _ => Protocol::Chat,
    };
    let body = ask(protocol, &model, "Hello.", number.is_multiple_of(2));
    if !connection.try_send(request(protocol, &body).bytes()) {
        return None;
    }
    let head = connection.head().ok()?;
    assert_eq!(head.status, 200);
    connection.body_of(head).is_complete().then_some(model)
}

/// The number of kills.
fn kills() -> u64 {
    std::env::var("SLUICEGATE_KILLS").map_or(15, |kills| kills.parse().unwrap())
}

/// Random numbers from the seed of the tests.
struct Dice(u64);

impl Dice {
    fn seeded() -> Self {
        let seed = std::env::var("SLUICEGATE_TEST_SEED");
        Self(seed.map_or(0, |seed| seed.parse().unwrap()))
    }

    fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// 1,303 tokens at 2,000 billionths and 317 at 8,000: 2,606,000 + 2,536,000.
const CHAT_COST: i64 = 5_142_000;
const CLIENTS: usize = 4;
