//! Responses of every framing, valid and invalid.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Lines of a head, valid and invalid.
fn lines() -> impl Strategy<Value = Vec<&'static str>> {
    vec(
        select(vec![
            "Content-Type: text/event-stream\r\n",
            "Content-Type: application/json\r\n",
            "content-encoding:gzip\r\n",
            "Retry-After: 7\r\n",
            "x-request-id: \t a b \t\r\n",
            "X-Request-Id: \u{e9}\r\n",
            "Connection: close\r\n",
            "connection: Keep-Alive, x\r\n",
            "connection: \u{e9}, close\r\n",
            "Content-Length: 5\r\n",
            "content-length: 5, 5\r\n",
            "content-length: 4\r\n",
            "content-length: 0\r\n",
            "content-length: +5\r\n",
            "content-length:\r\n",
            "content-length: 18446744073709551616\r\n",
            "Transfer-Encoding: chunked\r\n",
            "transfer-encoding: gzip, Chunked\r\n",
            "transfer-encoding: chunked, gzip\r\n",
            "transfer-encoding:\r\n",
            "x: y\n",
            " folded\r\n",
            "x : y\r\n",
            "no colon\r\n",
        ]),
        0..5,
    )
}

fn head() -> impl Strategy<Value = String> {
    let version = select(vec![
        "HTTP/1.1 ",
        "HTTP/1.1 ",
        "HTTP/1.1 ",
        "HTTP/1.0 ",
        "HTTP/2.0 ",
    ]);
    let status = select(vec![
        "200 OK",
        "200",
        "200 ",
        "204 X",
        "304 X",
        "404 \u{e9}",
        "999 X",
        "099 X",
        "101 X",
        "20 X",
    ]);
    let status = prop_oneof![4 => Just("200 OK"), 1 => status];
    let interim = vec(
        select(vec![
            "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "\r\n",
            "HTTP/1.0 199 X\r\nContent-Length: 5\r\n\r\n",
        ]),
        0..2,
    );
    (interim, version, status, lines()).prop_map(|(interim, version, status, lines)| {
        format!(
            "{}{version}{status}\r\n{}\r\n",
            interim.concat(),
            lines.concat()
        )
    })
}

fn body() -> impl Strategy<Value = String> {
    let chunk = select(vec![
        "1\r\na\r\n",
        "4\r\nbody\r\n",
        "0004;x=y\r\nbody\r\n",
        "A \t;x\r\n0123456789\r\n",
        "2\r\nab\n",
        "g\r\n",
        "1\na\r\n",
        "ffffffffffffffffff\r\n",
        "ffffffffffffffff\r\na",
        ";\r\n",
        "1 1\r\na\r\n",
    ]);
    let end = select(vec![
        "0\r\n\r\n",
        "0\r\n\r\n",
        "00;x\r\nTrailer: x\r\n\r\n",
        "0\r\na: b\nc: d\r\n\r\n",
        "0\r\nno trailer\r\n\r\n",
        "0\r\na:\rb\r\n\r\n",
        "0\r\n\n",
        "0\r\na: b\n\nc\r\n\r\n",
        "",
    ]);
    let chunks = (vec(chunk, 0..4), end).prop_map(|(chunks, end)| chunks.concat() + end);
    let plain = select(vec!["", "body", "abcde", "abcdefghij"]).prop_map(str::to_owned);
    prop_oneof![2 => valid_chunks(), 2 => chunks, 1 => plain]
}

fn valid_chunks() -> impl Strategy<Value = String> {
    let chunk = select(vec!["1\r\na\r\n", "6;x\r\n{body}\r\n"]);
    vec(chunk, 0..6).prop_map(|chunks| chunks.concat() + "0\r\n\r\n")
}

/// A response without a violation.
fn valid() -> impl Strategy<Value = String> {
    let line = select(vec![
        "Content-Type: text/event-stream\r\n",
        "x-request-id: \t a b \t\r\n",
        "x: y\n",
        "Connection: keep-alive\r\n",
    ]);
    let length = |line: &'static str, body: &str| Just((line, body.to_owned()));
    let framed = prop_oneof![
        2 => valid_chunks().prop_map(|chunks| ("Transfer-Encoding: chunked\r\n", chunks)),
        1 => length("Content-Length: 5\r\n", "abcde"),
        1 => length("content-length: 5, 5\r\n", "abcde"),
        1 => length("Content-Length: 0\r\n", ""),
    ];
    let version = prop_oneof![4 => Just("HTTP/1.1"), 1 => Just("HTTP/1.0")];
    (version, vec(line, 0..3), framed).prop_map(|(version, lines, (framing, body))| {
        format!("{version} 200 OK\r\n{}{framing}\r\n{body}", lines.concat())
    })
}

/// A response, perhaps with other bytes in some places, cut off, and with more bytes behind it.
pub(crate) fn response() -> impl Strategy<Value = Vec<u8>> {
    let others = vec(
        (
            any::<Index>(),
            select(b"\r\n \t:;,0aF\x00\x7f\x80".to_vec()),
        ),
        0..3,
    );
    let others = prop_oneof![2 => Just(Vec::new()), 1 => others];
    let stray = prop_oneof![4 => Just(""), 1 => Just("x"), 1 => Just("HTTP/1.1 200 OK\r\n\r\n")];
    let unchecked = (head(), body()).prop_map(|(head, body)| head + &body);
    let message = prop_oneof![valid(), unchecked];
    let cut = proptest::option::weighted(0.2, any::<Index>());
    (message, stray, others, cut).prop_map(|(message, stray, others, cut)| {
        let mut bytes = (message + stray).into_bytes();
        for (at, byte) in others {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        bytes
    })
}
