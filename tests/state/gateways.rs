//! Several gateways with one database of PostgreSQL.

use std::process::Command;

use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::requests::{ask, protocol_name};
use testkit::usage::{count, edited};
use testkit::{CLIENT_KEY, Config, Gateway, Request, Response, await_that};

use crate::GATEWAY;
use crate::away::{AWAY, BACK, lines};
use crate::database::Database as _;
use crate::postgres::Postgres;

const ADMIN: &str = "sg_test_admin_key_00000000000000000000";

const MONEY: &str = include_str!("../../crates/server/packaging/chart/monitoring/money.json");

/// The password of the database, as it is and as an address has it.
const PASSWORDS: [&str; 2] = ["p@ss:w/rd", "p%40ss%3Aw%2Frd"];

fn command(database: &Postgres) -> Command {
    let mut command = database.command();
    command.env("SLUICEGATE_ADMIN_KEY", ADMIN);
    command
}

/// Starts a gateway with the name `gate-N`, which reaches the database with TLS and a password.
fn start(simulator: &Simulator, database: &Postgres, number: usize) -> Gateway {
    let state = format!(
        "[state]\naccounting = \"{}\"\nreplica = \"gate-{number}\"\nrenewal = \"100ms\"\n\
         admin_hosts = [\"gateway\"]\n",
        database.tls_url()
    );
    Config::before(simulator, "", "")
        .section(&state)
        .section("[[prices]]\nmodel = \"*\"\ninput = \"2\"\noutput = \"8\"")
        .start_by(GATEWAY, command(database))
}

fn administer(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Response {
    let request = match method {
        "POST" => Request::post(path, body),
        _ => Request::get(path).method(method),
    };
    request.bearer(ADMIN).send(gateway.admin.unwrap())
}

fn hello(gateway: &Gateway, key: &str) -> u16 {
    let body = ask(
        Protocol::Chat,
        protocol_name(Protocol::Chat),
        "Hello.",
        false,
    );
    gateway.post(key, "/v1/chat/completions", &body).status
}

/// A key that one gateway makes is accepted by the other at its next renewal, until it is revoked,
/// and the answers of both add up.
#[test]
#[ignore = "needs a PostgreSQL: cargo xtask shared"]
fn keys_and_usage_are_shared_by_all_gateways() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let database = Postgres::new();
    let [first, second] = [1, 2].map(|number| start(&simulator, &database, number));
    let new = json!({"name": "mobile", "scopes": ["text"]});
    let made = administer(&first, "POST", "/admin/v1/keys", &new);
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    let key = made["key"].as_str().unwrap();
    assert_eq!(hello(&first, key), 200);
    await_that("the other gateway knows the key", || {
        hello(&second, key) == 200
    });
    for gateway in [&first, &second] {
        for _ in 0..3 {
            assert_eq!(hello(gateway, key), 200);
        }
    }
    // 1,303 tokens of the prompt with 1,024 from the cache, and 317 of the answer, for each of 8:
    // 1,303 at 2,000 billionths and 317 at 8,000 are 5,142,000.
    let usage = "/admin/v1/usage?by=key";
    let sums = || administer(&second, "GET", usage, &Value::Null).json()["usage"].clone();
    await_that("all requests have ended", || {
        sums()[0]["requests"] == 8 && sums()[0]["open"] == 0
    });
    let sum = sums()[0].clone();
    assert_eq!(sum["key"], "mobile", "{sum}");
    assert_eq!(sum["cost"], "0.041136", "{sum}");
    let by_gateway = "SELECT count(*) FROM usage WHERE state = 'closed' GROUP BY replica";
    assert_eq!(database.numbers(by_gateway), [4, 4]);

    let path = format!("/admin/v1/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(
        administer(&second, "DELETE", &path, &Value::Null).status,
        200
    );
    assert_eq!(hello(&second, key), 401);
    await_that("the other gateway refuses the key", || {
        hello(&first, key) == 401
    });
    for gateway in [&first, &second] {
        assert_no_password(&gateway.log.lock().unwrap());
    }
}

/// Each query of the dashboard about money has rows, and its cost is the cost of the requests.
#[test]
#[ignore = "needs a PostgreSQL: cargo xtask shared"]
fn queries_of_the_money_dashboard_have_the_stored_cost() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let database = Postgres::new();
    let gateway = start(&simulator, &database, 1);
    assert_eq!(hello(&gateway, CLIENT_KEY), 200);
    let closed = "SELECT count(*) FROM usage WHERE state = 'closed'";
    await_that("the request has ended", || database.figure(closed) == 1);
    administer(&gateway, "GET", "/admin/v1/usage", &Value::Null);
    let dashboard: Value = serde_json::from_str(MONEY).unwrap();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let panels = list(&dashboard["panels"]).into_iter();
    let targets = panels.flat_map(|panel| list(&panel["targets"]));
    let queries = targets.filter_map(|target| target["rawSql"].as_str().map(in_psql));
    let variables = list(&dashboard["templating"]["list"]).into_iter();
    let variables = variables.filter_map(|variable| variable["query"].as_str().map(in_psql));
    let queries: Vec<_> = queries.collect();
    let choices = variables.filter(|query| query.starts_with("SELECT"));
    for query in queries.iter().cloned().chain(choices) {
        let rows = format!("SELECT count(*) FROM ({query}) AS rows");
        assert_eq!(database.figure(&rows), 1, "{query}");
    }
    // 1,303 tokens of the prompt at 2,000 billionths and 317 at 8,000, as above.
    let cost = format!("SELECT (cost * 1e9)::bigint FROM ({}) AS rows", queries[0]);
    assert_eq!(database.figure(&cost), 5_142_000);
}

