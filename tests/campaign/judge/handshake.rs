//! Checks the handshake of a WebSocket, which is a request of its own.

use super::counts::lines;
use crate::metrics::Counted;

/// Checks that it is counted and logged once. Returns the counts and the log without it.
pub(super) fn check(counted: &Counted, log: &str) -> (Counted, String) {
    let (own, rest): (Vec<_>, Vec<_>) =
        lines(log).partition(|line| line.contains(" route=\"websocket\""));
    assert_eq!(own.len(), 1, "the lines of a handshake in the log");
    assert!(own[0].contains(" status=101"), "a handshake: {}", own[0]);
    let handshake = Counted {
        requests: [("101".to_owned(), 1.0)].into(),
        ..Counted::default()
    };
    (counted.without(&handshake), rest.join("\n"))
}
