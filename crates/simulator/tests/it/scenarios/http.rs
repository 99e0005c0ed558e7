//! Faults of HTTP.

use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_simulator::{Protocol, honest};
use testkit::{End, GUARD};

use super::{plain, stream};
use crate::samples::PROTOCOLS;

#[test]
fn a_connection_ends_before_the_head() {
    for (name, end) in [
        ("close-before-head", End::Closed),
        ("reset-before-head", End::Reset),
    ] {
        for protocol in PROTOCOLS {
            assert_eq!(
                stream(name, protocol).client.rest(),
                (Vec::new(), end),
                "{name}"
            );
        }
    }
}

#[test]
fn a_connection_is_good_once() {
    for (name, end) in [
        ("close-on-reuse", End::Closed),
        ("reset-on-reuse", End::Reset),
    ] {
        let mut exchange = plain(name, Protocol::Chat);
        assert_eq!(exchange.response().body, exchange.honest_body());
        exchange.again();
        assert_eq!(exchange.client.rest(), (Vec::new(), end), "{name}");
    }
}

#[test]
fn a_head_does_not_come() {
    for (name, expected) in [
        ("stall-head", ""),
        ("stall-in-head", "HTTP/1.1 200 OK\r\ncontent-ty"),
    ] {
        let mut exchange = stream(name, Protocol::Responses);
        assert_eq!(exchange.simulator.wait_for_close(0, Duration::ZERO), None);
        // The server closes only after the client.
        exchange.client.finish();
        assert_eq!(exchange.client.rest(), (expected.into(), End::Closed));
        assert!(exchange.simulator.wait_for_close(0, GUARD).is_some());
    }
}

#[test]
fn an_answer_is_late() {
    let mut exchange = plain("delay-30", Protocol::Chat);
    assert_eq!(exchange.response().body, exchange.honest_body());
    drop(exchange.client);
    let closed = exchange.simulator.wait_for_close(0, GUARD).unwrap();
    assert!(closed - exchange.request.at >= Duration::from_millis(30));
}

#[test]
fn a_head_is_invalid_or_too_large() {
    let (garbage, end) = plain("garbage-head", Protocol::Chat).client.rest();
    assert!(garbage.starts_with(b"220 ") && end == End::Closed);
    for (name, least_bytes, least_headers) in
        [("huge-head", 100 << 10, 1), ("many-headers", 0, 10_000)]
    {
        for is_stream in [false, true] {
            let mut exchange = if is_stream {
                stream(name, Protocol::Chat)
            } else {
                plain(name, Protocol::Chat)
            };
            let answer = exchange.response();
            let bytes: usize = answer
                .headers
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum();
            assert!(bytes >= least_bytes && answer.headers.len() >= least_headers);
            assert_eq!(
                (answer.body, answer.end),
                (exchange.honest_body(), End::Complete)
            );
        }
    }
    let mut exchange = plain("private-headers", Protocol::Messages);
    let answer = exchange.response();
    assert!(answer.header("set-cookie").is_some() && answer.header("server").is_some());
    assert_eq!(answer.body, exchange.honest_body());
}

#[test]
fn hints_come_before_the_answer() {
    let mut exchange = plain("early-hints", Protocol::Chat);
    assert_eq!(exchange.client.head().unwrap().status, 103);
    assert_eq!(exchange.response().body, exchange.honest_body());
}

#[test]
fn an_old_server_ends_the_body_with_the_connection() {
    for exchange in [
        plain("http-10", Protocol::Chat),
        stream("http-10", Protocol::Chat),
    ] {
        let mut exchange = exchange;
        let (bytes, end) = exchange.client.rest();
        assert!(
            bytes.starts_with(b"HTTP/1.0 200 OK\r\n") && bytes.ends_with(&exchange.honest_body())
        );
        assert_eq!(end, End::Closed);
    }
}

#[test]
fn a_status_has_an_error_in_the_form_of_the_protocol() {
    for (status, openai, messages) in [
        (400, "invalid_request_error", "invalid_request_error"),
        (401, "invalid_request_error", "authentication_error"),
        (403, "invalid_request_error", "permission_error"),
        (429, "requests", "rate_limit_error"),
        (500, "server_error", "api_error"),
        (503, "server_error", "overloaded_error"),
        (529, "server_error", "overloaded_error"),
    ] {
        for protocol in PROTOCOLS {
            let answer = stream(&format!("status-{status}"), protocol).response();
            assert_eq!((answer.status, answer.end), (status, End::Complete));
            let kind = if protocol == Protocol::Messages {
                messages
            } else {
                openai
            };
            assert_eq!(answer.json()["error"]["type"], kind);
        }
    }
    assert_eq!(
        plain("status-99999", Protocol::Chat).response().status,
        500,
        "not a valid status"
    );
}

