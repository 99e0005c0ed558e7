//! Checks the upstream requests, and their number.

use simulator::Protocol;
use testkit::requests::{Question, path};
use testkit::{CLIENT_KEY, Response, UPSTREAM_MODEL, check_request_headers};

use super::Case;
use crate::fault::{Fault, Kind};
use crate::harness::Exchange;
use crate::reading::events;

/// Each request belongs to this client and is sent under the gateway's name, and there are not too
/// many of them.
pub(super) fn check(
    &Case {
        fault, observed, ..
    }: &Case<'_>,
) {
    for exchange in &observed.exchanges {
        check_request(fault, exchange);
    }
    let count = observed.exchanges.len();
    if !observed.client.sent_whole || fault.is_out_of_reach() {
        assert_eq!(count, 0, "an upstream request was sent");
    }
    // If the client disconnects or the process exits, no request may have been sent yet.
    if observed.client.stayed
        && !fault.is_out_of_reach()
        && !matches!(fault.kind, Kind::Shutdown(_))
    {
        assert!(count > 0, "no upstream request was sent");
    }
    assert!(count <= 2, "an upstream request was sent {count} times");
    for (first, again) in observed
        .exchanges
        .iter()
        .zip(observed.exchanges.iter().skip(1))
    {
        check_retry(first, again);
    }
}

fn check_request(fault: &Fault, exchange: &Exchange) {
    let request = &exchange.request;
    check_request_headers(request);
    assert!(
        !request.path.contains(CLIENT_KEY),
        "the key of the client in the path"
    );
    let owed = match fault.upstream {
        Protocol::Images => fault.drawing.path(),
        upstream => path(upstream),
    };
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", owed),
        "another path"
    );
    assert_eq!(request.model(), UPSTREAM_MODEL, "another model");
    assert_eq!(request.streams(), fault.stream, "a stream, or none");
    if fault.question == Question::Text || fault.client == Protocol::Images {
        let body = String::from_utf8_lossy(&request.body);
        assert!(
            body.contains(&fault.nonce()),
            "the request of another client: {body}"
        );
    }
}

/// A request is only repeated if that is safe: nothing of a response was forwarded, and either the
/// upstream's status reports a failure, or it closed an idle connection without a response.
fn check_retry(first: &Exchange, again: &Exchange) {
    let passed = Response::parse(&again.written_before)
        .map(|response| events(&response.body))
        .unwrap_or_default();
    assert!(
        passed.is_empty(),
        "request repeated after the client had {} events",
        passed.len()
    );
    let was_stale = first.response.status == 0 && first.request.nth_on_connection > 0;
    let has_failed = RETRIED.contains(&first.response.status);
    assert!(
        was_stale || has_failed,
        "request repeated after status {}",
        first.response.status
    );
}

/// The statuses after which a request is retried.
const RETRIED: [u16; 4] = [500, 502, 503, 529];
