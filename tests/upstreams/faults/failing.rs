//! U: upstream failures.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use grammar::Judged as _;
use simulator::{Cut, Play, Protocol, Request, Simulator, honest, scenario};
use testkit::requests::{TEXT_PROTOCOLS, protocol_name};
use testkit::upstreams::{
    FaultTest, HASTY, Lane, Outcome, PATIENT, closed_port, lanes, now, text_lanes,
};
use testkit::{Config, await_that};
use wire::ErrorKind;

use super::{at_once, is_whole_or_fails, plainly, streams};
use crate::GATEWAY;

/// A refused upstream connection is answered with 502.
#[test]
fn u01_refused_connection_is_502() {
    let closed = closed_port();
    unreachable(closed.local_addr().unwrap(), Outcome::is_bad_gateway);
}

/// An upstream connection that cannot be established in time is answered with 504.
#[test]
fn u02_connect_timeout_is_504() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // The listen backlog is full after these; the operating system drops further connections.
    let _waiting: Vec<_> = (0..8).map_while(|_| dial(address)).collect();
    unreachable(address, Outcome::is_late);
}

/// If the upstream sends no complete head of a stream within the head timeout, or of a plain reply
/// within the request timeout, the client receives 504, and the upstream connection is closed.
#[test]
fn u05_no_head() {
    let cases = ["stall-head", "stall-in-head"]
        .into_iter()
        .flat_map(|name| {
            [
                (name, true, "", HASTY),
                (name, false, "request_timeout = \"1s\"", PATIENT),
            ]
        });
    at_once(cases, |(name, stream, limits, settings)| {
        let scenario = scenario::named(name).unwrap();
        let test = FaultTest::playing(
            GATEWAY,
            move |request| scenario.play(request),
            limits,
            settings,
        );
        let test = test.each(&lanes(), stream, Outcome::is_late);
        test.all_closed();
        test.end();
    });
}

/// The head of a plain reply comes with its last token, so that the timeout for heads does not
/// apply to it.
#[test]
fn u05_a_plain_reply_may_take_longer_than_a_head() {
    let scenario = scenario::named("delay-1500").unwrap();
    let play = move |request: &Request| scenario.play(request);
    FaultTest::playing(GATEWAY, play, "", "head_timeout = \"500ms\"")
        .each(&lanes(), false, Outcome::is_whole)
        .end();
}

/// A head timeout after the client's stream was opened by keep-alive comments ends the stream with
/// a failure event.
#[test]
fn u05_no_head_once_the_stream_is_open() {
    let scenario = scenario::named("stall-head").unwrap();
    let test = FaultTest::playing(
        GATEWAY,
        move |request| scenario.play(request),
        "keep_alive = \"50ms\"",
        HASTY,
    );
    let test = test.each(&lanes(), true, |got| {
        got.fails();
        assert!(
            got.response.text().contains(": keep-alive\n\n"),
            "{}",
            got.response.text()
        );
    });
    test.all_closed();
    test.end();
}

/// An upstream response that is delayed but within the head timeout succeeds.
#[test]
fn u05_a_late_answer_is_an_answer() {
    streams("delay-250", Outcome::is_whole);
    plainly("delay-250", Outcome::is_whole);
}

/// A stale idle connection that is closed or reset on reuse is replaced, and the request succeeds
/// on a new connection.
#[test]
fn u06_a_connection_that_went_stale_is_replaced() {
    for name in ["close-on-reuse", "reset-on-reuse"] {
        let test = FaultTest::named(GATEWAY, name, PATIENT);
        for lane in lanes() {
            for stream in [true, false, false, true] {
                test.ask(lane, stream).is_whole();
            }
        }
        test.end();
    }
}

/// A new connection that is closed or reset before the response head is answered with 502, and the
/// request is not sent again.
#[test]
fn u06_a_new_connection_that_closes_is_a_bad_gateway() {
    for name in ["close-before-head", "reset-before-head"] {
        for stream in [true, false] {
            let test = FaultTest::named(GATEWAY, name, PATIENT).each(
                &lanes(),
                stream,
                Outcome::is_bad_gateway,
            );
            assert_eq!(
                test.simulator.requests().len(),
                lanes().len(),
                "{name}: what was sent is not sent again"
            );
            test.end();
        }
    }
}

