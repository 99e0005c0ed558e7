//! Other encodings of valid streams, and invalid text.

use std::time::Duration;

use sluicegate_simulator::Protocol;
use testkit::GUARD;

use super::{plain, stream};
use crate::samples::PROTOCOLS;

#[test]
fn a_stream_in_other_pieces_is_the_same_stream() {
    for protocol in PROTOCOLS {
        for (name, largest) in [
            ("byte-by-byte", 1),
            ("chunked-7", 7),
            ("at-once", usize::MAX),
        ] {
            let mut exchange = stream(name, protocol);
            let answer = exchange.response();
            assert_eq!(answer.body, exchange.honest_body(), "{name}");
            assert!(
                answer.chunks().iter().all(|chunk| chunk.len() <= largest),
                "{name}"
            );
            assert_eq!(
                answer.chunks().len(),
                exchange.honest_body().len().div_ceil(largest),
                "{name}"
            );
        }
    }
    let mut exchange = plain("byte-by-byte", Protocol::Chat);
    assert_eq!(exchange.response().body, exchange.honest_body());
}

#[test]
fn a_stream_drips() {
    let mut exchange = stream("drip-2", Protocol::Chat);
    assert_eq!(exchange.response().chunks(), exchange.honest_events());
    let count = u32::try_from(exchange.honest_events().len()).unwrap();
    drop(exchange.client);
    let closed = exchange.simulator.wait_for_close(0, GUARD).unwrap();
    assert!(closed - exchange.request.at >= Duration::from_millis(2) * count);
}

#[test]
fn a_stream_is_written_in_other_ways_and_means_the_same() {
    for (name, sign) in [
        ("sse-crlf", "\r\n\r\n"),
        ("sse-cr", "}\r\r"),
        ("sse-bom", "\u{FEFF}"),
        ("sse-comments", ": keep-alive\n\n"),
        (
            "sse-fields",
            "id: 1\nretry: 3000\nretry: soon\nx-unknown: 1\nlonely\n",
        ),
        ("sse-no-space", "data:{"),
        ("sse-multi-line", "\ndata: }\n\n"),
        ("huge-event-64", "\"padding\":\"xxx"),
    ] {
        for protocol in PROTOCOLS {
            let response = stream(name, protocol).response();
            let text = response.text();
            assert!(text.contains(sign), "{name} {protocol:?}");
            assert!(
                text != stream(name, protocol).honest_text(),
                "{name} {protocol:?}"
            );
            let mut exchange = stream(name, protocol);
            let mut folded = exchange
                .fold()
                .unwrap_or_else(|error| panic!("{name} {protocol:?}: {error}"));
            // The fold of Chat keeps unknown fields.
            folded.as_object_mut().unwrap().shift_remove("padding");
            assert_eq!(folded, exchange.honest_fold(), "{name} {protocol:?}");
        }
    }
    assert!(
        !stream("sse-cr", Protocol::Chat)
            .response()
            .text()
            .contains('\n')
    );
    assert!(
        stream("huge-event-64", Protocol::Chat)
            .response()
            .body
            .len()
            > 64 << 10
    );
}

#[test]
fn a_stream_is_no_text() {
    for protocol in PROTOCOLS {
        let mut exchange = stream("invalid-utf8", protocol);
        let body = exchange.response().body;
        let bad = b"\xFF\xC3\x28\x80";
        let at = body
            .windows(bad.len())
            .position(|window| window == bad)
            .unwrap_or_else(|| panic!("{protocol:?}"));
        assert!(body[..at].ends_with(b":\""), "at the beginning of a string");
        let mended = [&body[..at], &body[at + bad.len()..]].concat();
        assert_eq!(mended, exchange.honest_body());
    }
}
