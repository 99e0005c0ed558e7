//! O: more than the gateway takes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use simulator::{Cut, Play, Protocol, Request, Simulator, honest};
use wire::ErrorKind;

use crate::client::{self, Connection, Response};
use crate::house::{CLIENT_KEY, House};
use crate::question::ask;
use crate::scene::{Got, Lane, PATIENT, Scene, honest_text, lanes, request};
use crate::server::{TEXT, await_that};

/// A gateway for so many requests at once.
fn limited(limit: usize, behave: impl Fn(&Request) -> Play + Send + Sync + 'static) -> Scene {
    let limits = format!("concurrency = {limit}\nconcurrency_per_key = {limit}");
    Scene::playing(behave, &limits, PATIENT)
}

/// Answers once it is let.
fn gated(request: &Request) -> Play {
    Play::new().gate().then(honest::answer(request))
}

/// Whether a stream on this lane is told of the limit within the stream.
fn is_told_within(lane: &Lane) -> bool {
    lane.client == Protocol::Responses
}

#[track_caller]
fn is_over_the_limit(got: &Got) {
    got.is_refused(ErrorKind::RateLimit, "gateway_concurrency_limit");
    assert_eq!(got.response.header("retry-after"), Some("1"));
    assert!((1000..2000).contains(&milliseconds(&got.response)));
}

fn milliseconds(response: &Response) -> u32 {
    response.header("retry-after-ms").unwrap().parse().unwrap()
}

/// One request more than the limit is refused at once with 429, `gateway_concurrency_limit` and `Retry-After: 1`; its
/// connection can be used again.
#[test]
fn o01_one_too_many_is_refused_and_may_come_again() {
    let scene = limited(1, gated);
    let mut first = scene.open(lanes()[0], false);
    scene.await_requests(1);
    let mut refused = Vec::new();
    for lane in lanes() {
        let mut connection = scene.open(lane, false);
        let got = Got::new(lane, connection.response(), honest_text(lane, false, "Hello, you there."));
        is_over_the_limit(&got);
        refused.push((lane, connection));
    }
    assert_eq!(scene.simulator.requests().len(), 1, "nobody was asked");
    scene.simulator.release_all();
    assert_eq!(first.response().status, 200);
    scene.house.gateway.await_quiet();
    for (lane, mut connection) in refused {
        scene.sent.fetch_add(1, Ordering::Relaxed);
        connection.send(&request(lane, false, "Hello.").bytes());
        assert_eq!(connection.response().status, 200, "{lane:?}");
        scene.house.gateway.await_quiet();
    }
    scene.end();
}

/// A Responses stream over the limit is 200 with one `response.failed` of that code; a stream of every other protocol
/// is 429 before it begins.
#[test]
fn o02_o03_streams_over_the_limit_are_told_as_their_protocol_can() {
    let scene = limited(1, gated);
    let mut first = scene.open(lanes()[0], true);
    scene.await_requests(1);
    for lane in lanes() {
        let got = scene.ask(lane, true);
        if is_told_within(&lane) { got.fails_with("gateway_concurrency_limit") } else { is_over_the_limit(&got) }
    }
    assert_eq!(scene.simulator.requests().len(), 1, "nobody was asked");
    scene.simulator.release_all();
    assert_eq!(first.response().status, 200);
    scene.end();
}

/// Whatever clients and upstreams do, no more permits are out than there are, and all come back.
#[test]
fn o04_permits_come_back_whatever_happens() {
    let faults: [fn(&Request) -> Play; 4] = [
        honest::answer,
        |request| honest::answer(request).cut_at(30, Cut::Reset),
        |request| honest::answer(request).cut_at(60, Cut::Close),
        |request| honest::answer(request).cut_at(90, Cut::Clean),
    ];
    let scene = limited(4, move |request| faults[request.number % faults.len()](request));
    thread::scope(|scope| {
        for (number, lane) in lanes().into_iter().cycle().take(60).enumerate() {
            let scene = &scene;
            scope.spawn(move || match number % 3 {
                0 => drop(scene.open(lane, true).head()),
                _ => drop(scene.ask(lane, number % 2 == 0)),
            });
        }
        for _ in 0..50 {
            assert!((0.0..=4.0).contains(&scene.house.gateway.metric("sluicegate_in_flight")));
        }
    });
    scene.end();
}

