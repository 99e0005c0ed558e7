//! Requests that run while their gateway is cut off from the store, or sleeps, for longer than its lease.

use std::time::Duration;

use simulator::{Play, Protocol, Request, Simulator, honest};
use testkit::requests::{TEXT_PROTOCOLS, ask, protocol_name, request};
use testkit::{Connection, Gateway, Response, await_that, events, log};

use crate::black_hole::Path;
use crate::fleet::{self, burst, status};
use crate::judge::{Judge, now};
use crate::load::Load;
use crate::store::Store;

const LEASE: Duration = Duration::from_secs(3);
/// The text of a request that the model server does not finish.
const ENDLESS: &str = "Wait.";

/// Requests that take less than half of a lease never exceed the quota, although none is ended: a
/// gateway whose connection stalls stops admitting in time, and its late messages change nothing.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn short_requests_fit_when_a_connection_stalls() {
    const CAP: usize = 12;
    let (store, judge) = (Store::start(), Judge::taking(Duration::from_millis(700)));
    let path = Path::to(&store);
    let addresses = [store.address(), store.address(), path.address()];
    let fleet = fleet::start_at(&addresses, LEASE, &judge, "concurrency = 12");
    await_that("the store lends", || status(&fleet[0]) == 200);
    let from = now();
    let await_full = |from| {
        await_that("all of the quota is used", || {
            judge.most_at_once(from) >= CAP
        });
    };
    let all: Vec<_> = fleet.iter().collect();
    Load::run(&all, 8, |_| {
        await_full(from);
        path.close();
        let closed = now();
        await_that("two leases have passed", || closed.elapsed() >= 2 * LEASE);
        path.open();
        await_full(now());
        let opened = now();
        await_that("a lease has passed", || opened.elapsed() >= LEASE);
    });
    assert_eq!(judge.most_at_once(from), CAP);
}

/// With `lost_lease = "end"`, requests that would go on end before the store lends their permits to
/// others: a plain one with an error, and streams with the failure of their protocol.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn requests_end_with_their_lease_if_that_is_set() {
    let (store, server) = (Store::start(), endless());
    let path = Path::to(&store);
    let fleet = ending(&[path.address(), store.address()], &server);
    let (plain, streams) = running(&fleet[0], &server);
    path.close();
    let closed = now();
    check_ended(&fleet[0], plain, streams);
    for number in 0..server.requests().len() {
        if is_endless(&server.requests()[number]) {
            let ended = server.wait_for_close(number, LEASE).expect("it ends");
            let after = ended.duration_since(closed);
            // The store lends again after a lease and a tenth.
            assert!(after < LEASE + LEASE / 10, "{after:?}");
        }
    }
    await_that("the others get all of the quota", || {
        burst(&fleet[1], 4) == 4
    });
}

/// A process that was stopped past its lease ends them when it goes on.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_sleeper_ends_its_requests_when_it_wakes() {
    let (store, server) = (Store::start(), endless());
    let fleet = ending(&[store.address(), store.address()], &server);
    let (plain, streams) = running(&fleet[0], &server);
    fleet[0].signal("STOP");
    await_that("the quota has changed hands", || burst(&fleet[1], 4) == 4);
    fleet[0].signal("CONT");
    check_ended(&fleet[0], plain, streams);
}

/// A model server that does not finish requests with the text [`ENDLESS`].
fn endless() -> Simulator {
    let simulator = Simulator::start(|asked| {
        let answer = honest::answer(asked);
        match (is_endless(asked), asked.streams()) {
            (false, _) => answer,
            (true, false) => Play::new().hold(),
            (true, true) => {
                let begun = answer.pieces().take(3).cloned();
                begun.fold(Play::stream(), Play::body).hold()
            }
        }
    });
    simulator.unwrap()
}

fn is_endless(asked: &Request) -> bool {
    String::from_utf8_lossy(&asked.body).contains(ENDLESS)
}

/// Gateways that share a concurrency of four and end requests with their lease.
fn ending(addresses: &[String], server: &Simulator) -> Vec<Gateway> {
    let settings = "lost_lease = \"end\"";
    let fleet = fleet::start_with(addresses, LEASE, settings, server, "concurrency = 4");
    await_that("the store lends", || status(&fleet[0]) == 200);
    fleet
}

/// Sends a plain request and a stream of each protocol, and waits until all are at the model server.
fn running(
    gateway: &Gateway,
    server: &Simulator,
) -> (Connection, Vec<(Protocol, Connection, Response)>) {
    let send = |protocol, stream| {
        let body = ask(protocol, protocol_name(protocol), ENDLESS, stream);
        let mut connection = Connection::open(gateway.address());
        connection.send(request(protocol, &body).bytes());
        connection
    };
    let plain = send(Protocol::Chat, false);
    let begun = |protocol| {
        let mut connection = send(protocol, true);
        let head = connection.head().unwrap();
        assert_eq!(head.status, 200);
        (protocol, connection, head)
    };
    let streams = TEXT_PROTOCOLS.map(begun).into();
    let at_server = || server.requests().iter().filter(|it| is_endless(it)).count();
    await_that("all requests are at the model server", || at_server() == 4);
    (plain, streams)
}

/// Checks that the requests of [`running`] end by a failure.
fn check_ended(
    gateway: &Gateway,
    mut plain: Connection,
    streams: Vec<(Protocol, Connection, Response)>,
) {
    for (protocol, mut connection, head) in streams {
        let stream = connection.body_of(head);
        let text = stream.text();
        assert!(stream.is_complete(), "{protocol:?}: {text}");
        assert_eq!(events::ends(&stream.body), 1, "{protocol:?}: {text}");
        let failure = match protocol {
            Protocol::Responses => "event: response.failed\n",
            Protocol::Messages => "event: error\n",
            _ => "data: {\"error\":",
        };
        assert!(text.contains(failure), "{protocol:?}: {text}");
        assert_eq!(log::line(gateway, &stream)["outcome"], "lease_lost");
    }
    let refused = plain.response();
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], "service_unavailable");
    assert_eq!(log::line(gateway, &refused)["outcome"], "lease_lost");
}
