//! C: clients that disconnect, and clients that do not read.

use std::net::Shutdown;
use std::sync::atomic::Ordering;

use simulator::{Cut, Play, Request, honest, scenario};
use testkit::upstreams::{FaultTest, PATIENT, assert_closed, lanes, request, text_lanes};
use testkit::{End, await_that};

use crate::GATEWAY;

/// The upstream connection is closed when the client disconnects before the response head.
#[test]
fn c01_gone_before_the_head() {
    for (stream, how) in [
        (true, Shutdown::Both),
        (false, Shutdown::Both),
        (true, Shutdown::Write),
    ] {
        let test = FaultTest::named(GATEWAY, "stall-head", PATIENT);
        for (number, lane) in lanes().into_iter().enumerate() {
            let connection = test.open(lane, stream);
            test.await_requests(number + 1);
            connection.disconnect(how);
            assert_closed(&test.simulator, number);
        }
        let gone = || {
            test.gateway
                .sum_of("sluicegate_requests_total{", "status=\"499\"")
        };
        await_that("they are counted as gone", || {
            gone() == lanes().len() as f64
        });
        test.end();
    }
}

/// The upstream connection is closed when the client disconnects in the middle of a stream.
#[test]
fn c01_gone_in_the_middle() {
    // All but the end: truncated before the last event, and within it.
    let plays: [fn(&Request) -> Play; 2] = [
        |request| {
            let play = honest::answer(request);
            let events = play.pieces().count();
            play.cut_after(events - 1, Cut::Hold)
        },
        |request| {
            let play = honest::answer(request);
            let bytes = play.body_bytes().len();
            play.cut_at(bytes - 5, Cut::Hold)
        },
    ];
    for play in plays {
        for how in [Shutdown::Both, Shutdown::Write] {
            let test = FaultTest::playing(GATEWAY, play, "", PATIENT);
            for (number, lane) in lanes().into_iter().enumerate() {
                let mut connection = test.open(lane, true);
                assert_eq!(connection.head().unwrap().status, 200, "{lane:?}");
                assert!(connection.chunk().is_ok_and(|chunk| !chunk.is_empty()));
                connection.disconnect(how);
                assert_closed(&test.simulator, number);
            }
            test.streams_ended_as("client_gone");
            assert_eq!(
                test.gateway.sum("sluicegate_streams_ended_total{"),
                lanes().len() as f64
            );
            test.end();
        }
    }
}

/// The upstream connection is closed when the client disconnects while a plain reply is received.
#[test]
fn c01_gone_while_a_whole_reply_comes() {
    let test = FaultTest::playing(
        GATEWAY,
        |request| honest::answer(request).cut_at(20, Cut::Hold),
        "",
        PATIENT,
    );
    for (number, lane) in lanes().into_iter().enumerate() {
        let connection = test.open(lane, false);
        test.await_requests(number + 1);
        connection.disconnect(Shutdown::Both);
        assert_closed(&test.simulator, number);
    }
    test.end();
}

/// The upstream connection is closed when the client resets its connection with unread data.
#[test]
fn c01_reset_with_bytes_unread() {
    let test = FaultTest::named(GATEWAY, "endless-deltas", PATIENT);
    for (number, lane) in text_lanes().into_iter().enumerate() {
        let mut connection = test.open(lane, true);
        assert_eq!(connection.head().unwrap().status, 200, "{lane:?}");
        assert!(connection.chunk().is_ok());
        // Closing a socket with unread bytes sends a reset.
        drop(connection);
        assert_closed(&test.simulator, number);
    }
    // An event that is repeated forever has the same sequence number each time, so that the relay
    // of Responses may end earlier.
    let gone = || {
        test.gateway
            .sum_of("sluicegate_streams_ended_total{", "outcome=\"client_gone\"")
    };
    await_that("they are gone", || {
        gone() >= (text_lanes().len() - 1) as f64
    });
    test.end();
}

/// A client that disconnects after the end of its stream is counted once.
#[test]
fn c01_gone_after_the_end() {
    let test = FaultTest::playing(GATEWAY, honest::answer, "", PATIENT);
    for lane in lanes() {
        let mut connection = test.open(lane, true);
        assert!(connection.response().is_complete());
        connection.disconnect(Shutdown::Both);
    }
    test.gateway.await_quiet();
    assert_eq!(
        test.gateway.sum("sluicegate_streams_ended_total{"),
        lanes().len() as f64
    );
    test.end();
}

