//! The tables of errors, for errors that take more than a request: an upstream, a limit, a slow
//! client, a shutdown.

use std::sync::atomic::Ordering;

use simulator::{Play, Protocol, Request, honest, scenario};
use testkit::rows::Table;
use testkit::upstreams::{FaultTest, Lane, PATIENT, lanes, request};
use testkit::{Connection, Response};

use crate::GATEWAY;

/// Upstream failures, the concurrency limit, a slow upload and the shutdown are reported exactly as
/// in the tables of errors.
#[test]
fn j06_each_error_of_an_upstream_has_exactly_this_body() {
    let (openai, messages) = (
        lanes_of(|client| client != Protocol::Messages),
        lanes_of(|client| client == Protocol::Messages),
    );
    Table::openai().check_scenes(&[
        ("slow upload", slow_upload(&openai)),
        (
            "non-streaming request over the concurrency limit",
            over_the_limit(&openai),
        ),
        ("upstream failure", played("html-200", &openai)),
        ("draining", draining(&openai)),
        ("upstream timeout", played("stall-head", &openai)),
    ]);
    Table::messages().check_scenes(&[
        ("over the concurrency limit", over_the_limit(&messages)),
        ("upstream timeout", played("stall-head", &messages)),
        ("upstream overloaded", played("status-529", &messages)),
    ]);
}

fn lanes_of(client: impl Fn(Protocol) -> bool) -> Vec<Lane> {
    lanes()
        .into_iter()
        .filter(|lane| client(lane.client))
        .collect()
}

/// Responses to requests for a plain reply and for a stream before an upstream that plays this
/// scenario.
fn played(name: &str, lanes: &[Lane]) -> Vec<Response> {
    let scenario = scenario::named(name).unwrap();
    let test = FaultTest::playing(
        GATEWAY,
        move |request| scenario.play(request),
        "request_timeout = \"500ms\"",
        "head_timeout = \"100ms\"",
    );
    let both = lanes
        .iter()
        .flat_map(|lane| [false, true].map(|stream| test.ask(*lane, stream).response))
        .collect();
    test.end();
    both
}

/// Responses to requests for a plain reply while the only permit is out.
fn over_the_limit(lanes: &[Lane]) -> Vec<Response> {
    let gated = |request: &Request| Play::new().gate().then(honest::answer(request));
    let test = FaultTest::playing(
        GATEWAY,
        gated,
        "concurrency = 1\nconcurrency_per_key = 1",
        PATIENT,
    );
    let mut holder = test.open(lanes[0], false);
    test.await_requests(1);
    let over = lanes
        .iter()
        .map(|lane| test.ask(*lane, false).response)
        .collect();
    test.simulator.release_all();
    assert_eq!(holder.response().status, 200);
    test.end();
    over
}

/// Responses to requests whose bodies stop in the middle. Their connections are closed.
fn slow_upload(lanes: &[Lane]) -> Vec<Response> {
    let test = FaultTest::playing(GATEWAY, honest::answer, "body_idle = \"200ms\"", PATIENT);
    let slow = |lane: &Lane| {
        test.sent.fetch_add(1, Ordering::Relaxed);
        let mut connection = Connection::open(test.gateway.address());
        let whole = request(*lane, false, "Hello.").bytes();
        connection.send(&whole[..whole.len() - 5]);
        let response = connection.response();
        assert!(connection.is_closed());
        response
    };
    let given_up = lanes.iter().map(slow).collect();
    assert_eq!(
        test.simulator.requests().len(),
        0,
        "no upstream request was sent"
    );
    test.end();
    given_up
}

/// Responses to requests that have no response yet when the process exits.
fn draining(lanes: &[Lane]) -> Vec<Response> {
    let limits = "lame_duck = \"1ms\"\ndrain = \"100ms\"";
    let mut test = FaultTest::playing(GATEWAY, |_| Play::new().hold(), limits, PATIENT);
    let open: Vec<_> = lanes
        .iter()
        .flat_map(|lane| [false, true].map(|stream| test.open(*lane, stream)))
        .collect();
    test.await_requests(open.len());
    test.gateway.signal("TERM");
    let cut = open
        .into_iter()
        .map(|mut connection| connection.response())
        .collect();
    assert_eq!(test.gateway.wait().code(), Some(0));
    cut
}