/// A stall between the events of a stream ends it with a failure after the events that arrived, if
/// there was content among them.
#[test]
fn u07_a_stall_within_the_stream() {
    at_once(1..8, |events| {
        let test = FaultTest::named(GATEWAY, &format!("stall-after-{events}"), HASTY);
        let lanes = if events < 4 { lanes() } else { text_lanes() };
        let test = test.each(&lanes, true, |got| match got.lane {
            // When relayed, each event has been sent once there was content.
            Lane { client, upstream } if client == upstream && events > opening(upstream) => {
                got.fails_after(events);
            }
            _ => got.stalls(),
        });
        test.all_closed();
        test.streams_ended_as("timeout");
        test.end();
    });
}

/// A stall within an event or a plain reply is a timeout, and the upstream connection is closed.
#[test]
fn u07_a_stall_within_an_event() {
    at_once(
        [("stall-at-700", true), ("stall-at-50", false)],
        |(name, stream)| {
            let check = if stream {
                Outcome::stalls
            } else {
                Outcome::is_late
            };
            let test = FaultTest::named(GATEWAY, name, HASTY).each(&lanes(), stream, check);
            test.all_closed();
            test.end();
        },
    );
}

/// The number of events before the first content of an honest stream.
fn opening(upstream: Protocol) -> usize {
    match upstream {
        Protocol::Responses => 4,
        Protocol::Chat => 1,
        Protocol::Messages => 3,
        Protocol::Images => 0,
    }
}

/// A closed or reset upstream connection fails the response, after the events that arrived.
#[test]
fn u08_the_connection_breaks() {
    for name in ["close-at-700", "reset-at-700"] {
        streams(name, Outcome::fails_at_once_or_later);
    }
    let broken = |request: &Request| honest::answer(request).cut_after(6, Cut::Close);
    let relayed: Vec<_> = text_lanes()
        .into_iter()
        .filter(|lane| lane.client == lane.upstream)
        .collect();
    let test = FaultTest::playing(GATEWAY, broken, "", PATIENT)
        .each(&relayed, true, |got| got.fails_after(6));
    test.streams_ended_as("upstream_truncated");
    test.end();
    // A reset may discard data that was received just before.
    streams("reset-after-3", Outcome::fails_at_once_or_later);
    for name in ["reset-at-50", "close-at-50"] {
        plainly(name, Outcome::is_bad_gateway);
    }
}

/// After a reset that follows the complete stream the response is complete or fails properly.
#[test]
fn u08_a_reset_after_all_was_said() {
    streams("reset-after-end", is_whole_or_fails);
}

/// A stream that ends without its terminal event fails as `upstream_truncated`.
#[test]
fn u09_the_stream_ends_without_its_end() {
    let test =
        FaultTest::named(GATEWAY, "eof-without-end", PATIENT).each(&lanes(), true, Outcome::fails);
    test.streams_ended_as("upstream_truncated");
    test.end();
    streams("eof-at-700", Outcome::fails_at_once_or_later);
}

/// A Chat stream that only lacks `[DONE]` is complete; streams of other protocols without their
/// terminal event fail.
#[test]
fn u09_a_missing_done_is_no_loss() {
    streams("no-done", |got| match got.lane.upstream {
        Protocol::Chat => got.is_whole(),
        _ => got.fails(),
    });
}

/// A plain reply with a wrong Content-Length is answered with 502.
#[test]
fn u10_a_length_that_is_wrong() {
    for name in ["content-length-short", "content-length-long"] {
        plainly(name, Outcome::is_bad_gateway);
    }
}

/// Bytes after an upstream response are never used as the response to the next request.
#[test]
fn u10_bytes_behind_an_answer_are_not_the_next_answer() {
    for stream in [true, false] {
        let test = FaultTest::named(GATEWAY, "two-answers", PATIENT);
        for lane in lanes() {
            test.ask_with(lane, stream, "First.").is_whole();
            test.ask_with(lane, stream, "Second.").is_whole();
        }
        test.end();
    }
}

/// A plain JSON reply with the media type of an event stream is accepted as a plain reply.
#[test]
fn u11_a_reply_under_the_type_of_a_stream() {
    plainly("json-as-event-stream", Outcome::is_whole);
}

