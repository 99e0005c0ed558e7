//! Faults at the end of a body or a stream.

use std::time::Duration;

use sluicegate_simulator::Protocol;
use testkit::{End, GUARD};

use super::{plain, stream};
use crate::folds::decode;
use crate::samples::PROTOCOLS;

#[test]
fn a_stream_stalls_after_some_events() {
    for protocol in PROTOCOLS {
        for count in [0, 1, 2] {
            let mut exchange = stream(&format!("stall-after-{count}"), protocol);
            exchange.client.head().unwrap();
            for event in &exchange.honest_events()[..count] {
                assert_eq!(exchange.client.chunk().as_deref(), Ok(event.as_ref()));
            }
            assert_eq!(exchange.simulator.wait_for_close(0, Duration::ZERO), None);
            exchange.client.finish();
            assert_eq!(
                exchange.client.rest(),
                (Vec::new(), End::Closed),
                "nothing more was sent"
            );
        }
    }
}

#[test]
fn a_body_stalls_at_a_byte() {
    let mut exchange = plain("stall-at-10", Protocol::Chat);
    let head = exchange.client.head().unwrap();
    assert_eq!(
        head.header("content-length").unwrap(),
        exchange.honest_body().len().to_string()
    );
    assert_eq!(exchange.response_bytes(10), exchange.honest_body()[..10]);
    exchange.client.finish();
    assert_eq!(exchange.client.rest(), (Vec::new(), End::Closed));
}

#[test]
fn a_body_breaks_off_at_a_byte() {
    for (name, end) in [
        ("reset-at", End::Reset),
        ("close-at", End::Closed),
        ("eof-at", End::Complete),
    ] {
        for protocol in PROTOCOLS {
            for at in [0, 1, 57, 200] {
                for exchange in [
                    stream(&format!("{name}-{at}"), protocol),
                    plain(&format!("{name}-{at}"), protocol),
                ] {
                    let mut exchange = exchange;
                    let answer = exchange.response();
                    assert_eq!(
                        (answer.body, answer.end),
                        (exchange.honest_body()[..at].to_vec(), end),
                        "{name}-{at}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_stream_breaks_off_after_some_events() {
    for protocol in PROTOCOLS {
        let mut exchange = stream("reset-after-2", protocol);
        let answer = exchange.response();
        assert_eq!(
            (answer.body, answer.end),
            (exchange.honest_events()[..2].concat(), End::Reset)
        );
        let mut exchange = stream("reset-after-end", protocol);
        let answer = exchange.response();
        assert_eq!(
            (answer.body, answer.end),
            (exchange.honest_body(), End::Complete)
        );
        assert_eq!(exchange.client.rest(), (Vec::new(), End::Reset));
    }
}

#[test]
fn a_stream_ends_before_its_end() {
    for protocol in PROTOCOLS {
        let cut = stream("eof-without-end", protocol).fold().unwrap_err();
        let expected = match protocol {
            Protocol::Images => "the stream ended before its last image was complete",
            _ => "the stream ended without a terminal event",
        };
        assert!(cut.starts_with(expected), "{protocol:?}: {cut}");
        let mut exchange = stream("no-done", protocol);
        let body = exchange.response().body;
        let events = exchange.honest_events();
        assert_eq!(body, events[..events.len() - 1].concat());
    }
    let response = stream("no-done", Protocol::Chat).response();
    let body = response.text();
    assert!(body.contains("\"finish_reason\":\"stop\"") && !body.contains("[DONE]"));
}

#[test]
fn a_stream_is_empty_or_lacks_its_last_line() {
    for protocol in PROTOCOLS {
        let answer = stream("empty-stream", protocol).response();
        assert_eq!(
            (answer.status, answer.chunks().len(), answer.end),
            (200, 0, End::Complete)
        );
        assert_eq!(
            answer.header("content-type"),
            Some("text/event-stream; charset=utf-8")
        );

        let mut exchange = stream("missing-blank-line", protocol);
        let answer = exchange.response();
        let whole = exchange.honest_body();
        assert_eq!(
            (&answer.body[..], answer.end),
            (&whole[..whole.len() - 1], End::Complete)
        );
        assert!(
            decode(&answer.body).is_err(),
            "the last event is incomplete"
        );
    }
}

#[test]
fn a_stream_stays_open_after_its_end() {
    for protocol in PROTOCOLS {
        let mut exchange = stream("hold-after-end", protocol);
        exchange.client.head().unwrap();
        for event in exchange.honest_events() {
            assert_eq!(exchange.client.chunk(), Ok(event.to_vec()));
        }
        exchange.client.finish();
        assert_eq!(
            exchange.client.rest(),
            (Vec::new(), End::Closed),
            "the body did not end"
        );
    }
}

#[test]
fn a_stream_continues_after_its_end() {
    for protocol in PROTOCOLS {
        for name in ["after-end", "two-ends"] {
            let mut exchange = stream(name, protocol);
            let body = exchange.response().body;
            let honest = exchange.honest_events();
            assert!(body.starts_with(&honest.concat()), "{name} {protocol:?}");
            assert_eq!(decode(&body).unwrap().len(), honest.len() + 1);
            let error = stream(name, protocol).fold().unwrap_err();
            let expected = match protocol {
                Protocol::Images => "an event after the end of the stream",
                _ => "an event after the terminal event",
            };
            assert!(error.starts_with(expected), "{name} {protocol:?}: {error}");
        }
        let mut exchange = stream("done-after-end", protocol);
        let response = exchange.response();
        let body = response.text();
        assert_eq!(body.matches("data: [DONE]\n\n").count(), 1);
        assert!(
            body.ends_with("data: [DONE]\n\n")
                && body.as_bytes().starts_with(&exchange.honest_body())
        );
        let error = stream("delta-after-finish", protocol).fold();
        // For pictures, the delta is another preview, which is invalid only because of its index.
        assert!(error.is_err(), "{protocol:?}");
    }
}

#[test]
fn a_stream_never_ends() {
    for protocol in PROTOCOLS {
        let mut exchange = stream("endless-line", protocol);
        exchange.client.head().unwrap();
        assert_eq!(exchange.client.chunk(), Ok(b"data: ".to_vec()));
        assert!((0..200).all(|_| {
            exchange
                .client
                .chunk()
                .unwrap()
                .iter()
                .all(|byte| *byte == b'a')
        }));
        drop(exchange.client);
        assert!(exchange.simulator.wait_for_close(0, GUARD).is_some());

        let mut exchange = stream("endless-deltas", protocol);
        exchange.client.head().unwrap();
        let honest = exchange.honest_events();
        let mut received = std::iter::repeat_with(|| exchange.client.chunk().unwrap());
        let (first, event) = received
            .by_ref()
            .zip(&honest)
            .find(|(received, honest)| received != *honest)
            .unwrap();
        let delta = received.next().unwrap();
        assert!(first == delta, "{protocol:?}: {event:?} is not repeated");
        assert!(
            !String::from_utf8_lossy(&delta).contains("sequence_number"),
            "{protocol:?}"
        );
        assert!((0..200).all(|_| exchange.client.chunk().as_ref() == Ok(&delta)));
    }
}

#[test]
fn a_stream_only_keeps_alive() {
    for (name, line) in [
        ("endless-comments-1", ": keep-alive\n\n"),
        ("endless-empty-data-1", "data:\n\n"),
    ] {
        for protocol in PROTOCOLS {
            let mut exchange = stream(name, protocol);
            assert_eq!(exchange.client.head().unwrap().status, 200);
            assert!(
                (0..20).all(|_| exchange.client.chunk() == Ok(line.into())),
                "{name}"
            );
        }
    }
}
