//! The concurrency limit: excess requests are refused at once and with the right error, and every
//! permit is returned.

use std::net::Shutdown;
use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};
use testkit::{Connection, Gateway, MESSAGES, Request, Response, TEXT};

use crate::GATEWAY;

const LIMIT: usize = 8;

/// A gateway with a concurrency limit of [`LIMIT`].
fn limited() -> Gateway {
    GATEWAY.configured(&format!(
        "[limits]\nconcurrency = {LIMIT}\nconcurrency_per_key = {LIMIT}\n"
    ))
}

/// A request that takes some time, over one of the protocols.
fn long(index: usize, streams: bool) -> Request {
    let story = json!([{"role": "user", "content": "Tell a story."}]);
    let (key, path, mut body) = match index % 3 {
        0 => (
            TEXT,
            "/v1/responses",
            json!({"model": "model-5.5", "input": story, "max_output_tokens": 12}),
        ),
        1 => (
            TEXT,
            "/v1/chat/completions",
            json!({"model": "alt-flash", "messages": story, "max_tokens": 12}),
        ),
        _ => (
            MESSAGES,
            "/v1/messages",
            json!({"model": "msg-sonnet-5", "messages": story, "max_tokens": 12}),
        ),
    };
    body["stream"] = Value::Bool(streams);
    Request::post(path, &body).bearer(key)
}

/// The result of one of many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Served,
    Refused,
    FailedInStream,
}

/// Classifies a response to `long(index, streams)`; anything but the three results fails the test.
fn fate(index: usize, streams: bool, response: &Response) -> Fate {
    if response.status == 429 {
        assert!(
            !(streams && index.is_multiple_of(3)),
            "a Responses stream is refused within the stream"
        );
        let body = response.json();
        let code = if index % 3 == 2 {
            &body["error"]["details"]["error_code"]
        } else {
            &body["error"]["code"]
        };
        assert_eq!(code, "gateway_concurrency_limit", "{body}");
        assert!(
            response
                .header("retry-after")
                .is_some_and(|after| after.parse::<u32>().is_ok())
        );
        return Fate::Refused;
    }
    assert_eq!(response.status, 200, "{}", response.text());
    match (streams, index % 3) {
        (false, _) => assert_ne!(response.json()["usage"], Value::Null),
        (true, 0) => {
            if let grammar::End::Failure(failure) = grammar::responses(response) {
                assert!(
                    failure.contains("\"gateway_concurrency_limit\""),
                    "{failure}"
                );
                return Fate::FailedInStream;
            }
        }
        (true, 1) => drop(grammar::chat(response).reply()),
        (true, _) => drop(grammar::messages(response).reply()),
    }
    Fate::Served
}

/// Of many simultaneous requests to the embedded engine exactly as many as the limit are served, in
/// order, and each other one gets the error of the limit.
#[test]
fn o01_o02_o08_concurrent_requests_are_served_or_refused() {
    let server = limited();
    let begin = Barrier::new(64);
    let fates: Vec<Fate> = thread::scope(|scope| {
        let ask = |index: usize| {
            let streams = index.is_multiple_of(2);
            begin.wait();
            fate(index, streams, &long(index, streams).send(server.address()))
        };
        let askers: Vec<_> = (0..64)
            .map(|index| scope.spawn(move || ask(index)))
            .collect();
        askers
            .into_iter()
            .map(|asker| asker.join().expect("no asker failed"))
            .collect()
    });
    let count = |fate| fates.iter().filter(|found| **found == fate).count();
    assert!(count(Fate::Served) >= LIMIT, "{fates:?}");
    assert!(
        count(Fate::Refused) > 0 && count(Fate::FailedInStream) > 0,
        "the limit was felt: {fates:?}"
    );
    server.await_quiet();
    assert_eq!(
        long(1, false).send(server.address()).status,
        200,
        "all permits are there again"
    );
}

/// Clients that disconnect leave no permit in use.
#[test]
fn o04_two_hundred_clients_that_vanish_leave_nothing_behind() {
    let server = limited();
    for index in 0..200 {
        let mut connection = Connection::open(server.address());
        connection.send(long(index, true).bytes());
        match index % 4 {
            // Some do not wait for the response, some read a part of it.
            0 => {}
            1 => drop(connection.head().unwrap()),
            _ => {
                if connection.head().unwrap().status == 200 {
                    let _ = connection.chunk();
                }
            }
        }
        connection.disconnect(if index.is_multiple_of(2) {
            Shutdown::Both
        } else {
            Shutdown::Write
        });
    }
    server.await_quiet();
    let after = (0..LIMIT).map(|index| long(index, true).send(server.address()));
    assert!(
        after
            .enumerate()
            .all(|(index, response)| fate(index, true, &response) == Fate::Served)
    );
}

#[test]
fn a_stream_that_takes_too_long_ends_with_a_failure() {
    let server = GATEWAY.configured("[limits]\nstream_timeout = \"300ms\"\n");
    let body = json!({"model": "alt-flash", "input": "Tell a long story.", "stream": true, "max_output_tokens": 4000});
    let response = server.post(TEXT, "/v1/responses", &body);
    let failure = grammar::responses(&response).failure();
    assert!(failure.contains("\"server_error\""), "{failure}");
    server.await_quiet();
}