#[test]
fn a_key_that_is_unknown_is_repeated() {
    let mut exchange = plain("status-401", Protocol::Chat);
    exchange.response();
    let body = exchange.request.json().to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer sk-1\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    exchange.client.send(head + &body);
    assert!(exchange.response().text().contains("Bearer sk-1"));
}

#[test]
fn a_limit_has_a_retry_after_header() {
    for (name, status, after) in [
        ("status-429-retry-7", 429, "7"),
        ("status-503-retry-1000000000", 503, "1000000000"),
        (
            "status-429-retry-date",
            429,
            "Fri, 31 Dec 2100 23:59:59 GMT",
        ),
        ("status-429-retry-negative", 429, "-5"),
        ("status-429-retry-garbage", 429, "soon"),
    ] {
        let answer = plain(name, Protocol::Messages).response();
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            (status, Some(after))
        );
    }
}

#[test]
fn a_server_is_well_every_other_time() {
    let mut exchange = plain("flaky-503", Protocol::Chat);
    let statuses = [(); 4].map(|()| {
        let status = exchange.response().status;
        exchange.again();
        status
    });
    assert_eq!(statuses, [503, 200, 503, 200]);
}

#[test]
fn an_error_has_status_200() {
    for protocol in PROTOCOLS {
        let answer = plain("error-200", protocol).response();
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("application/json"))
        );
        assert!(answer.json()["error"]["message"].is_string());
        let answer = stream("error-for-stream", protocol).response();
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/event-stream; charset=utf-8"))
        );
        assert!(answer.json()["error"]["message"].is_string());
    }
}

#[test]
fn a_middlebox_answers() {
    for (name, status) in [("html-200", 200), ("html-502", 502)] {
        let answer = stream(name, Protocol::Responses).response();
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (status, Some("text/html"))
        );
        assert!(answer.text().starts_with("<html>"));
    }
    for (name, status) in [("empty-200", 200), ("empty-204", 204)] {
        let mut exchange = stream(name, Protocol::Responses);
        let answer = exchange.response();
        assert_eq!(
            (answer.status, answer.text(), answer.end),
            (status, "", End::Complete)
        );
        exchange.again();
        assert_eq!(
            exchange.response().status,
            status,
            "the connection continues"
        );
    }
    let answer = stream("redirect", Protocol::Chat).response();
    assert_eq!(answer.status, 307);
    assert_eq!(
        answer.header("location"),
        Some("http://localhost/redirected/v1/chat/completions")
    );
}

#[test]
fn content_length_differs_from_the_body() {
    for protocol in PROTOCOLS {
        let mut exchange = plain("content-length-short", protocol);
        let body = exchange.honest_body();
        let (first, rest) = body.split_at(body.len() - 10);
        assert_eq!(
            (exchange.response().body, exchange.response_bytes(10)),
            (first.to_vec(), rest.to_vec())
        );

        let mut exchange = plain("content-length-long", protocol);
        let answer = exchange.response();
        assert_eq!(
            (&answer.body, answer.end),
            (&exchange.honest_body(), End::Closed)
        );
        let length: usize = answer.header("content-length").unwrap().parse().unwrap();
        assert_eq!(length, exchange.honest_body().len() + 10);
    }
}

#[test]
fn an_unrequested_answer_follows() {
    let mut exchange = stream("two-answers", Protocol::Chat);
    assert_eq!(exchange.response().body, exchange.honest_body());
    assert_eq!(exchange.response().json(), json!({"unasked": true}));
}

#[test]
fn a_body_is_not_of_its_content_type() {
    for protocol in PROTOCOLS {
        let expected: Value = match honest::plain(&stream("x", protocol).request) {
            honest::Reply::Json(200, body) => body,
            other => panic!("{other:?}"),
        };
        let without_model = |mut body: Value| {
            body["model"].take();
            body
        };
        for (name, kind) in [
            ("json-as-event-stream", "text/event-stream; charset=utf-8"),
            ("json-for-stream", "application/json"),
        ] {
            let answer = stream(name, protocol).response();
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (200, Some(kind))
            );
            assert_eq!(
                without_model(answer.json()),
                without_model(expected.clone())
            );
        }
        let mut exchange = stream("stream-as-text", protocol);
        let answer = exchange.response();
        assert_eq!(answer.header("content-type"), Some("text/plain"));
        assert_eq!(answer.body, exchange.honest_body());
    }
}

#[test]
fn a_body_is_compressed() {
    for exchange in [
        plain("gzip", Protocol::Chat),
        stream("gzip", Protocol::Chat),
    ] {
        let mut exchange = exchange;
        let answer = exchange.response();
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        assert_eq!(gunzip(&answer.body), exchange.honest_body());
    }
    let mut exchange = plain("unknown-coding", Protocol::Chat);
    let answer = exchange.response();
    assert_eq!(answer.header("content-encoding"), Some("br"));
}

/// Decompresses a gzip file with the `gzip` program, which also verifies it.
fn gunzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut program = Command::new("gzip")
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}
