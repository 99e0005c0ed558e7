//! What upstreams may be asked, and how often.

use simulator::Protocol;

use super::Case;
use crate::client::Response;
use crate::fault::{Fault, Kind};
use crate::law::{CLIENT_KEY, check_headers};
use crate::question::{Question, path};
use crate::reading::events;
use crate::world::{Asked, THEIR_MODEL};

/// Each request is this client's, in the name of the gateway, and there are no more than may be.
pub(super) fn check(&Case { fault, seen, .. }: &Case<'_>) {
    for asked in &seen.asked {
        check_request(fault, asked);
    }
    let count = seen.asked.len();
    if !seen.client.sent_whole || fault.is_out_of_reach() {
        assert_eq!(count, 0, "an upstream was asked");
    }
    // A client that leaves, or a process that ends, may be gone before anybody is asked.
    if seen.client.stayed && !fault.is_out_of_reach() && !matches!(fault.kind, Kind::Shutdown(_)) {
        assert!(count > 0, "no upstream was asked");
    }
    assert!(count <= 2, "an upstream was asked {count} times");
    for (first, again) in seen.asked.iter().zip(seen.asked.iter().skip(1)) {
        check_retry(first, again);
    }
}

fn check_request(fault: &Fault, asked: &Asked) {
    let request = &asked.request;
    check_headers(request);
    assert!(!request.path.contains(CLIENT_KEY), "the key of the client in the path");
    let owed = match fault.upstream {
        Protocol::Images => fault.drawing.path(),
        upstream => path(upstream),
    };
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", owed), "another path");
    assert_eq!(request.model(), THEIR_MODEL, "another model");
    assert_eq!(request.streams(), fault.stream, "a stream, or none");
    if fault.question == Question::Text || fault.client == Protocol::Images {
        let body = String::from_utf8_lossy(&request.body);
        assert!(body.contains(&fault.nonce()), "the request of another client: {body}");
    }
}

/// A request is repeated only when that can do no harm: nothing of an answer was passed on, and the upstream says by its
/// status that it has failed, or it closed a connection without a word that had waited for the request.
fn check_retry(first: &Asked, again: &Asked) {
    let passed = Response::parse(&again.written_before).map(|response| events(&response.body)).unwrap_or_default();
    assert!(passed.is_empty(), "asked again after the client had {} events", passed.len());
    let was_stale = first.said.status == 0 && first.request.nth_on_connection > 0;
    let has_failed = RETRIED.contains(&first.said.status);
    assert!(was_stale || has_failed, "asked again after status {}", first.said.status);
}

/// The statuses after which a request is repeated.
const RETRIED: [u16; 4] = [500, 502, 503, 529];
