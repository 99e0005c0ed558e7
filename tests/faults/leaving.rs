//! D: graceful shutdown.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use grammar::Judged as _;
use simulator::{Cut, Play, Protocol, Request, Step, honest};
use testkit::requests::{self, ask, protocol_name};
use testkit::upstreams::{FaultTest, Lane, Outcome, PATIENT, honest_text, lanes, request};
use testkit::{Connection, await_that};
use wire::ErrorKind;

use crate::GATEWAY;

const TEXT: &str = "Hello, you there.";

/// A gateway that shuts down on request, with this drain timeout for open responses.
fn leaving(drain: &str, behave: impl Fn(&Request) -> Play + Send + Sync + 'static) -> FaultTest {
    FaultTest::playing(
        GATEWAY,
        behave,
        &format!("lame_duck = \"1ms\"\ndrain = \"{drain}\""),
        PATIENT,
    )
}

/// Sends all but the end of a reply, and then nothing more.
fn endless(request: &Request) -> Play {
    let play = honest::answer(request);
    let pieces = play.pieces().count();
    play.cut_after(pieces - 1, Cut::Hold)
}

/// Pauses in the middle of a stream until the test continues it.
fn hesitant(request: &Request) -> Play {
    let whole = honest::answer(request);
    let pieces = whole.pieces().enumerate();
    let play = pieces.fold(Play::stream(), |play, (place, piece)| {
        let play = if place == 1 { play.gate() } else { play };
        play.body(piece.clone())
    });
    play.step(Step::End)
}

/// Opens a stream on each lane; they reach the upstream in the same order.
fn streams(test: &FaultTest) -> Vec<(Lane, Connection)> {
    let mut open = Vec::new();
    for lane in lanes() {
        open.push((lane, test.open(lane, true)));
        test.await_requests(open.len());
    }
    open
}

/// Waits until no connection is accepted any more.
fn await_closed(address: SocketAddr) {
    await_that("the listener is closed", || {
        Connection::try_open(address).is_none()
    });
}

/// Clients that keep sending requests during shutdown are all answered for as long as they can
/// connect, and from the signal on every response closes its connection.
#[test]
fn d01_no_request_is_lost_while_it_leaves() {
    let pause = Duration::from_millis(20);
    let behave = move |request: &Request| Play::new().pause(pause).then(honest::answer(request));
    let mut test = FaultTest::playing(GATEWAY, behave, "lame_duck = \"300ms\"", PATIENT);
    let (address, answered) = (test.gateway.address(), AtomicUsize::new(0));
    let lane = lanes()[0];
    let question = request(lane, false, TEXT).bytes();
    let ask_on = || {
        let mut told_to_close = 0;
        while let Some(mut connection) = Connection::try_open(address) {
            loop {
                connection.send(&question);
                let response = connection.response();
                assert_eq!(
                    (response.status, response.is_complete()),
                    (200, true),
                    "{}",
                    response.text()
                );
                answered.fetch_add(1, Ordering::Relaxed);
                if response.header("connection") == Some("close") {
                    assert!(connection.is_ended(), "with a FIN");
                    told_to_close += 1;
                    break;
                }
            }
        }
        told_to_close
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(ask_on)).collect();
        await_that("all are served", || answered.load(Ordering::Relaxed) > 40);
        test.gateway.signal("TERM");
        for client in clients {
            assert!(
                client.join().unwrap() > 0,
                "it was still served after the signal"
            );
        }
    });
    assert!(test.gateway.wait().success());
    assert_eq!(
        test.simulator.requests().len(),
        answered.load(Ordering::Relaxed)
    );
}

