//! L: the memory limit for request bodies is exact on every route and upstream protocol.

use testkit::Request;

use crate::gate::Gate;
use crate::roads::{Road, roads};

/// On every route request bodies may fill `body_memory` to the last byte; one byte more is refused
/// with 503 and `Retry-After: 1`, and the memory of a body is released when its request has been
/// answered.
#[test]
fn l06_bodies_may_fill_their_memory_on_every_road() {
    // The body of a request that waits for its upstream is still in memory.
    let gate = Gate::new("body_memory = \"64KiB\"\njson_body = \"64KiB\"\nedit_body = \"64KiB\"");
    for road in roads() {
        let hold = |length| gate.hold(&road.with(&road.body_of(length)));
        let held = vec![hold(HALF), hold(HALF)];
        is_shed(&gate, road, &road.request(false));
        gate.release(held);

        let held = vec![hold(HALF)];
        is_shed(&gate, road, &road.with(&road.body_of(HALF + 1)));
        gate.release(held);

        gate.release(vec![hold(HALF), hold(HALF - 1)]);
        gate.release(vec![hold(2 * HALF)]);
    }
}

/// Asserts that a request is refused because no memory is left for its body.
#[track_caller]
fn is_shed(gate: &Gate, road: Road, request: &Request) {
    let response = gate.refuse(request);
    assert_eq!(
        road.refusal(&response),
        (503, road.code("service_unavailable", "overloaded_error")),
        "{road:?}"
    );
    assert_eq!(response.header("retry-after"), Some("1"), "{road:?}");
}

/// Half of the memory.
const HALF: usize = 32 << 10;
