//! L11: compressed request bodies, honest and malicious, on every route.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::json;
use simulator::Protocol;
use testkit::{CLIENT_KEY, Connection, Request, Response, await_that};

use crate::GATEWAY;
use crate::roads::{Asks, Road, roads};

/// A body in gzip or zstd, also of several members or frames, is accepted on every route, and the
/// upstream gets what a plain body would give, without the coding.
#[test]
fn l11_a_compressed_body_is_read_like_a_plain_one() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let forwarded = || simulator.requests().pop().unwrap();
    for road in roads() {
        let body = road.body_of(2000);
        assert_eq!(road.with(&body).send(gateway.address()).status, 200);
        let plain = forwarded();
        let (first, second) = body.split_at(700);
        for (coding, encoded) in [
            ("identity", body.clone()),
            // An empty list names no coding (RFC 9110, section 5.6.1.2).
            ("", body.clone()),
            ("gzip", gzip(&body)),
            ("identity, gzip", gzip(&body)),
            ("X-GZip", gzip(&body)),
            ("deflate", zlib(&body)),
            ("zstd", zstd(&body)),
            ("Zstd", zstd_streamed(&body)),
            ("gzip", [gzip(first), gzip(second)].concat()),
            ("zstd", [zstd(first), zstd_streamed(second)].concat()),
        ] {
            let response = coded(road, coding, &encoded).send(gateway.address());
            assert_eq!(
                response.status,
                200,
                "{road:?} {coding}: {}",
                response.text()
            );
            let request = forwarded();
            assert_eq!(request.header("content-encoding"), None);
            let length = request.body.len().to_string();
            assert_eq!(request.header("content-length"), Some(&*length));
            // The boundary of a form is chosen anew.
            if road.asks != Asks::Form {
                assert_eq!(request.body, plain.body, "{road:?} {coding}");
            }
        }
    }
    gateway.await_quiet();
}

/// The limit of a body is exact for what it decodes to, and a bomb is refused with 413 as soon as it
/// exceeds the limit, before the rest of it is sent.
#[test]
fn l11_a_bomb_is_refused_at_the_limit() {
    // The budget has room for the limit, a window of 2 MiB and the state of a decoder, and no more.
    let limits = "json_body = \"16KiB\"\nedit_body = \"24KiB\"\nbody_memory = \"3MiB\"\nbody_memory_per_key = \"3MiB\"";
    let (gateway, simulator) = GATEWAY.with_upstream(limits);
    let mut forwarded = 0;
    for road in roads() {
        let limit = match road.asks {
            Asks::Edit | Asks::Form => 24 << 10,
            _ => 16 << 10,
        };
        let encoders: [(&str, Encode); 3] =
            [("gzip", gzip), ("zstd", zstd), ("zstd", zstd_streamed)];
        for (coding, encode) in encoders {
            let send = |length| coded(road, coding, &encode(&road.body_of(length)));
            for length in [limit - 1, limit] {
                let response = send(length).send(gateway.address());
                assert_eq!(response.status, 200, "{road:?}: {}", response.text());
                forwarded += 1;
            }
            assert_too_large(road, &send(limit + 1).send(gateway.address()));
        }
        for (coding, bomb) in [("gzip", gzip(&vec![b' '; 4 << 20])), ("zstd", zstd_bomb())] {
            assert!(bomb.len() < limit, "{}", bomb.len());
            // A form has its own end, so only its start is sent, and as JSON.
            let head = Request::post_bytes(road.path(), &bomb)
                .bearer(CLIENT_KEY)
                .header("content-type", "application/json")
                .header("content-encoding", coding)
                .bytes();
            let mut connection = Connection::open(gateway.address());
            connection.send(&head[..head.len() - bomb.len() + bomb.len() / 4]);
            assert_too_large(road, &connection.response());
        }
    }
    assert_eq!(simulator.requests().len(), forwarded);
    gateway.await_quiet();
}