/// Five times as many clients as are taken, each of which comes again three times at once when it is refused, take
/// nothing from those who are served; the operator's address answers all the while, and afterwards all is as before.
/// Figures: `cargo xtask soak overload`.
#[test]
fn o05_o06_o09_o10_a_storm_of_retries_takes_nothing_from_those_who_are_served() {
    const LIMIT: usize = 8;
    const ENOUGH: usize = 10 * LIMIT;
    let scene = limited(LIMIT, |request| honest::answer(request).paced(Duration::from_millis(50)));
    let (served, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let body = ask(Protocol::Chat, "chat", "Hello.", false);
    let question = crate::house::request(Protocol::Chat, &body);
    let storm = || {
        let mut connection = Connection::open(scene.house.address());
        while served.load(Ordering::Relaxed) < ENOUGH {
            for _ in 0..4 {
                connection.send(&question.bytes());
                let response = connection.response();
                match response.status {
                    200 => served.fetch_add(1, Ordering::Relaxed),
                    429 => continue,
                    other => panic!("{other}: {}", response.text()),
                };
            }
        }
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..5 * LIMIT).map(|_| scope.spawn(storm)).collect();
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for path in ["/livez", "/readyz", "/metrics"] {
                    assert_eq!(client::Request::get(path).send(scene.house.gateway.admin.unwrap()).status, 200);
                }
            }
        });
        let ended: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    scene.house.gateway.await_quiet();
    let metrics = &scene.house;
    await_that("the last is counted", || {
        metrics.sum("sluicegate_requests_total{") >= served.load(Ordering::Relaxed) as f64
    });
    assert!(metrics.sum("sluicegate_requests_total{route=\"chat_completions\",status=\"429\"") > 0.0);
    assert_eq!(scene.simulator.requests().len(), served.load(Ordering::Relaxed), "nobody else was asked");
    assert_eq!(question.send(scene.house.address()).status, 200);
}

/// Those who are refused together are not told to come back at the same time.
#[test]
fn o06_the_time_to_come_back_is_spread() {
    let scene = limited(1, gated);
    let _first = scene.open(lanes()[0], false);
    scene.await_requests(1);
    let mut told: Vec<_> = (0..20).map(|_| milliseconds(&scene.ask(lanes()[0], false).response)).collect();
    assert!(told.iter().all(|told| (1000..2000).contains(told)), "{told:?}");
    told.sort_unstable();
    told.dedup();
    assert!(told.len() > 10, "{told:?}");
}

/// A key that takes all it may leaves the rest to the others.
#[test]
fn o07_one_key_cannot_take_what_is_anothers() {
    let simulator = Simulator::start(gated).unwrap();
    let house = House::before(&simulator, "their-model", "concurrency = 4\nconcurrency_per_key = 2", PATIENT);
    let question = |key| {
        let body = ask(Protocol::Chat, "chat", "Hello.", false);
        client::Request::post("/v1/chat/completions", &body).bearer(key)
    };
    let open = |key| {
        let mut connection = Connection::open(house.address());
        connection.send(&question(key).bytes());
        connection
    };
    let mut held: Vec<_> = [CLIENT_KEY, CLIENT_KEY].map(open).into();
    await_that("both have a permit", || house.gateway.metric("sluicegate_in_flight") == 2.0);
    assert_eq!(question(CLIENT_KEY).send(house.address()).status, 429);
    held.extend([TEXT, TEXT].map(open));
    await_that("the other key has its own", || house.gateway.metric("sluicegate_in_flight") == 4.0);
    assert_eq!(question(TEXT).send(house.address()).status, 429);
    simulator.release_all();
    assert!(held.iter_mut().all(|connection| connection.response().status == 200));
    house.gateway.await_quiet();
}
