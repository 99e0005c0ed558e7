//! O: the limits of concurrent requests are exact on every route and upstream protocol.

use simulator::Protocol;
use testkit::{IMAGES, MESSAGES, TEXT};

use crate::gate::Gate;
use crate::roads::{Asks, Road, roads};

/// On every route, plain or streamed, exactly as many requests as the concurrency limit are
/// accepted and one more is refused with `gateway_concurrency_limit`; once they have ended as many
/// are accepted again.
#[test]
fn o01_o02_o03_the_concurrency_limit_is_exact_on_every_road() {
    let gate = Gate::new("concurrency = 2");
    for (road, stream) in roads_and_modes() {
        for _ in 0..2 {
            let held = (0..2).map(|_| gate.hold(&road.request(stream))).collect();
            is_over_the_limit(&gate, road, stream);
            gate.release(held);
        }
    }
}

/// On every route, plain or streamed, exactly as many requests of one key as its limit are accepted
/// and one more is refused, while another key has its own limit.
#[test]
fn o07_the_concurrency_limit_of_a_key_is_exact_on_every_road() {
    let gate = Gate::new("concurrency = 8\nconcurrency_per_key = 2");
    for (road, stream) in roads_and_modes() {
        let mut held: Vec<_> = (0..2).map(|_| gate.hold(&road.request(stream))).collect();
        is_over_the_limit(&gate, road, stream);
        held.extend((0..2).map(|_| gate.hold(&road.by(other_key(road), stream))));
        is_over_the_limit(&gate, road, stream);
        gate.release(held);
    }
}

/// Asserts that one more request is refused.
#[track_caller]
fn is_over_the_limit(gate: &Gate, road: Road, stream: bool) {
    let response = gate.refuse(&road.request(stream));
    if stream && road.asks == Asks::Text(Protocol::Responses) {
        let failure = grammar::stream(Protocol::Responses, &response).failure();
        assert!(
            failure.contains("\"gateway_concurrency_limit\""),
            "{failure}"
        );
    } else {
        assert_eq!(
            road.refusal(&response),
            (
                429,
                road.code("gateway_concurrency_limit", "rate_limit_error")
            ),
            "{road:?}"
        );
        assert_eq!(response.header("retry-after"), Some("1"), "{road:?}");
    }
}

/// Every road plain, and streamed where it has streams.
fn roads_and_modes() -> Vec<(Road, bool)> {
    let both = roads()
        .into_iter()
        .flat_map(|road| [(road, false), (road, true)]);
    both.filter(|(road, stream)| !(*stream && road.asks == Asks::Count))
        .collect()
}

/// A second key for this road.
fn other_key(road: Road) -> &'static str {
    match road.asks {
        Asks::Text(Protocol::Messages) | Asks::Count => MESSAGES,
        Asks::Text(_) => TEXT,
        Asks::Generation | Asks::Edit | Asks::Form => IMAGES,
    }
}
