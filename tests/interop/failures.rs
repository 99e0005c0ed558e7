//! Requests that the server refuses or fails at, and clients that disconnect.

use std::net::Shutdown;

use serde_json::{Value, json};
use testkit::{Connection, Request, await_that, changed};

use crate::road::{Road, gateway, user};

#[test]
#[ignore = "cargo xtask interop"]
fn a_prompt_beyond_the_context_is_the_callers_fault() {
    let gateway = gateway();
    let turns = json!([user(&"hello world ".repeat(3000))]);
    for road in Road::ALL {
        let response = road.post(&gateway, &road.request(&turns, &json!({})));
        let error = &response.json()["error"];
        assert_eq!(response.status, 400, "{road:?}: {error}");
        let message = error["message"].as_str().unwrap();
        match road {
            Road::Messages => {
                assert_eq!(error["type"], "invalid_request_error", "{error}");
                assert!(message.starts_with("prompt is too long: "), "{error}");
                assert!(message.ends_with(" tokens > 2048 maximum"), "{error}");
            }
            _ => {
                assert_eq!(
                    error["code"], "context_length_exceeded",
                    "{road:?}: {error}"
                );
                assert!(
                    message.contains("maximum context length is 2048 tokens"),
                    "{error}"
                );
            }
        }
    }
}

/// For a stream, the server sends status 200 before it reads the prompt, and then closes the
/// connection without an error.
#[test]
#[ignore = "cargo xtask interop"]
fn a_stream_that_breaks_off_is_no_success() {
    let gateway = gateway();
    let turns = json!([user(&"hello world ".repeat(3000))]);
    for road in Road::ALL {
        let response = road.stream(&gateway, &turns, &json!({}));
        let failure = if response.status == 200 {
            road.fold(&response).failure()
        } else {
            assert_eq!(response.status, 502, "{road:?}: {}", response.text());
            response.text().to_owned()
        };
        assert!(failure.contains("error"), "{road:?}: {failure}");
    }
}

/// The server answers 500 to a member of a wrong type, with paths of its own files in the message.
#[test]
#[ignore = "cargo xtask interop"]
fn upstream_500_becomes_502_without_its_message() {
    let gateway = gateway();
    let body = Road::Relay.request(
        &json!([user("Say hello.")]),
        &json!({"mirostat_mode": "none"}),
    );
    for streams in [false, true] {
        let response = Road::Relay.post(
            &gateway,
            &changed(body.clone(), &json!({ "stream": streams })),
        );
        assert_eq!(
            (response.status, &response.json()["error"]["code"]),
            (502, &json!("upstream_error"))
        );
        assert!(!response.text().contains(".py"), "{}", response.text());
    }
    await_that("it is logged", || {
        gateway
            .log
            .lock()
            .unwrap()
            .contains("status 500: internal_server_error")
    });
}

/// The server supports JSON mode only.
#[test]
#[ignore = "cargo xtask interop"]
fn unsupported_schema_is_an_error_and_not_ignored() {
    let gateway = gateway();
    let turns = json!([user("Describe Paris as JSON.")]);
    let city = json!({"city": {"type": "string"}});
    let schema = json!({"type": "object", "properties": city, "required": ["city"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "name": "place", "schema": schema});
    for (road, more) in [
        (Road::Responses, json!({"text": {"format": format}})),
        (
            Road::Messages,
            json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}}),
        ),
    ] {
        let response = road.post(&gateway, &road.request(&turns, &more));
        assert_eq!(response.status, 502, "{road:?}: {}", response.text());
    }
}

#[test]
#[ignore = "cargo xtask interop"]
fn a_client_that_leaves_stops_the_server() {
    let gateway = gateway();
    let disconnects = || {
        std::fs::read_to_string(log())
            .unwrap()
            .matches("Disconnected from client")
            .count()
    };
    for road in Road::ALL {
        let before = disconnects();
        let cap = if road == Road::Responses {
            "max_output_tokens"
        } else {
            "max_tokens"
        };
        let long: Value = json!([user("Write a long story about a dragon.")]);
        let body = road.request(&long, &json!({ cap: 1500, "stream": true }));
        let mut connection = Connection::open(gateway.address());
        connection.send(Request::post(road.path(), &body).bearer(road.key()).bytes());
        assert_eq!(connection.head().unwrap().status, 200, "{road:?}");
        assert!(
            connection.chunk().is_ok_and(|chunk| !chunk.is_empty()),
            "{road:?}: it writes"
        );
        connection.disconnect(Shutdown::Both);
        gateway.await_quiet();
        await_that("the server has noticed", || disconnects() > before);
    }
}

/// Returns the log of the model server.
fn log() -> String {
    std::env::var("SLUICEGATE_INTEROP_LOG").expect("cargo xtask interop writes it")
}
