//! L: the memory for request bodies is exact on every road.

use crate::client::Request;
use crate::gate::Gate;
use crate::roads::{Road, roads};

/// On every road bodies may fill `body_memory` to the last byte; one byte more is 503 with `Retry-After: 1`, and the memory
/// of a body is free when its request was answered.
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

/// Sends a request for whose body no memory is left.
#[track_caller]
fn is_shed(gate: &Gate, road: Road, request: &Request) {
    let response = gate.refuse(request);
    assert_eq!(road.refusal(&response), (503, road.code("service_unavailable", "overloaded_error")), "{road:?}");
    assert_eq!(response.header("retry-after"), Some("1"), "{road:?}");
}

/// Half of the memory.
const HALF: usize = 32 << 10;
