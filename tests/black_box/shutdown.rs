//! Graceful shutdown: requests in progress are completed, and no new ones are accepted.

use serde_json::json;
use testkit::{Connection, Gateway, Request, TEXT, await_that};

use crate::GATEWAY;

/// A gateway that shuts down on request, with this drain timeout for open responses.
fn leaving(drain: &str) -> Gateway {
    GATEWAY.configured(&format!(
        "[limits]\nlame_duck = \"1ms\"\ndrain = \"{drain}\"\n"
    ))
}

fn story(tokens: u32) -> Request {
    let body = json!({"model": "alt-flash", "input": "Tell a long story.", "stream": true, "max_output_tokens": tokens});
    Request::post("/v1/responses", &body).bearer(TEXT)
}

/// A stream of the embedded engine that ends before the drain deadline is complete.
#[test]
fn d02_an_open_stream_is_brought_to_its_end() {
    let mut server = leaving("60s");
    let mut connection = Connection::open(server.address());
    connection.send(story(24).bytes());
    let response = connection.response_after_head(|| server.signal("TERM"));
    grammar::responses(&response).reply();
    assert!(server.wait().success(), "a stop in order is a success");
    assert!(connection.is_closed());
}

/// A stream of the embedded engine that is open at the drain deadline ends with a failure event,
/// and the process exits with success.
#[test]
fn d03_past_the_deadline_an_open_stream_ends_with_a_failure() {
    let mut server = leaving("1ms");
    let mut connection = Connection::open(server.address());
    connection.send(story(4000).bytes());
    let response = connection.response_after_head(|| server.signal("TERM"));
    let failure = grammar::responses(&response).failure();
    assert!(failure.contains("server_error"), "{failure}");
    assert!(server.wait().success());
}

/// During the shutdown delay the gateway is alive and not ready, still answers, and closes each
/// connection after its response.
#[test]
fn d01_lame_duck_is_unready_and_closes_connections() {
    let server = GATEWAY.without_engines("[limits]\nlame_duck = \"60s\"\n");
    let ready = || {
        Request::get("/readyz")
            .send(server.admin.expect("an admin address"))
            .status
    };
    assert_eq!(ready(), 200);
    server.signal("TERM");
    await_that("it is not ready", || ready() == 503);
    let response = server.get(TEXT, "/v1/models");
    assert_eq!(
        (response.status, response.header("connection")),
        (200, Some("close"))
    );
    assert_eq!(
        Request::get("/livez")
            .send(server.admin.expect("an admin address"))
            .status,
        200
    );
}

#[test]
fn an_interrupt_stops_it_without_waiting_for_balancers() {
    let mut server = GATEWAY.without_engines("[limits]\nlame_duck = \"3600s\"\n");
    server.signal("INT");
    assert!(server.wait().success());
}
