//! Two gateways in a row: requests and answers that pass through both.

use std::net::Shutdown;
use std::sync::OnceLock;

use serde_json::json;
use testkit::{Connection, MESSAGES, Request, TEXT, changed};

use crate::chain::Pair;

/// The pair that both tests share: each waits for its own requests alone.
fn pair() -> &'static Pair {
    static PAIR: OnceLock<Pair> = OnceLock::new();
    PAIR.get_or_init(|| Pair::start(""))
}

#[test]
fn a_client_that_leaves_stops_the_model_behind_both() {
    let pair = pair();
    let turns = json!([{"role": "user", "content": "Write a long story about a dragon."}]);
    let long = json!({"model": "alt-flash", "stream": true, "max_tokens": 2000});
    for (key, path, change) in [
        (
            TEXT,
            "/v1/responses",
            json!({"input": turns, "max_tokens": null, "max_output_tokens": 2000}),
        ),
        (TEXT, "/v1/chat/completions", json!({"messages": turns})),
        (
            MESSAGES,
            "/v1/messages",
            json!({"messages": turns, "model": "msg-sonnet-5"}),
        ),
    ] {
        let mut connection = Connection::open(pair.outer(path).address());
        connection.send(
            Request::post(path, &changed(long.clone(), &change))
                .bearer(key)
                .bytes(),
        );
        assert_eq!(connection.head().unwrap().status, 200, "{path}");
        assert!(
            connection.chunk().is_ok_and(|chunk| !chunk.is_empty()),
            "{path}: it answers"
        );
        connection.disconnect(Shutdown::Both);
    }
    pair.await_quiet();
}

#[test]
fn a_refusal_of_the_inner_gateway_has_its_message() {
    let pair = pair();
    let long = "hello world ".repeat(8000);
    let turns = json!([{"role": "user", "content": long}]);
    for (key, path, body) in [
        (
            TEXT,
            "/v1/responses",
            json!({"model": "alt-flash", "input": turns}),
        ),
        (
            TEXT,
            "/v1/chat/completions",
            json!({"model": "alt-flash", "messages": turns}),
        ),
        (
            MESSAGES,
            "/v1/messages",
            json!({"model": "msg-sonnet-5", "messages": turns, "max_tokens": 16}),
        ),
    ] {
        let response = pair.outer(path).post(key, path, &body);
        let error = &response.json()["error"];
        assert_eq!(response.status, 400, "{path}: {error}");
        let message = error["message"].as_str().unwrap();
        let owed = match path {
            "/v1/messages" => "prompt is too long: ",
            _ => {
                "This model's maximum context length is 8191 tokens. However, your messages resulted in "
            }
        };
        assert!(message.starts_with(owed), "{path}: {error}");
        if key == TEXT {
            assert_eq!(error["code"], "context_length_exceeded", "{path}: {error}");
        }
    }
}
