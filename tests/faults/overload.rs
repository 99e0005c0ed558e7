//! O: more requests than the gateway accepts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use grammar::Judged as _;
use simulator::{Cut, Play, Protocol, Request, honest};
use testkit::requests::ask;
use testkit::upstreams::{FaultTest, GUARD, Lane, Outcome, PATIENT, honest_text, lanes, request};
use testkit::{CLIENT_KEY, Connection, Response, TEXT, await_that};
use wire::ErrorKind;

use crate::GATEWAY;

/// A gateway with this limit of concurrent requests.
fn limited(limit: usize, behave: impl Fn(&Request) -> Play + Send + Sync + 'static) -> FaultTest {
    let limits = format!("concurrency = {limit}\nconcurrency_per_key = {limit}");
    FaultTest::playing(GATEWAY, behave, &limits, PATIENT)
}

/// Answers once the test opens the gate.
fn gated(request: &Request) -> Play {
    Play::new().gate().then(honest::answer(request))
}

/// Returns true if a stream on this lane reports the limit as an event within the stream.
fn is_refused_within(lane: &Lane) -> bool {
    lane.client == Protocol::Responses
}

#[track_caller]
fn is_over_the_limit(got: &Outcome) {
    got.is_refused(ErrorKind::RateLimit, "gateway_concurrency_limit");
    assert_eq!(got.response.header("retry-after"), Some("1"));
    assert!((1000..2000).contains(&milliseconds(&got.response)));
}

fn milliseconds(response: &Response) -> u32 {
    response.header("retry-after-ms").unwrap().parse().unwrap()
}

/// A request over the concurrency limit is refused at once with 429, `gateway_concurrency_limit`
/// and `Retry-After: 1`, and its connection can be reused.
#[test]
fn o01_one_too_many_is_refused_and_may_come_again() {
    let test = limited(1, gated);
    let mut first = test.open(lanes()[0], false);
    test.await_requests(1);
    let mut refused = Vec::new();
    for lane in lanes() {
        let mut connection = test.open(lane, false);
        let got = Outcome::new(
            lane,
            connection.response(),
            honest_text(lane, false, "Hello, you there."),
        );
        is_over_the_limit(&got);
        refused.push((lane, connection));
    }
    assert_eq!(
        test.simulator.requests().len(),
        1,
        "no upstream request was sent"
    );
    test.simulator.release_all();
    assert_eq!(first.response().status, 200);
    test.gateway.await_quiet();
    for (lane, mut connection) in refused {
        test.sent.fetch_add(1, Ordering::Relaxed);
        connection.send(request(lane, false, "Hello.").bytes());
        assert_eq!(connection.response().status, 200, "{lane:?}");
        test.gateway.await_quiet();
    }
    test.end();
}

/// A Responses stream over the concurrency limit is 200 with one `response.failed` event of that
/// code; a stream of every other protocol is 429 before it starts.
#[test]
fn o02_o03_excess_stream_is_refused_in_its_protocol() {
    let test = limited(1, gated);
    let mut first = test.open(lanes()[0], true);
    test.await_requests(1);
    for lane in lanes() {
        let got = test.ask(lane, true);
        if is_refused_within(&lane) {
            got.fails_with("gateway_concurrency_limit");
        } else {
            is_over_the_limit(&got);
        }
    }
    assert_eq!(
        test.simulator.requests().len(),
        1,
        "no upstream request was sent"
    );
    test.simulator.release_all();
    assert_eq!(first.response().status, 200);
    test.end();
}

/// However requests end, the permits in use never exceed the limits per key and overall, and all of
/// them are returned.
#[test]
fn o04_all_permits_are_returned_however_requests_end() {
    let test = FaultTest::playing(
        GATEWAY,
        as_asked,
        "concurrency = 5\nconcurrency_per_key = 4",
        PATIENT,
    );
    thread::scope(|scope| {
        for turn in 0..6 {
            for lane in lanes() {
                let test = &test;
                scope.spawn(move || comes_and_goes(test, lane, turn));
            }
        }
        for _ in 0..50 {
            assert!((0.0..=4.0).contains(&in_flight(&test)), "all have one key");
        }
    });
    test.gateway.await_quiet();
    let mut held = take_all(&test, CLIENT_KEY, 4);
    held.extend(take_all(&test, TEXT, 1));
    test.simulator.release_all();
    assert!(
        held.iter_mut()
            .all(|connection| connection.response().status == 200)
    );
    test.end();
}

