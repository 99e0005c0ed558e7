//! The deadline of plain replies whose upstreams take many times as long, and are never silent, so
//! that no other timeout ends them.

use std::time::Duration;

use memchr::memmem;
use serde_json::{Value, json};
use simulator::{Framing, Play, Protocol, Request as Asked, Step, honest};
use testkit::log;
use testkit::upstreams::{FaultTest, Lane, PATIENT, lanes, request, text_lanes};
use testkit::{CLIENT_KEY, Request, Response};

use crate::GATEWAY;

/// A slow upstream stream that is collected into a plain reply fails with 504 at the deadline; its
/// connection is closed and its permit returned.
#[test]
fn u21_a_stream_that_is_gathered_has_a_deadline() {
    end_in_time(&text_lanes(), |received| {
        let events: Vec<_> = streamed(received).pieces().cloned().collect();
        let delta = events
            .iter()
            .position(|event| memmem::find(event, b"You").is_some())
            .unwrap();
        let play = events[..delta]
            .iter()
            .cloned()
            .fold(Play::stream(), Play::body);
        events[delta..]
            .iter()
            .cloned()
            .fold(drip(play, &unnumbered(&events[delta])), Play::body)
            .step(Step::End)
    });
}

/// An upstream stream that sends only comments before its last event fails with 504 at the
/// deadline.
#[test]
fn u21_a_stream_of_comments_that_is_gathered_has_a_deadline() {
    end_in_time(&text_lanes(), |received| {
        let events: Vec<_> = streamed(received).pieces().cloned().collect();
        let (last, first) = events.split_last().unwrap();
        let play = first.iter().cloned().fold(Play::stream(), Play::body);
        drip(play, b": keep-alive\n\n")
            .body(last.clone())
            .step(Step::End)
    });
}

/// A plain reply that arrives byte by byte fails with 504 at the deadline.
#[test]
fn u21_a_plain_reply_that_drips_has_a_deadline() {
    end_in_time(&lanes(), dripping);
}

/// A token count that arrives byte by byte fails with 504 at the deadline.
#[test]
fn u21_a_count_of_tokens_that_drips_has_a_deadline() {
    let test = FaultTest::playing(GATEWAY, dripping, DEADLINE, PATIENT);
    let count = json!({"model": "messages", "messages": [{"role": "user", "content": "Hello."}]});
    let response = Request::post("/v1/messages/count_tokens", &count)
        .bearer(CLIENT_KEY)
        .send(test.gateway.address());
    test.sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    is_late(&test, Protocol::Messages, &response);
    test.all_closed();
    test.end();
}

/// Sends a plain request on each of these lanes to an upstream that behaves like this, and checks
/// how they end.
fn end_in_time(lanes: &[Lane], behave: impl Fn(&Asked) -> Play + Send + Sync + 'static) {
    let test = FaultTest::playing(GATEWAY, behave, DEADLINE, PATIENT);
    std::thread::scope(|scope| {
        for lane in lanes {
            test.sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let test = &test;
            scope.spawn(move || {
                let response = request(*lane, false, "Hello.").send(test.gateway.address());
                is_late(test, lane.client, &response);
            });
        }
    });
    assert_eq!(
        test.simulator.requests().len(),
        lanes.len(),
        "no request is retried"
    );
    test.all_closed();
    test.end();
}

/// Asserts that the client got 504, and that the log has its outcome.
#[track_caller]
fn is_late(test: &FaultTest, client: Protocol, response: &Response) {
    let error = &response.json()["error"];
    let (kind, code) = match client {
        Protocol::Messages => ("timeout_error", Value::Null),
        _ => ("server_error", json!("upstream_timeout")),
    };
    assert_eq!(
        (response.status, &error["type"], &error["code"]),
        (504, &json!(kind), &code),
        "{}",
        response.text()
    );
    let line = log::line(&test.gateway, response);
    assert_eq!(
        (&line["status"], &line["outcome"], &line["code"]),
        (&json!(504), &json!("timeout"), &json!("upstream_timeout")),
        "{line}"
    );
}

/// The upstream's reply to the same request for a stream.
fn streamed(received: &Asked) -> Play {
    let mut received = received.clone();
    let mut body = received.json();
    body["stream"] = true.into();
    received.body = body.to_string().into();
    honest::answer(&received)
}

/// A plain reply with much white space in it, byte by byte.
fn dripping(received: &Asked) -> Play {
    let body = honest::answer(received).body_bytes();
    let head = Play::new().head(
        200,
        &[("content-type", "application/json")],
        Framing::Chunked,
    );
    drip(head.body(body[..1].to_vec()), b" ")
        .body(body[1..].to_vec())
        .step(Step::End)
}

/// The event without its number, which may not repeat.
fn unnumbered(event: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(event).unwrap();
    let Some((before, number)) = text.split_once("\"sequence_number\":") else {
        return event.to_vec();
    };
    [before, number.split_once(',').unwrap().1]
        .concat()
        .into_bytes()
}

/// Adds the same piece many times, for far longer than the deadline.
fn drip(play: Play, piece: &[u8]) -> Play {
    (0..500).fold(play, |play, _| {
        play.pause(Duration::from_millis(20)).body(piece.to_vec())
    })
}

/// Long enough for replies to start on a busy machine.
const DEADLINE: &str = "request_timeout = \"500ms\"";