/// A query of Grafana, for all keys and models and all of the time.
fn in_psql(query: &str) -> String {
    let mut query = query.to_owned();
    for (variable, value) in [
        ("$__unixEpochFrom()", "0"),
        ("$__unixEpochTo()", "9999999999"),
        ("${key:sqlstring}", "SELECT key FROM sluicegate.rollups"),
        ("${model:sqlstring}", "SELECT model FROM sluicegate.rollups"),
    ] {
        query = query.replace(variable, value);
    }
    query
}

/// Requests go on while the database lets nobody in, and it has them once it is back.
#[test]
#[ignore = "needs a PostgreSQL: cargo xtask shared"]
fn requests_go_on_while_the_database_is_away() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let database = Postgres::new();
    let gateway = start(&simulator, &database, 1);
    assert_eq!(hello(&gateway, CLIENT_KEY), 200);
    database.set_away(true);
    await_that("the log says so", || lines(&gateway, AWAY) == 1);
    for _ in 0..10 {
        assert_eq!(hello(&gateway, CLIENT_KEY), 200);
    }
    let listed = administer(&gateway, "GET", "/admin/v1/keys", &Value::Null);
    assert_eq!(listed.status, 503, "{}", listed.text());
    database.set_away(false);
    await_that("the log says so", || lines(&gateway, BACK) == 1);
    await_that("all rows are stored", || {
        database.figure("SELECT count(*) FROM usage WHERE state = 'closed'") == 11
    });
    assert_no_password(&gateway.log.lock().unwrap());
}

/// A start waits for a database that lets nobody in yet.
#[test]
#[ignore = "needs a PostgreSQL: cargo xtask shared"]
fn a_start_waits_for_a_database_that_may_come() {
    let database = Postgres::new();
    database.set_away(true);
    let log = GATEWAY.file("log", "");
    let state = format!(
        "[state]\naccounting = \"{}\"\njournal = \"{}\"\n{}",
        database.tls_url(),
        log.0.with_file_name("journal").display(),
        testkit::NOWHERE
    );
    std::thread::scope(|scope| {
        let file = std::fs::File::create(&log.0).unwrap();
        let starting = scope.spawn(|| GATEWAY.logging_to(file, &state));
        await_that("the start waits", || {
            let log = std::fs::read_to_string(&log.0).unwrap();
            log.contains("the start waits up to 15 s for the accounting store")
        });
        assert!(!starting.is_finished());
        database.set_away(false);
        let gateway = starting.join().unwrap();
        let models = Request::get("/v1/models").bearer(testkit::TEXT);
        assert_eq!(models.send(gateway.address()).status, 200);
    });
}

/// A database that lets this user never in is an error at once, which has no password, and `check`
/// changes nothing.
#[test]
#[ignore = "needs a PostgreSQL: cargo xtask shared"]
fn unusable_database_is_an_error_without_the_password() {
    let database = Postgres::new();
    let wrong = database.tls_url().replace("p%40ss", "wr%40ng");
    for command in ["serve", "check"] {
        let (succeeded, printed) = run(command, &database, &wrong);
        assert!(!succeeded);
        for part in [
            "state.accounting: the accounting store postgres://localhost:",
            " refuses the operation: db error: FATAL: password authentication failed for user \"postgres\"",
        ] {
            assert!(printed.contains(part), "{printed}");
        }
        assert!(
            !printed.contains("wr%40ng") && !printed.contains("wr@ng"),
            "{printed}"
        );
    }
    let (succeeded, printed) = run("check", &database, &database.tls_url());
    assert!(succeeded, "{printed}");
    let new = " is new: its tables are created at the start\n";
    assert!(printed.contains(new), "{printed}");
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'sluicegate'";
    assert_eq!(database.figure(schemas), 0);
    let simulator = Simulator::honest().unwrap();
    drop(start(&simulator, &database, 1));
    let (succeeded, printed) = run("check", &database, &database.tls_url());
    assert!(succeeded && printed.contains(" has 0 keys\n"), "{printed}");
}

/// Runs a command for a gateway with the database at an address, and returns whether it succeeded,
/// and its output.
fn run(command: &str, database: &Postgres, url: &str) -> (bool, String) {
    let text = format!("[state]\naccounting = \"{url}\"\n{}", testkit::NOWHERE);
    let file = GATEWAY.file("sluicegate.toml", &text);
    let mut gateway = self::command(database);
    gateway.arg(command).arg("--config").arg(&file.0);
    let output = gateway.output().unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_no_password(&printed);
    (output.status.success(), printed)
}

#[track_caller]
fn assert_no_password(text: &str) {
    assert!(!PASSWORDS.iter().any(|word| text.contains(word)), "{text}");
}
