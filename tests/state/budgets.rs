//! Budgets: the refusals when they are spent, and the amounts that count as spent.

use std::path::Path;

use serde_json::json;
use simulator::{Play, Protocol, Request as Asked, Simulator, honest};
use testkit::requests::{ask, protocol_name, request};
use testkit::usage::{count, edited};
use testkit::{Config, Connection, GUARD, Gateway, Response, await_that};

use crate::GATEWAY;
use crate::store::Store;

/// A store that gateways open one after another, and the upstream that they are in front of.
struct Shop {
    simulator: Simulator,
    store: Store,
}

impl Shop {
    fn new(behave: impl Fn(&Asked) -> Play + Send + Sync + 'static) -> Self {
        Self {
            simulator: Simulator::start(behave).unwrap(),
            store: Store::new(),
        }
    }

    /// A shop whose upstream reports the tokens of [`count`].
    fn counting() -> Self {
        Self::new(|asked| edited(asked, count))
    }

    /// Starts a gateway with a budget of this amount for each key.
    fn open(&self, amount: &str) -> Gateway {
        let budget = format!("key = \"*\"\n{}", budget(amount));
        self.config().quota(&budget).start(GATEWAY)
    }

    fn open_without_budget(&self) -> Gateway {
        self.config().start(GATEWAY)
    }

    fn config(&self) -> Config {
        Config::before(&self.simulator, "", "")
            .section(&self.store.settings())
            .section(PRICES)
    }
}

fn budget(amount: &str) -> String {
    format!("budget = {{ amount = \"{amount}\", currency = \"USD\", window = \"month\" }}")
}

fn send(gateway: &Gateway, protocol: Protocol, stream: bool) -> Response {
    let body = ask(protocol, protocol_name(protocol), "Hello.", stream);
    gateway.ask(protocol, &body)
}

/// Sends plain requests until one is refused, and returns the number of those that were answered.
#[track_caller]
fn spend(gateway: &Gateway, protocol: Protocol) -> usize {
    for answered in 0..20 {
        let response = send(gateway, protocol, false);
        match response.status {
            200 => {}
            429 => return answered,
            status => panic!("{status}: {}", response.text()),
        }
    }
    panic!("the budget has no end");
}

/// Asserts that a response says that the budget is used up, and that trying again is of no use.
#[track_caller]
fn check_refusal(protocol: Protocol, refused: &Response) {
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    assert_eq!(refused.header("retry-after"), None);
    assert_eq!(refused.header("retry-after-ms"), None);
    let body = refused.json();
    let error = &body["error"];
    assert_eq!(
        error["message"],
        "You exceeded your current quota, please check your plan and billing details."
    );
    match protocol {
        Protocol::Messages => {
            assert_eq!(body["type"], "error");
            assert_eq!(error["type"], "rate_limit_error");
        }
        _ => assert_eq!(error["code"], "insufficient_quota"),
    }
}