/// Connections made before the listener closed are served, and so is a request sent on an idle
/// connection at that moment.
#[test]
fn d01_who_has_connected_is_answered() {
    let mut test = leaving("20s", honest::answer);
    let (address, lane) = (test.gateway.address(), lanes()[0]);
    let mut idle = test.open(lane, false);
    assert_eq!(idle.response().status, 200);
    let mut fresh = Connection::open(address);
    let question = request(lane, false, TEXT).bytes();
    fresh.send(&question[..10]);
    test.gateway.signal("TERM");
    await_closed(address);
    idle.send(&question);
    fresh.send(&question[10..]);
    for mut connection in [idle, fresh] {
        let response = connection.response();
        assert_eq!(
            (response.status, response.header("connection")),
            (200, Some("close"))
        );
        assert!(connection.is_ended());
    }
    assert!(test.gateway.wait().success());
}

/// During the shutdown delay the gateway is not ready but serves as before; then new connections
/// are refused, and requests in progress are completed.
#[test]
fn d01_d02_lame_duck_serves_then_open_requests_complete() {
    const STAY: Duration = Duration::from_secs(3);
    let behave = |request: &Request| {
        if request.streams() {
            hesitant(request)
        } else {
            honest::answer(request)
        }
    };
    let mut test = FaultTest::playing(
        GATEWAY,
        behave,
        "lame_duck = \"3s\"\ndrain = \"60s\"",
        PATIENT,
    );
    let (address, admin) = (test.gateway.address(), test.gateway.admin.unwrap());
    let answers = |path| testkit::Request::get(path).send(admin).status;
    assert_eq!(answers("/readyz"), 200);
    let mut open = streams(&test);
    test.gateway.signal("TERM");
    let signalled = now();
    await_that("it is not ready", || answers("/readyz") == 503);
    for lane in lanes() {
        open.push((lane, test.open(lane, true)));
        let got = test.ask(lane, false);
        got.is_whole();
        assert_eq!(got.response.header("connection"), Some("close"), "{lane:?}");
    }
    test.await_requests(3 * lanes().len());
    await_closed(address);
    assert!(
        signalled.elapsed() >= STAY,
        "newcomers are refused after {:?}",
        signalled.elapsed()
    );
    assert_eq!(
        (answers("/livez"), answers("/readyz")),
        (200, 503),
        "it is there for those who are"
    );
    test.simulator.release_all();
    for (lane, mut connection) in open {
        Outcome::new(lane, connection.response(), honest_text(lane, true, TEXT)).is_whole();
        assert!(connection.is_ended(), "{lane:?}");
    }
    assert!(test.gateway.wait().success());
}

/// Streams that end before the drain deadline are complete, and relayed ones are byte for byte as
/// the upstream sent them.
#[test]
fn d02_streams_that_end_in_time_are_whole() {
    let behave = |request: &Request| {
        if request.streams() {
            hesitant(request)
        } else {
            honest::answer(request)
        }
    };
    let mut test = leaving("60s", behave);
    let open = streams(&test);
    let requests = test.simulator.requests();
    let mut idle = test.open(lanes()[0], false);
    assert_eq!(idle.response().status, 200);
    test.gateway.signal("TERM");
    assert!(
        idle.is_ended(),
        "connections that are idle are closed when the drain begins"
    );
    await_closed(test.gateway.address());
    test.simulator.release_all();
    for ((lane, mut connection), request) in open.into_iter().zip(&requests) {
        let got = Outcome::new(lane, connection.response(), honest_text(lane, true, TEXT));
        got.is_whole();
        // In Chat the details of the usage are left out.
        if lane.client == lane.upstream && lane.client != Protocol::Chat {
            let expected = String::from_utf8(honest::answer(request).body_bytes()).unwrap();
            assert_eq!(
                got.response.text(),
                expected.replace("their-model", protocol_name(lane.client))
            );
        }
        assert!(connection.is_ended());
    }
    assert!(test.gateway.wait().success());
}

