//! Keys that are revoked at one of several gateways with the same store. The others are not told: they
//! look for changes once in each renewal.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use simulator::{Play, Protocol, Simulator, Step, honest};
use testkit::requests::{TEXT_PROTOCOLS, ask, path, protocol_name};
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Request, Response, await_that, exchange};

use crate::GATEWAY;
use crate::away::lines;
use crate::store::Store;

const ADMIN: &str = "sg_test_admin_key_00000000000000000000";
const RENEWAL: Duration = Duration::from_secs(3);
/// The time that a revocation may take beyond a renewal: 200 ms, and a second for a busy machine.
const SLACK: Duration = Duration::from_millis(200 + 1_000);

/// Starts three gateways with one store.
fn fleet(simulator: &Simulator, store: &Store) -> Vec<Gateway> {
    let state = format!(
        "[state]\naccounting = \"sqlite:{}\"\nrenewal = \"{}s\"\nadmin_hosts = [\"gateway\"]\n",
        store.path().display(),
        RENEWAL.as_secs()
    );
    let start = |_| {
        let mut command = GATEWAY.command();
        command.env("SLUICEGATE_ADMIN_KEY", ADMIN);
        Config::before(simulator, "", "")
            .section(&state)
            .start_by(GATEWAY, command)
    };
    (0..3).map(start).collect()
}

/// An upstream whose streams stall after their first events, until they are released.
fn stalling() -> Simulator {
    Simulator::start(|asked| {
        let answer = honest::answer(asked);
        if !String::from_utf8_lossy(&asked.body).contains("\"stream\":true") {
            return answer;
        }
        let mut events = answer.pieces().cloned();
        // A stream begins for its client with the first content.
        let begun = events.by_ref().take(5).fold(Play::stream(), Play::body);
        events.fold(begun.gate(), Play::body).step(Step::End)
    })
    .unwrap()
}

fn administer(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Response {
    let request = match method {
        "POST" => Request::post(path, body),
        _ => Request::get(path).method(method),
    };
    request.bearer(ADMIN).send(gateway.admin.unwrap())
}

/// Makes a key, and returns it with its path in the admin API.
fn create(gateway: &Gateway, name: &str) -> (String, String) {
    let new = json!({"name": name, "scopes": ["text", "messages"]});
    let made = administer(gateway, "POST", "/admin/v1/keys", &new);
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    let path = format!("/admin/v1/keys/{}", made["id"].as_str().unwrap());
    (made["key"].as_str().unwrap().to_owned(), path)
}

fn is_accepted(gateway: &Gateway, key: &str) -> bool {
    let body = ask(Protocol::Chat, "chat", "Hello.", false);
    match gateway.post(key, "/v1/chat/completions", &body).status {
        200 => true,
        401 => false,
        other => panic!("{other}"),
    }
}

/// An admin request with another key, or for another host, is refused and logged without its key.
#[test]
fn refused_admin_requests_are_logged() {
    let store = Store::new();
    let gateway = fleet(&Simulator::start(honest::answer).unwrap(), &store).remove(0);
    let admin = gateway.admin.unwrap();
    let list = || Request::get("/admin/v1/keys");
    assert_eq!(list().bearer(CLIENT_KEY).send(admin).status, 401);
    assert_eq!(list().send(admin).status, 401);
    await_that("both are logged", || lines(&gateway, WRONG_KEY) == 2);
    assert_eq!(lines(&gateway, CLIENT_KEY), 0);
    assert_eq!(list().bearer(ADMIN).send(admin).status, 200);
    let foreign = format!(
        "GET /admin/v1/keys HTTP/1.1\r\nhost: evil.example\r\nauthorization: Bearer {ADMIN}\r\n\
         connection: close\r\n\r\n"
    );
    assert_eq!(exchange(admin, foreign).statuses(), [421]);
    await_that("the host is logged", || lines(&gateway, WRONG_HOST) == 1);
    assert_eq!(lines(&gateway, WRONG_KEY), 2);
    assert_eq!(lines(&gateway, ADMIN), 0);
}

const WRONG_KEY: &str = "an admin request was refused: wrong key";
const WRONG_HOST: &str = "an admin request was refused: wrong host";

/// A stream of a protocol at a gateway, after its first chunk.
fn stream(gateway: &Gateway, key: &str, protocol: Protocol) -> (Connection, Response) {
    let body = ask(protocol, protocol_name(protocol), "Hello.", true);
    let mut connection = Connection::open(gateway.address());
    let mut asked = Request::post(path(protocol), &body).bearer(key);
    if protocol == Protocol::Messages {
        asked = asked.header("anthropic-version", "2023-06-01");
    }
    connection.send(asked.bytes());
    let head = connection.head().unwrap();
    assert_eq!(head.status, 200);
    assert!(!connection.chunk().unwrap().is_empty());
    (connection, head)
}

/// The failure with which a protocol ends a stream.
fn failure(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "event: response.failed\n",
        Protocol::Chat => "data: {\"error\":",
        Protocol::Messages => "event: error\n",
        Protocol::Images => unreachable!("no text"),
    }
}