/// Requests that come one after another are admitted until the budget is used up, however long their
/// answers may become.
#[test]
fn requests_over_budget_are_refused_in_their_protocol() {
    for (protocol, answered) in [
        // Each costs 3,190,000, and three cost 9,570,000.
        (Protocol::Responses, 4),
        // Each costs 3,734,000, and two cost 7,468,000.
        (Protocol::Chat, 3),
        // Each costs 5,530,500.
        (Protocol::Messages, 2),
    ] {
        let shop = Shop::counting();
        let gateway = shop.open("0.0105");
        assert_eq!(spend(&gateway, protocol), answered, "{protocol:?}");
        check_refusal(protocol, &send(&gateway, protocol, false));
        let streamed = send(&gateway, protocol, true);
        if protocol == Protocol::Responses {
            assert!(streamed.is_stream());
            let text = streamed.text();
            assert!(text.contains("event: response.failed"), "{text}");
            assert!(text.contains(r#""code":"insufficient_quota""#), "{text}");
        } else {
            check_refusal(protocol, &streamed);
        }
        assert_eq!(shop.simulator.requests().len(), answered);
        assert_eq!(shop.store.ended(answered).len(), answered);
    }
}

#[test]
fn spending_survives_a_restart() {
    let shop = Shop::counting();
    let mut gateway = shop.open("0.0105");
    assert_eq!(spend(&gateway, Protocol::Chat), 3);
    gateway.signal("TERM");
    assert!(gateway.wait().success());
    let gateway = shop.open("0.0105");
    check_refusal(Protocol::Chat, &send(&gateway, Protocol::Chat, false));
    // Money that one protocol has spent is gone for all.
    check_refusal(
        Protocol::Messages,
        &send(&gateway, Protocol::Messages, false),
    );
    assert_eq!(shop.simulator.requests().len(), 3);
}

/// A process that is killed may leave all that was spent in the journal: the next one sends it to the
/// store before it admits anyone.
#[test]
fn spending_survives_a_kill_while_the_store_is_away() {
    let shop = Shop::counting();
    let mut gateway = shop.open("0.0105");
    let other = shop.store.writer();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(spend(&gateway, Protocol::Chat), 3);
    gateway.signal("KILL");
    gateway.wait();
    // Each leaves a journal of its own.
    for _ in 0..5 {
        let mut gateway = shop.open_without_budget();
        assert_eq!(send(&gateway, Protocol::Chat, false).status, 200);
        gateway.signal("KILL");
        gateway.wait();
    }
    assert_eq!(shop.store.rows(), []);
    other.execute_batch("ROLLBACK").unwrap();
    // 8 × 3,734,000 are 29,872,000, and without the last of them there would be room for one more.
    let gateway = shop.open("0.0298");
    check_refusal(Protocol::Chat, &send(&gateway, Protocol::Chat, false));
    assert_eq!(shop.store.rows().len(), 8);
}

/// The reservation of a request counts until its cost is known. After a kill, it stays counted.
#[test]
fn reservations_count_as_spent() {
    let shop = Shop::new(|asked| match honest::answer(asked) {
        play if asked.path.ends_with("/messages") => play,
        play => Play::new().gate().then(play),
    });
    let mut gateway = shop.open("0.0105");
    let mut first = Connection::open(gateway.address());
    // 32,000 tokens of the answer are reserved, which is more than all.
    let body = ask(Protocol::Chat, "chat", "Hello.", true);
    first.send(request(Protocol::Chat, &body).bytes());
    assert!(shop.simulator.wait_for_requests(1, GUARD));
    check_refusal(Protocol::Chat, &send(&gateway, Protocol::Chat, false));
    shop.simulator.release();
    assert_eq!(first.response().status, 200);
    gateway.await_quiet();
    // The answer was much shorter.
    let mut second = Connection::open(gateway.address());
    let mut body = ask(Protocol::Chat, "chat", "Hello.", false);
    body["n"] = json!(1);
    second.send(request(Protocol::Chat, &body).bytes());
    assert!(shop.simulator.wait_for_requests(2, GUARD));
    gateway.signal("KILL");
    gateway.wait();
    let gateway = shop.open("0.0105");
    let rows = shop.store.ended(2);
    assert_eq!(rows[1].state, "abandoned");
    let spent = shop
        .store
        .number("SELECT sum(ifnull(cost_nanos, reserved_nanos)) FROM usage");
    let reserved = shop
        .store
        .number("SELECT reserved_nanos FROM usage WHERE state = 'abandoned'");
    // The prompt has less than 100 tokens at 2,500.
    assert!((320_000_000..320_250_000).contains(&reserved), "{reserved}");
    drop(gateway);
    let amount = |nanos: i64| format!("0.{nanos:09}");
    let gateway = shop.open(&amount(spent));
    check_refusal(
        Protocol::Messages,
        &send(&gateway, Protocol::Messages, false),
    );
    drop(gateway);
    let gateway = shop.open(&amount(spent + 1));
    assert_eq!(send(&gateway, Protocol::Messages, false).status, 200);
}

/// A reload with another amount keeps the spent amount.
#[test]
fn the_amount_can_be_changed() {
    let shop = Shop::counting();
    let gateway = shop.open("0.0105");
    assert_eq!(spend(&gateway, Protocol::Chat), 3);
    // 11,202,000 are spent, and after one more 14,936,000.
    change(&gateway, "0.0105", "0.0141");
    assert_eq!(spend(&gateway, Protocol::Chat), 1);
    change(&gateway, "0.0141", "0.001");
    check_refusal(Protocol::Chat, &send(&gateway, Protocol::Chat, false));
    assert_eq!(shop.simulator.requests().len(), 4);
}

/// A reload with another window reads what was spent in it, and does not wait for the renewal of keys.
#[test]
fn spending_of_a_changed_window_is_read_at_once() {
    let shop = Shop::counting();
    let settings = shop.store.settings().replace("100ms", "1h");
    let gateway = Config::before(&shop.simulator, "", "")
        .section(&settings)
        .section(PRICES)
        .quota(&budget("0.05"))
        .start(GATEWAY);
    // Each costs 3,734,000, and thirteen cost 48,542,000.
    assert_eq!(spend(&gateway, Protocol::Chat), 14);
    change(&gateway, "month", "week");
    await_that("the spending is read", || {
        send(&gateway, Protocol::Chat, false).status == 429
    });
    let asked = shop.simulator.requests().len();
    assert!(asked < 28, "{asked}: the budget has begun again");
}

#[track_caller]
fn change(gateway: &Gateway, from: &str, to: &str) {
    let path: &Path = gateway.config_path();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from));
    let reloads = || gateway.sum("sluicegate_config_reloads_total{outcome=\"taken\"}");
    let before = reloads();
    std::fs::write(path, text.replace(from, to)).unwrap();
    gateway.signal("HUP");
    await_that("the amount is reloaded", || reloads() > before);
}

/// A budget for all keys and models together, and one for each key, are both spent.
#[test]
fn every_budget_that_applies_is_charged() {
    let shop = Shop::counting();
    let gateway = shop
        .config()
        .quota(&budget("0.05"))
        .quota(&format!("models = [\"chat\"]\n{}", budget("0.0105")))
        .start(GATEWAY);
    assert_eq!(spend(&gateway, Protocol::Chat), 3);
    // The other models are left: 11,202,000 are spent of 50,000,000. Each costs 5,530,500, and before
    // the last one 11,202,000 + 7 × 5,530,500 = 49,915,500 are spent.
    assert_eq!(spend(&gateway, Protocol::Messages), 8);
}

const PRICES: &str = r#"
[[prices]]
model = "*"
input = "2"
cached_input = "0.50"
cache_write = "2.50"
output = "8"
reasoning = "10"
"#;