/// Streams that are open at the drain deadline get exactly one failure event and a FIN; their
/// outcome is `shutdown`, and the process exits with status 0 soon after it.
#[test]
fn d03_streams_past_the_deadline_end_with_a_failure() {
    let mut test = leaving("1s", endless);
    let open = streams(&test);
    test.gateway.signal("TERM");
    let signalled = now();
    thread::scope(|scope| {
        for (lane, mut connection) in open {
            scope.spawn(move || {
                let got = Outcome::new(lane, connection.response(), honest_text(lane, true, TEXT));
                got.fails();
                assert!(
                    got.response.is_complete() && connection.is_ended(),
                    "{lane:?}: the end is a proper one"
                );
            });
        }
    });
    assert_eq!(test.gateway.wait().code(), Some(0));
    assert!(
        signalled.elapsed() < Duration::from_secs(1) + GRACE,
        "{:?}",
        signalled.elapsed()
    );
    await_that("each outcome is logged", || {
        let log = test.gateway.log.lock().unwrap();
        log.matches("\"outcome\":\"shutdown\"").count() == lanes().len()
    });
}

/// A client that does not read its failure event does not delay the exit, which happens soon after the
/// deadline.
#[test]
fn d03_stalled_client_does_not_delay_the_exit() {
    let scenario = simulator::scenario::named("endless-deltas").unwrap();
    let mut test = leaving("100ms", move |request| scenario.play(request));
    let lane = lanes()[0];
    let mut stuck = test.open(lane, true);
    assert_eq!(stuck.head().unwrap().status, 200);
    test.gateway.signal("TERM");
    let signalled = now();
    assert_eq!(test.gateway.wait().code(), Some(0));
    assert!(
        signalled.elapsed() < Duration::from_millis(100) + GRACE,
        "{:?}",
        signalled.elapsed()
    );
}

/// A second signal, of either kind, ends the process at once with a failure status.
#[test]
fn d04_a_second_signal_ends_it_at_once() {
    for (limits, second) in [
        ("lame_duck = \"1h\"", "TERM"),
        ("lame_duck = \"1ms\"\ndrain = \"1h\"", "INT"),
    ] {
        let mut test = FaultTest::playing(GATEWAY, endless, limits, PATIENT);
        let _open = streams(&test);
        let gateway = &mut test.gateway;
        gateway.signal("TERM");
        let ready = testkit::Request::get("/readyz");
        await_that("it leaves", || {
            ready.send(gateway.admin.unwrap()).status == 503
        });
        gateway.signal(second);
        assert_eq!(gateway.wait().code(), Some(130), "{limits}");
    }
}

/// A request without a response by the drain deadline is answered with 503 and Retry-After, both
/// during its upload and while it waits for the upstream.
#[test]
fn d05_request_without_response_at_the_deadline_is_503() {
    let mut test = leaving("1s", |_| Play::new().hold());
    let mut open = Vec::new();
    for (lane, stream) in lanes()
        .into_iter()
        .flat_map(|lane| [(lane, false), (lane, true)])
    {
        open.push((lane, test.open(lane, stream)));
        let mut uploading = Connection::open(test.gateway.address());
        let bytes = requests::request(
            lane.client,
            &ask(lane.client, protocol_name(lane.upstream), TEXT, stream),
        )
        .bytes();
        uploading.send(&bytes[..bytes.len() - 5]);
        open.push((lane, uploading));
    }
    test.await_requests(lanes().len() * 2);
    test.gateway.signal("TERM");
    for (lane, mut connection) in open {
        let got = Outcome::new(lane, connection.response(), String::new());
        got.is_refused(ErrorKind::Unavailable, "service_unavailable");
        assert_eq!(
            got.response.json()["error"]["message"],
            "The service is shutting down."
        );
        assert_eq!(got.response.header("retry-after"), Some("2"));
        assert!(connection.is_ended(), "{lane:?}");
    }
    assert_eq!(test.gateway.wait().code(), Some(0));
}

#[allow(
    clippy::disallowed_methods,
    reason = "a guard against hanging needs a clock"
)]
fn now() -> Instant {
    Instant::now()
}

/// The time after the deadline within which the process exits, also on a machine with other work. It
/// needs up to 2 s; if it waited for clients that read nothing, it would take the 30 s of
/// `limits.write_stall`.
const GRACE: Duration = Duration::from_secs(10);