/// The end of a complete stream of a protocol.
fn success(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "event: response.completed\n",
        Protocol::Chat => "data: [DONE]\n",
        Protocol::Messages => "event: message_stop\n",
        Protocol::Images => unreachable!("no text"),
    }
}

/// Waits until a gateway refuses a key, and returns when it did.
fn refused_at(gateway: &Gateway, key: &str) -> Instant {
    await_that("the key is refused", || !is_accepted(gateway, key));
    now()
}

#[allow(
    clippy::disallowed_methods,
    reason = "the time of a revocation is bounded by the renewal"
)]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn every_gateway_refuses_a_revoked_key_within_a_renewal() {
    let (simulator, store) = (stalling(), Store::new());
    let fleet = fleet(&simulator, &store);
    let (key, path) = create(&fleet[0], "mobile");
    for gateway in &fleet {
        await_that("the key is known", || is_accepted(gateway, &key));
    }
    let revoked = now();
    assert_eq!(
        administer(&fleet[0], "DELETE", &path, &Value::Null).status,
        200
    );
    assert!(
        !is_accepted(&fleet[0], &key),
        "at once where it was revoked"
    );
    let refused = std::thread::scope(|scope| {
        let others = fleet[1..].iter();
        let others: Vec<_> = others
            .map(|gateway| scope.spawn(|| refused_at(gateway, &key)))
            .collect();
        let times = others.into_iter().map(|other| other.join().unwrap());
        times.collect::<Vec<_>>()
    });
    for at in refused {
        let took = at - revoked;
        assert!(took <= RENEWAL + SLACK, "{took:?}");
    }
}

/// Streams of a key that is revoked with `streams=end` fail within the same time, and streams of
/// another key go on to their end.
#[test]
fn the_streams_of_a_revoked_key_end_at_every_gateway() {
    let (simulator, store) = (stalling(), Store::new());
    let fleet = fleet(&simulator, &store);
    let (ended, path) = create(&fleet[0], "ended");
    let (kept, _) = create(&fleet[0], "kept");
    for gateway in &fleet {
        for key in [&ended, &kept] {
            await_that("the key is known", || is_accepted(gateway, key));
        }
    }
    let all = fleet
        .iter()
        .flat_map(|gateway| TEXT_PROTOCOLS.map(|protocol| (gateway, protocol)));
    let streams: Vec<_> = all
        .map(|(gateway, protocol)| (protocol, stream(gateway, &ended, protocol)))
        .collect();
    let others = fleet
        .iter()
        .zip(TEXT_PROTOCOLS)
        .map(|(gateway, protocol)| (protocol, stream(gateway, &kept, protocol)));
    let others: Vec<_> = others.collect();
    let revoked = now();
    let revoke = format!("{path}?streams=end");
    assert_eq!(
        administer(&fleet[0], "DELETE", &revoke, &Value::Null).status,
        200
    );
    for (protocol, (mut connection, head)) in streams {
        let rest = connection.body_of(head);
        let rest = rest.text();
        assert!(rest.contains(failure(protocol)), "{protocol:?}: {rest}");
        assert!(!rest.contains(success(protocol)), "{protocol:?}: {rest}");
    }
    let took = revoked.elapsed();
    assert!(took <= RENEWAL + SLACK, "{took:?}");
    for gateway in &fleet {
        assert_eq!(gateway.metric("sluicegate_in_flight"), 1.0);
    }
    simulator.release_all();
    for (protocol, (mut connection, head)) in others {
        let rest = connection.body_of(head);
        assert!(rest.is_complete());
        let rest = rest.text();
        assert!(rest.contains(success(protocol)), "{protocol:?}: {rest}");
        assert!(!rest.contains(failure(protocol)), "{protocol:?}: {rest}");
    }
}