/// Sends one request that ends in a different way in each turn. Only upstreams of the client's own
/// protocol abort.
fn comes_and_goes(test: &FaultTest, lane: Lane, turn: usize) {
    let is_relayed = lane.client == lane.upstream;
    match turn {
        // The client disconnects once the head has arrived.
        0 => assert!(
            matches!(test.open(lane, true).head().unwrap().status, 200 | 429),
            "{lane:?}"
        ),
        1 => admitted(test, lane, false, "Hello.").is_whole(),
        2 if is_relayed => admitted(test, lane, false, RESET).is_bad_gateway(),
        3 if is_relayed => admitted(test, lane, true, CLOSE).fails_at_once_or_later(),
        4 if is_relayed => admitted(test, lane, true, END).is_bad_gateway(),
        _ => admitted(test, lane, true, "Hello.").is_whole(),
    }
}

/// Retries until there is a permit; each earlier refusal is one for the limit.
fn admitted(test: &FaultTest, lane: Lane, stream: bool, text: &str) -> Outcome {
    for _ in 0..1_000 {
        let got = test.ask_with(lane, stream, text);
        if got.response.status == 429 {
            is_over_the_limit(&got);
        } else if stream
            && is_refused_within(&lane)
            && got.response.text().contains("gateway_concurrency_limit")
        {
            got.fails_with("gateway_concurrency_limit");
        } else {
            return got;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("{lane:?}: there is never a permit");
}

/// Answers as the text of the request demands.
fn as_asked(request: &Request) -> Play {
    let asked = String::from_utf8_lossy(&request.body);
    let answer = honest::answer(request);
    match [WAIT, RESET, CLOSE, END]
        .into_iter()
        .find(|text| asked.contains(text))
    {
        Some(WAIT) => Play::new().gate().then(answer),
        Some(RESET) => answer.cut_at(30, Cut::Reset),
        Some(CLOSE) => answer.cut_at(700, Cut::Close),
        Some(END) => answer.cut_at(90, Cut::Clean),
        _ => answer,
    }
}

/// Takes all permits of a key, and keeps them until the upstream is allowed to answer.
#[track_caller]
fn take_all(test: &FaultTest, key: &str, permits: usize) -> Vec<Connection> {
    test.sent.fetch_add(permits + 1, Ordering::Relaxed);
    let question = |text| {
        let body = ask(Protocol::Chat, "chat", text, false);
        testkit::Request::post("/v1/chat/completions", &body).bearer(key)
    };
    let before = in_flight(test);
    let open = |_| {
        let mut connection = Connection::open(test.gateway.address());
        connection.send(question(WAIT).bytes());
        connection
    };
    let held = (0..permits).map(open).collect();
    await_that("each has a permit", || {
        in_flight(test) == before + permits as f64
    });
    assert_eq!(
        question("Hello.").send(test.gateway.address()).status,
        429,
        "there is no permit more"
    );
    held
}

fn in_flight(test: &FaultTest) -> f64 {
    test.gateway.metric("sluicegate_in_flight")
}

/// While five times as many clients as the limit allows each retry three times without a delay, the
/// accepted requests are served completely, and refused requests do not reach an upstream. Figures:
/// `cargo xtask soak overload`.
#[test]
fn o05_o06_retry_storm_does_not_affect_accepted_requests() {
    let test = limited(LIMIT, unhurried);
    let storm = storm(&test);
    assert!(storm.refused > 0, "the limit was felt");
    assert_eq!(
        test.simulator.requests().len(),
        storm.served,
        "no other upstream request was sent"
    );
    let refused = "sluicegate_requests_total{route=\"chat_completions\",status=\"429\"";
    await_that("each refusal is counted", || {
        test.gateway.sum(refused) == storm.refused as f64
    });
    test.end();
}

/// After a storm of retries no connection is left, and the concurrency limit is available in full.
#[test]
fn o09_after_a_storm_of_retries_all_is_as_before() {
    let test = limited(LIMIT, unhurried);
    storm(&test);
    test.gateway.await_quiet();
    await_that("all have gone", || {
        test.gateway.metric("sluicegate_connections") == 0.0
    });
    let mut held = take_all(&test, CLIENT_KEY, LIMIT);
    test.simulator.release_all();
    assert!(
        held.iter_mut()
            .all(|connection| connection.response().status == 200)
    );
    test.end();
}

/// The admin listener responds throughout a storm of retries.
#[test]
fn o10_operators_are_answered_in_a_storm_of_retries() {
    let test = limited(LIMIT, unhurried);
    let admin = test.gateway.admin.unwrap();
    thread::scope(|scope| {
        let storm = scope.spawn(|| storm(&test));
        test.await_requests(LIMIT);
        let mut rounds = 0;
        while !storm.is_finished() {
            for path in ["/livez", "/readyz", "/metrics"] {
                assert_eq!(
                    testkit::Request::get(path).send(admin).status,
                    200,
                    "{path}"
                );
            }
            rounds += 1;
        }
        assert!(rounds > 1 && storm.join().is_ok(), "{rounds} rounds");
    });
    test.end();
}

/// The result of a storm.
struct Storm {
    served: usize,
    refused: usize,
}

/// Runs five times as many clients as the limit allows, until ten times the limit was served. Each
/// client sends its requests in rounds of four, without a delay after a refusal.
fn storm(test: &FaultTest) -> Storm {
    const ENOUGH: usize = 10 * LIMIT;
    let (served, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let lane = Lane {
        client: Protocol::Chat,
        upstream: Protocol::Chat,
    };
    let (bytes, honest) = (
        request(lane, false, "Hello.").bytes(),
        honest_text(lane, false, "Hello."),
    );
    let started = now();
    let client = || {
        let mut connection = Connection::open(test.gateway.address());
        while served.load(Ordering::Relaxed) < ENOUGH {
            assert!(
                started.elapsed() < GUARD,
                "only {served:?} of {ENOUGH} were served"
            );
            for _ in 0..4 {
                connection.send(&bytes);
                let got = Outcome::new(lane, connection.response(), honest.clone());
                if got.response.status == 429 {
                    is_over_the_limit(&got);
                    refused.fetch_add(1, Ordering::Relaxed);
                } else {
                    got.is_whole();
                    served.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    thread::scope(|scope| (0..5 * LIMIT).for_each(|_| _ = scope.spawn(client)));
    let storm = Storm {
        served: served.into_inner(),
        refused: refused.into_inner(),
    };
    test.sent
        .fetch_add(storm.served + storm.refused, Ordering::Relaxed);
    storm
}

/// Answers after a delay, or waits at a gate if the request says so.
fn unhurried(request: &Request) -> Play {
    as_asked(request).paced(Duration::from_millis(50))
}

/// Requests that are refused together get different Retry-After values.
#[test]
fn o06_the_time_to_come_back_is_spread() {
    let test = limited(1, gated);
    let _first = test.open(lanes()[0], false);
    test.await_requests(1);
    let mut delays: Vec<_> = (0..20)
        .map(|_| milliseconds(&test.ask(lanes()[0], false).response))
        .collect();
    assert!(
        delays.iter().all(|delay| (1000..2000).contains(delay)),
        "{delays:?}"
    );
    delays.sort_unstable();
    delays.dedup();
    assert!(delays.len() > 10, "{delays:?}");
}

/// A key that uses all of its permits leaves the rest to other keys.
#[test]
fn o07_key_cannot_take_permits_of_other_keys() {
    let test = FaultTest::playing(
        GATEWAY,
        as_asked,
        "concurrency = 4\nconcurrency_per_key = 2",
        PATIENT,
    );
    let mut held = take_all(&test, CLIENT_KEY, 2);
    held.extend(take_all(&test, TEXT, 2));
    test.simulator.release_all();
    assert!(
        held.iter_mut()
            .all(|connection| connection.response().status == 200)
    );
    test.end();
}

#[allow(
    clippy::disallowed_methods,
    reason = "a guard against hanging needs a clock"
)]
fn now() -> Instant {
    Instant::now()
}

const LIMIT: usize = 8;
/// Texts that make the upstream wait for the test, and abort before or after the first event.
const WAIT: &str = "Please wait.";
const RESET: &str = "Please reset.";
const CLOSE: &str = "Please close.";
const END: &str = "Please end.";