/// A decoded body and the window of its decoder count toward the memory of all bodies, and
/// are released with it.
#[test]
fn l11_decoded_bytes_count_toward_the_memory() {
    let (gateway, simulator) = GATEWAY.with_upstream(
        "json_body = \"1MiB\"\nedit_body = \"1MiB\"\npicture = \"1MiB\"\nbody_memory = \"1MiB\"",
    );
    let road = roads()[0];
    for _ in 0..3 {
        let response = coded(road, "gzip", &gzip(&road.body_of(500 << 10))).send(gateway.address());
        assert_eq!(response.status, 200, "{}", response.text());
        for (coding, encoded) in [
            ("gzip", gzip(&road.body_of(1 << 20))),
            // The window of 2 MiB does not fit.
            ("zstd", zstd_streamed(&road.body_of(1000))),
        ] {
            let response = coded(road, coding, &encoded).send(gateway.address());
            let owed = (503, "service_unavailable".to_owned());
            assert_eq!(road.refusal(&response), owed, "{coding}");
        }
    }
    assert_eq!(simulator.requests().len(), 3);
    gateway.await_quiet();
}

/// A compressed body that is cut at any byte, has trailing bytes, a wrong checksum or another coding
/// than its label, or needs too large a window, is refused with 400 that names the coding.
#[test]
fn l11_a_body_that_its_coding_does_not_describe_is_refused() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    for road in roads() {
        let body = road.body_of(1000);
        // `printf hi | zstd --long=24`, whose window has 16 MiB.
        let wide = b"\x28\xb5\x2f\xfd\x04\x70\x11\0\0hi\xfa\x38\x26\xea".to_vec();
        let mut broken = vec![
            ("gzip", body.clone()),
            ("zstd", body.clone()),
            ("gzip", zstd(&body)),
            ("zstd", gzip(&body)),
            ("deflate", gzip(&body)),
            ("zstd", wide),
        ];
        for (coding, whole) in [
            ("gzip", gzip(&body)),
            ("deflate", zlib(&body)),
            ("zstd", zstd_streamed(&body)),
        ] {
            broken.push((coding, [&whole[..], b"trailing bytes"].concat()));
            let mut checksum = whole.clone();
            // The checksum is followed by the length in gzip, and by nothing in the others.
            let at = whole.len() - if coding == "gzip" { 5 } else { 1 };
            checksum[at] ^= 1;
            broken.push((coding, checksum));
            let step = if road.path() == "/v1/responses" {
                1
            } else {
                97
            };
            broken.extend(
                (1..whole.len())
                    .step_by(step)
                    .map(|at| (coding, whole[..at].to_vec())),
            );
        }
        for (coding, encoded) in broken {
            let response = coded(road, coding, &encoded).send(gateway.address());
            let owed = (400, road.code("invalid_value", "invalid_request_error"));
            assert_eq!(
                road.refusal(&response),
                owed,
                "{road:?} {coding} {encoded:x?}"
            );
            let message = response.json()["error"]["message"].to_string();
            assert!(message.contains(coding), "{message}");
        }
    }
    assert!(simulator.requests().is_empty());
    assert_eq!(gateway.metric("sluicegate_panics_total"), 0.0);
    gateway.await_quiet();
}

/// Any other coding, and a coding of a coding, is refused with 415 and `Accept-Encoding`, which a
/// wrong media type does not get.
#[test]
fn l11_other_codings_are_refused_with_the_accepted_ones() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    for road in roads() {
        let body = road.body_of(1000);
        let twice = gzip(&zstd(&body));
        for (codings, encoded) in [
            (&["br"][..], &body),
            (&["compress"], &body),
            (&["gzip, zstd"], &twice),
            (&["zstd, gzip"], &twice),
            (&["zstd", "gzip"], &twice),
            (&["identity, br"], &body),
        ] {
            let request = codings.iter().fold(road.with(encoded), |request, coding| {
                request.header("content-encoding", coding)
            });
            let response = request.send(gateway.address());
            let owed = (
                415,
                road.code("unsupported_media_type", "invalid_request_error"),
            );
            assert_eq!(road.refusal(&response), owed, "{road:?} {codings:?}");
            assert_eq!(
                response.header("accept-encoding"),
                Some("zstd, gzip, deflate, identity")
            );
        }
        let request = Request::post_bytes(road.path(), &gzip(&body)).bearer(CLIENT_KEY);
        let request = request
            .header("content-type", "text/plain")
            .header("content-encoding", "gzip");
        let response = request.send(gateway.address());
        assert_eq!(
            (response.status, response.header("accept-encoding")),
            (415, None)
        );
    }
    assert!(simulator.requests().is_empty());
}