/// A plain reply to a request for a stream is delivered to the client as a stream.
#[test]
fn u12_a_reply_where_a_stream_was_asked_for() {
    for name in ["json-as-event-stream", "json-for-stream"] {
        streams(name, |got| {
            assert!(got.is_stream(), "{:?}: {}", got.lane, got.response.text());
            got.has_all_text();
        });
    }
}

/// An error body with status 200 is answered with 502.
#[test]
fn u12_an_error_under_200() {
    for name in ["error-200", "error-for-stream"] {
        streams(name, Outcome::is_bad_gateway);
        plainly(name, Outcome::is_bad_gateway);
    }
}

/// HTML pages, empty responses and other responses that are not of the protocol are answered with
/// 502.
#[test]
fn u13_response_of_a_middlebox_is_502() {
    for name in ["html-200", "html-502", "empty-200", "empty-204"] {
        plainly(name, Outcome::is_bad_gateway);
        streams(name, Outcome::is_bad_gateway);
    }
}

/// A stream with another media type, or without one, is known by its first bytes.
#[test]
fn u11_a_stream_of_another_media_type_is_a_stream() {
    streams("stream-as-text", Outcome::is_whole);
}

/// Redirects of an upstream are not followed, and are answered with 502, which is not to be retried.
#[test]
fn u13_redirects_are_not_followed() {
    let test = FaultTest::named(GATEWAY, "redirect", PATIENT).each(&lanes(), true, |got| {
        got.is_refused(ErrorKind::Upstream, "upstream_error");
        assert_eq!(got.response.header("x-should-retry"), Some("false"));
    });
    assert!(
        test.simulator
            .requests()
            .iter()
            .all(|request| !request.path.contains("redirected"))
    );
    test.end();
}

/// A failure event before any content is answered with the status of the failure, whatever events
/// have opened the stream.
#[test]
fn u14_a_failure_before_any_content_is_a_status() {
    streams("failed-first", Outcome::is_bad_gateway);
}

/// A rate limit event before any content is reported as a rate limit.
#[test]
fn u14_a_rate_limit_before_any_content_is_429() {
    streams("limited-first", |got| {
        got.is_refused(ErrorKind::RateLimit, "rate_limit_exceeded");
    });
}

/// A failure event within a stream is forwarded as a failure in the client's protocol.
#[test]
fn u14_a_failure_in_the_stream() {
    for name in ["failed-middle", "failed-last"] {
        streams(name, Outcome::fails);
    }
    for name in ["responses-error-event", "responses-error-event-flat"] {
        let responses: Vec<_> = text_lanes()
            .into_iter()
            .filter(|lane| lane.upstream == Protocol::Responses)
            .collect();
        // Only the events that open the stream come before it.
        FaultTest::named(GATEWAY, name, PATIENT)
            .each(&responses, true, Outcome::is_bad_gateway)
            .end();
    }
}

/// Retry-After of an upstream is forwarded between 1 and 3600 seconds, and an invalid value counts
/// as 1 second.
#[test]
fn u15_when_to_come_back() {
    let cases = [
        ("status-429-retry-7", Some("7")),
        ("status-429-retry-0", Some("1")),
        ("status-429-retry-600", Some("600")),
        ("status-429-retry-1000000000", Some("3600")),
        ("status-429-retry-date", Some("3600")),
        // An invalid value is treated like an absent one: a second.
        ("status-429-retry-negative", Some("1")),
        ("status-429-retry-garbage", Some("1")),
        ("status-429", Some("1")),
    ];
    for (name, owed) in cases {
        for stream in [true, false] {
            let test = FaultTest::named(GATEWAY, name, PATIENT).each(&lanes(), stream, |got| {
                got.is_refused(ErrorKind::RateLimit, "rate_limit_exceeded");
                assert_eq!(
                    got.response.header("retry-after"),
                    owed,
                    "{name} {:?}",
                    got.lane
                );
            });
            test.end();
        }
    }
}

