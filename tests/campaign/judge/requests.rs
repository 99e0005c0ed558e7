//! Checks the upstream requests, and their number.

use simulator::{Protocol, Request};
use testkit::events::events;
use testkit::reading::{End, Reading};
use testkit::requests::{Question, path};
use testkit::strict::Server;
use testkit::{CLIENT_KEY, Response, UPSTREAM_MODEL, check_request_headers};

use super::{Case, Verdict};
use crate::fault::{Fault, Kind, Place, Strict, Transport};
use crate::harness::{Exchange, Observed};
use crate::upstream_response::UpstreamResponse;
use crate::{http2, websocket};

/// Each request belongs to this client and is sent under the gateway's name, and there are not too
/// many of them.
pub(super) fn check(
    &Case {
        drawn,
        fault,
        observed,
        ..
    }: &Case<'_>,
) {
    for exchange in &observed.exchanges {
        check_request(&drawn.at(exchange.place), exchange);
    }
    let count = observed.exchanges.len();
    let is_out_of_reach = fault.is_out_of_reach();
    let is_undecodable = fault.is_undecodable();
    if !observed.client.sent_whole || is_out_of_reach || is_undecodable {
        assert!(
            observed.exchanges.iter().all(Exchange::was_stale),
            "an upstream request was sent"
        );
    }
    // If the client disconnects or the process exits, no request may have been sent yet.
    let may_be_unsent =
        is_out_of_reach || is_undecodable || matches!(fault.kind, Kind::Shutdown(_));
    if observed.client.stayed && !may_be_unsent {
        assert!(count > 0, "no upstream request was sent");
    }
    check_number(observed);
    for pair in observed.exchanges.windows(2) {
        if let [first, again] = pair {
            check_retry(drawn, first, again);
        }
    }
}

/// One target gets a request twice at most, and any other one once.
fn check_number(observed: &Observed) {
    let at = |place| {
        let received = |exchange: &&Exchange| exchange.place == place && !exchange.was_stale();
        observed.exchanges.iter().filter(received).count()
    };
    let counts = [Place::First, Place::Second].map(at);
    assert!(
        counts.iter().all(|count| *count <= 2) && counts.iter().sum::<usize>() <= 3,
        "an upstream request was sent {counts:?} times"
    );
}

/// A request that failed at its first target, for a reason that is not its own, is sent to the
/// second one.
pub(super) fn check_next(case: &Case<'_>, verdict: Verdict) {
    if case.drawn.next.is_none() || case.fell_back() {
        return;
    }
    // The head of a plain reply may take all the time of the request.
    let status = case
        .observed
        .client
        .response
        .as_ref()
        .map(|response| response.status);
    let is_over = status == Some(504) && !case.fault.stream && case.fault.kind.holds();
    let is_late = case.may_be_late() || is_over;
    let is_owed = verdict == Verdict::Refused && !REJECTED.contains(&case.sent.status) && !is_late;
    assert!(!is_owed, "the second target was not asked");
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
    match &fault.strict {
        None => assert_eq!(request.model(), UPSTREAM_MODEL, "another model"),
        Some(strict) => check_strict(strict, request),
    }
    assert_eq!(request.streams(), fault.stream, "a stream, or none");
    if fault.question == Question::Text || fault.client == Protocol::Images {
        let body = String::from_utf8_lossy(&request.body);
        assert!(
            body.contains(&fault.nonce()),
            "the request of another client: {body}"
        );
    }
}

/// A strict vendor refuses nothing that the gateway makes of the request of a client of another protocol.
fn check_strict(strict: &Strict, request: &Request) {
    let Server { preset, model, .. } = strict.server();
    assert_eq!(request.model(), *model, "another model");
    if let Some(why) = strict.refusal(request) {
        let body = String::from_utf8_lossy(&request.body);
        panic!("{preset} refuses a request for {model}, for {why}: {body}");
    }
}

/// A request is only repeated if that is safe: nothing of a response was forwarded, and either the
/// upstream's status reports a failure, or it closed an idle connection without a response. Another
/// target gets it if the first one failed for a reason that is not the request's own.
fn check_retry(drawn: &Fault, first: &Exchange, again: &Exchange) {
    let written = &again.written_before;
    let body = match drawn.transport {
        Transport::Http1 => Response::parse(written).map_or_else(Vec::new, |it| it.body),
        Transport::Http2 { .. } => http2::first_body(written),
        Transport::WebSocket => websocket::body(written),
    };
    let passed = events(&body);
    assert!(
        passed.is_empty(),
        "request repeated after the client had {} events",
        passed.len()
    );
    if first.place != again.place {
        return check_fall_back(&drawn.at(first.place), first);
    }
    let has_failed = RETRIED.contains(&first.response.status);
    assert!(
        first.was_stale() || has_failed,
        "request repeated after status {}",
        first.response.status
    );
}

/// Checks that a target failed after which another one got the request.
fn check_fall_back(fault: &Fault, first: &Exchange) {
    let UpstreamResponse {
        status,
        body,
        is_whole,
        ..
    } = &first.response;
    let is_of_client = REJECTED.contains(status);
    assert!(!is_of_client, "another target got what was rejected");
    let reading = Reading::of(fault.upstream, body, *is_whole, fault.pictures()).checked();
    let has_succeeded = first.response.is_ok() && reading.end == End::Success;
    assert!(
        !has_succeeded || fault.is_slow() || !fault.kind.lets_through(),
        "another target got what was answered"
    );
}

/// The statuses of requests that are themselves at fault.
const REJECTED: [u16; 5] = [400, 413, 422, 446, 451];
/// The statuses after which a request is retried.
const RETRIED: [u16; 4] = [500, 502, 503, 529];