/// An empty body with a coding is refused like an empty body.
#[test]
fn l11_an_empty_body_with_a_coding_is_an_empty_body() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    for road in roads() {
        let plain = road.refusal(&road.with(b"").send(gateway.address()));
        for (coding, encoded) in [
            ("gzip", vec![]),
            ("gzip", gzip(b"")),
            ("zstd", vec![]),
            ("zstd", zstd(b"")),
        ] {
            let response = coded(road, coding, &encoded).send(gateway.address());
            assert_eq!(road.refusal(&response), plain, "{road:?} {coding}");
        }
    }
}

/// A client that disconnects within a compressed body does no harm.
#[test]
fn l11_a_client_that_leaves_within_a_compressed_body() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let road = roads()[0];
    let request = coded(road, "gzip", &gzip(&road.body_of(1000))).bytes();
    for missing in [1, 9, 30] {
        let mut connection = Connection::open(gateway.address());
        connection.send(&request[..request.len() - missing]);
        connection.disconnect(std::net::Shutdown::Both);
    }
    await_that("the requests have ended", || {
        gateway.log.lock().unwrap().matches("client_gone").count() >= 3
    });
    gateway.await_quiet();
    assert!(simulator.requests().is_empty());
}

/// A request of Codex: the events of Responses, with a body in zstd of level 3 that is written without
/// its length. See <https://github.com/openai/codex/blob/main/codex-rs/codex-client/src/request.rs>.
#[test]
fn l11_a_body_of_codex_is_read() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let body = json!({
        "model": "responses", "instructions": "You are a coding agent.", "stream": true, "store": false,
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}],
        "tools": [], "tool_choice": "auto", "parallel_tool_calls": false, "include": ["reasoning.encrypted_content"],
    });
    let request = Request::post_bytes("/v1/responses", &zstd_streamed(body.to_string().as_bytes()))
        .bearer(CLIENT_KEY)
        .header("content-type", "application/json")
        .header("content-encoding", "zstd")
        .header("accept", "text/event-stream");
    let response = request.send(gateway.address());
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(response.text().contains("event: response.completed"));
    let forwarded = simulator.requests().pop().unwrap();
    assert_eq!(forwarded.protocol(), Some(Protocol::Responses));
    let text = String::from_utf8(forwarded.body.to_vec()).unwrap();
    assert!(
        text.contains("\"instructions\":\"You are a coding agent.\""),
        "{text}"
    );
}

/// A request with this coding.
fn coded(road: Road, coding: &str, encoded: &[u8]) -> Request {
    road.with(encoded).header("content-encoding", coding)
}

#[track_caller]
fn assert_too_large(road: Road, response: &Response) {
    assert_eq!(
        road.refusal(response),
        (413, "request_too_large".to_owned()),
        "{road:?}"
    );
    assert_eq!(response.header("x-should-retry"), Some("false"));
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// An encoder of whole bodies.
type Encode = fn(&[u8]) -> Vec<u8>;

/// A frame that declares the length of its content.
fn zstd(body: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(zstd_safe::compress_bound(body.len()));
    zstd_safe::compress(&mut encoded, body, 3).unwrap();
    encoded
}

/// A frame of a body whose length was not known, with a window of 2 MiB and a checksum.
fn zstd_streamed(body: &[u8]) -> Vec<u8> {
    let mut encoder = zstd_safe::CCtx::create();
    for parameter in [
        zstd_safe::CParameter::CompressionLevel(3),
        zstd_safe::CParameter::ChecksumFlag(true),
    ] {
        encoder.set_parameter(parameter).unwrap();
    }
    let mut encoded = Vec::with_capacity(zstd_safe::compress_bound(body.len()) + 64);
    let mut output = zstd_safe::OutBuffer::around(&mut encoded);
    let mut input = zstd_safe::InBuffer::around(body);
    encoder.compress_stream(&mut output, &mut input).unwrap();
    assert_eq!(input.pos(), body.len());
    assert_eq!(encoder.end_stream(&mut output).unwrap(), 0);
    encoded
}

/// 393 MB of spaces in 12 KB: blocks that repeat a byte 128 Ki times (RFC 8878 §3.1.1.2), in a frame
/// with a window of 2 MiB.
fn zstd_bomb() -> Vec<u8> {
    let blocks = b"\x02\0\x10\x20".repeat(3000);
    [b"\x28\xb5\x2f\xfd\0\x58", &blocks[..]].concat()
}