/// A request that the upstream refuses as invalid or too large is refused with the same meaning in
/// the client's protocol.
#[test]
fn u16_the_request_is_wrong() {
    let cases = [
        ("status-400", ErrorKind::InvalidRequest, "invalid_value"),
        ("status-422", ErrorKind::InvalidRequest, "invalid_value"),
        ("status-413", ErrorKind::TooLarge, "request_too_large"),
    ];
    for (name, kind, code) in cases {
        let check = |got: &Outcome| {
            got.is_refused(kind, code);
            // Messages has a specific error for requests that are too large.
            let is_reported = got.lane.client != Protocol::Messages || name != "status-413";
            assert_eq!(
                got.response.text().contains("Simulated refusal."),
                is_reported,
                "{}",
                got.response.text()
            );
        };
        streams(name, check);
        plainly(name, check);
    }
}

/// An upstream's 401, 403 or 404 is answered with 502 and `x-should-retry: false`, and logged as an
/// error for the operator.
#[test]
fn p07_u16_the_operators_key_is_wrong() {
    for name in ["status-401", "status-403", "status-404"] {
        for stream in [true, false] {
            let test = FaultTest::named(GATEWAY, name, PATIENT).each(&lanes(), stream, |got| {
                got.is_refused(ErrorKind::Upstream, "upstream_error");
                assert_eq!(got.response.header("x-should-retry"), Some("false"));
            });
            // It is for the operator to mend.
            let is_reported = |line: &str| {
                line.contains("upstream request failed") && line.contains(r#""level":"ERROR""#)
            };
            await_that("it is logged as an error, each time", || {
                let log = test.gateway.log.lock().unwrap();
                log.lines().filter(|line| is_reported(line)).count() == lanes().len()
            });
            test.end();
        }
    }
}

/// A request that fails with 500, 502, 503 or 529 is retried once, and succeeds if the retry does.
#[test]
fn u17_a_server_that_failed_is_asked_once_more() {
    for name in ["flaky-500", "flaky-502", "flaky-503", "flaky-529"] {
        let test = FaultTest::named(GATEWAY, name, PATIENT);
        for (place, lane) in lanes().into_iter().enumerate() {
            test.ask(lane, true).is_whole();
            assert_eq!(
                test.simulator.requests().len(),
                2 * (place + 1),
                "{name}: one retry"
            );
        }
        test.end();
    }
}

/// A request whose only retry fails too is answered with the error.
#[test]
fn u17_it_is_asked_once_more_alone() {
    let cases = [
        ("status-500", ErrorKind::Upstream, "upstream_error"),
        ("status-502", ErrorKind::Upstream, "upstream_error"),
        ("status-503", ErrorKind::Overloaded, "service_unavailable"),
        ("status-529", ErrorKind::Overloaded, "service_unavailable"),
    ];
    for (name, kind, code) in cases {
        let test = FaultTest::named(GATEWAY, name, PATIENT);
        for (asked, protocol) in TEXT_PROTOCOLS
            .into_iter()
            .chain([Protocol::Images])
            .enumerate()
        {
            let lane = Lane {
                client: protocol,
                upstream: protocol,
            };
            let got = test.ask(lane, true);
            assert_eq!(
                got.response.header("x-should-retry"),
                Some("true"),
                "{name}"
            );
            if code == "service_unavailable" {
                assert_eq!(got.response.header("retry-after"), Some("2"), "{name}");
            }
            got.is_refused(kind, code);
            assert_eq!(
                test.simulator.requests().len(),
                2 * (asked + 1),
                "{name}: one retry"
            );
        }
        test.end();
    }
}

/// A malformed or oversized upstream response head is answered with 502.
#[test]
fn u18_malformed_or_oversized_head_is_502() {
    for name in ["garbage-head", "huge-head", "many-headers"] {
        streams(name, Outcome::is_bad_gateway);
        plainly(name, Outcome::is_bad_gateway);
    }
}

/// Unknown headers, early hints and HTTP/1.0 responses of an upstream are accepted.
#[test]
fn u18_unusual_heads() {
    // Every response is checked for headers of the upstream.
    for name in ["private-headers", "early-hints", "http-10"] {
        streams(name, Outcome::is_whole);
        plainly(name, Outcome::is_whole);
    }
}

/// A stream is complete at its terminal event, even if the upstream leaves the connection open,
/// which is closed then.
#[test]
fn u20_the_end_is_the_end() {
    // The connection stays open, and nothing waits for its end.
    let test = FaultTest::named(GATEWAY, "hold-after-end", PATIENT).each(
        &lanes(),
        true,
        Outcome::is_whole,
    );
    test.all_closed();
    test.end();
}

/// A slow stream may continue until the deadline of streams, which ends it with a timeout. The
/// deadline of requests applies only until its first event.
#[test]
fn u21_a_drip_may_go_on_until_the_deadline() {
    streams("drip-20", Outcome::is_whole);
    let drip = |limits| {
        let scenario = scenario::named("drip-400").unwrap();
        FaultTest::playing(
            GATEWAY,
            move |request| scenario.play(request),
            limits,
            PATIENT,
        )
    };
    let test = drip("stream_timeout = \"1s\"").each(&text_lanes(), true, Outcome::stalls);
    test.all_closed();
    test.end();
    let is_relayed = |lane: &Lane| lane.client == lane.upstream;
    let relayed: Vec<_> = text_lanes().into_iter().filter(is_relayed).collect();
    drip("request_timeout = \"1s\"")
        .each(&relayed, true, Outcome::is_whole)
        .end();
}

/// A stream whose server sends only comments from some event on is alive, until the deadline of
/// streams ends it; a stream that falls silent ends after its idle timeout.
#[test]
fn u21_comments_keep_a_stream_alive_until_its_deadline() {
    let comments = |request: &Request| {
        let answer = honest::answer(request);
        let begun: Vec<_> = answer.pieces().take(6).cloned().collect();
        let comment = Play::new()
            .pause(Duration::from_millis(200))
            .body(": PROCESSING\n\n");
        Play::stream().with_pieces(begun).forever(comment)
    };
    let is_relayed = |lane: &Lane| lane.client == lane.upstream;
    let relayed: Vec<_> = text_lanes().into_iter().filter(is_relayed).collect();
    let test = FaultTest::playing(GATEWAY, comments, "stream_timeout = \"3s\"", HASTY);
    let started = now();
    let test = test.each(&relayed, true, |got| got.fails_after(6));
    assert!(started.elapsed() >= Duration::from_secs(3));
    test.all_closed();
    test.streams_ended_as("timeout");
    test.end();
}

/// A plain reply that is incomplete at the request deadline is answered with 504.
#[test]
fn u21_a_plain_reply_has_a_deadline_too() {
    let play = |request: &Request| honest::answer(request).cut_at(20, Cut::Hold);
    let test = FaultTest::playing(GATEWAY, play, "request_timeout = \"1s\"", PATIENT).each(
        &lanes(),
        false,
        Outcome::is_late,
    );
    test.all_closed();
    test.end();
}

/// Each client gets the response to its own request, even while other clients disconnect in the
/// middle of theirs.
#[test]
fn u22_an_answer_goes_to_who_asked() {
    // Every other client disconnects, each at a different position of the reply; the others get
    // complete replies.
    let test = FaultTest::playing(GATEWAY, honest::answer, "", PATIENT);
    for turn in 0..60 {
        for lane in text_lanes() {
            let text = format!("This is number {turn}.");
            if turn % 2 == 0 {
                test.leave(lane, turn * 40);
            } else {
                test.ask_with(lane, turn % 4 == 1, &text).is_whole();
            }
        }
    }
    test.end();
}

/// Tests every client protocol with upstreams at an address that accepts no connections.
fn unreachable(address: SocketAddr, check: impl Fn(&Outcome) + Sync) {
    let base_url = format!("http://{address}/v1");
    at_once([true, false], |stream| {
        let mut plan = Config::new("");
        for lane in lanes().iter().filter(|lane| lane.client == lane.upstream) {
            let name = protocol_name(lane.upstream);
            plan = plan.upstream(
                name,
                lane.upstream,
                &base_url,
                "connect_timeout = \"500ms\"",
            );
            plan = plan.model(
                name,
                lane.upstream,
                &format!(r#"[{{ upstream = "{name}" }}]"#),
            );
        }
        FaultTest::of(plan.start(GATEWAY), Simulator::honest().unwrap())
            .each(&lanes(), stream, &check)
            .end();
    });
}

#[allow(
    clippy::disallowed_methods,
    reason = "a queue of the test's own is filled, on loopback"
)]
fn dial(address: SocketAddr) -> Option<TcpStream> {
    TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok()
}