/// A half-closed client is treated as disconnected, and the upstream connection is closed.
#[test]
fn c02_half_closed_clients_are_gone() {
    let test = FaultTest::named(GATEWAY, "delay-60000", PATIENT);
    for (number, lane) in text_lanes().into_iter().enumerate() {
        let connection = test.open(lane, true);
        test.await_requests(number + 1);
        connection.disconnect(Shutdown::Write);
        assert_closed(&test.simulator, number);
    }
    test.end();
}

/// A client that does not read is reset after the write timeout, and its upstream connection is
/// closed.
#[test]
fn c03_u19_a_client_that_does_not_read_is_given_up() {
    let scenario = scenario::named("endless-deltas").unwrap();
    let limits = "write_stall = \"500ms\"\nsend_buffer = \"64KiB\"";
    let test = FaultTest::playing(
        GATEWAY,
        move |request| scenario.play(request),
        limits,
        PATIENT,
    );
    let of = |outcome: &str| {
        test.gateway.sum_of(
            "sluicegate_streams_ended_total{",
            &format!("outcome=\"{outcome}\""),
        )
    };
    let mut open: Vec<_> = text_lanes()
        .into_iter()
        .map(|lane| (lane, test.open(lane, true)))
        .collect();
    for (lane, connection) in &mut open {
        assert_eq!(connection.head().unwrap().status, 200, "{lane:?}");
    }
    // From here on nothing is read; the connections stay open.
    test.await_requests(open.len());
    test.all_closed();
    let all = open.len() as f64;
    await_that("the streams have ended", || {
        test.gateway.sum("sluicegate_streams_ended_total{") == all
    });
    assert_eq!((of("slow_reader"), open.len()), (all, 9));
    for (lane, mut connection) in open {
        assert!(
            connection.rest().1 == End::Reset,
            "{lane:?}: the system does not keep the rest for it"
        );
    }
    test.end();
}

/// When many clients disconnect at once, all upstream connections are closed and all permits are
/// returned.
#[test]
fn c04_many_clients_vanish_at_once() {
    let test = FaultTest::named(GATEWAY, "endless-deltas", PATIENT);
    let mut connections = Vec::new();
    for lane in text_lanes().into_iter().cycle().take(60) {
        connections.push(test.open(lane, true));
    }
    test.await_requests(60);
    for connection in &mut connections {
        assert_eq!(connection.head().unwrap().status, 200);
    }
    let admin = test.gateway.admin.unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| connections.into_iter().for_each(drop));
        for _ in 0..20 {
            assert_eq!(testkit::Request::get("/livez").send(admin).status, 200);
        }
    });
    await_that("all upstreams are let go", || {
        test.simulator.open_connections() == 0
    });
    test.end();
}

/// A client that disconnects during its upload releases the memory of its body, and no upstream
/// request is sent.
#[test]
fn c05_gone_in_the_upload() {
    let limits = "json_body = \"1MiB\"\nedit_body = \"1MiB\"\nbody_memory = \"1MiB\"";
    let test = FaultTest::playing(GATEWAY, honest::answer, limits, PATIENT);
    let lane = lanes()[0];
    let bytes = request(lane, false, &"x".repeat(900 << 10)).bytes();
    for _ in 0..3 {
        let mut connection = testkit::Connection::open(test.gateway.address());
        connection.send(&bytes[..bytes.len() - 5]);
        connection.disconnect(Shutdown::Both);
        await_that("there is room again", || {
            let response =
                request(lane, false, &"x".repeat(900 << 10)).send(test.gateway.address());
            assert!([200, 503].contains(&response.status), "{}", response.text());
            response.status == 200
        });
    }
    assert_eq!(
        test.simulator.requests().len(),
        3,
        "no upstream request was sent for disconnected clients"
    );
}

/// A client that disconnects at the very end of its stream has exactly one outcome.
#[test]
fn c06_gone_at_the_very_end() {
    // The outcome is exactly one of two: their sum is counted.
    let test = FaultTest::playing(GATEWAY, honest::answer, "", PATIENT);
    let lanes = text_lanes();
    for turn in 0..8 {
        for lane in &lanes {
            let whole = request(*lane, true, "Hello.").send(test.gateway.address());
            test.sent.fetch_add(1, Ordering::Relaxed);
            test.leave(*lane, whole.body.len().saturating_sub(turn * 8));
        }
    }
    test.gateway.await_quiet();
    let sent = test.sent.load(Ordering::Relaxed) as f64;
    await_that("each stream has ended", || {
        test.gateway.sum("sluicegate_streams_ended_total{") >= sent
    });
    assert_eq!(test.gateway.sum("sluicegate_streams_ended_total{"), sent);
    test.end();
}
