//! Faults of HTTP: before the head, in the head, and complete replies that are wrong.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::{Scenario, pair};
use crate::honest::{self, Failure};
use crate::play::{EVENT_STREAM, Framing, Play, Step};
use crate::request::{Protocol, Request};

scenarios! {
    // Before the head, and the head.
    "close-before-head" [U6] "FIN without a byte" => |_, _| Play::new().close();
    "reset-before-head" [U6] "RST without a byte" => |_, _| Play::new().reset();
    "close-on-reuse" [U6] "FIN without a byte, on a connection that was used before" =>
        |request, _| if request.nth_on_connection > 0 { Play::new().close() } else { honest::answer(request) };
    "reset-on-reuse" [U6] "RST without a byte, on a connection that was used before" =>
        |request, _| if request.nth_on_connection > 0 { Play::new().reset() } else { honest::answer(request) };
    "stall-head" [U5] "reads the request and sends nothing" => |_, _| Play::new().hold();
    "stall-in-head" [U5] "half a head, then nothing" =>
        |_, _| Play::new().bytes("HTTP/1.1 200 OK\r\ncontent-ty").hold();
    "delay-N" (250) [U5] "a conforming reply after N milliseconds" =>
        |request, [pause, _]| Play::new().pause(Duration::from_millis(pause)).then(honest::answer(request));
    "garbage-head" [U18] "a head that is not HTTP" =>
        |_, _| Play::new().bytes("220 mail.host.example ESMTP\r\n\r\n").close();
    "huge-head" [U18] "a header of 100 KiB" =>
        |request, _| with_headers(request, &[("x-padding", &"a".repeat(100 << 10))]);
    "many-headers" [U18] "10,000 headers" => |request, _| {
        let names: Vec<_> = (0..10_000).map(|number| format!("x-{number}")).collect();
        with_headers(request, &names.iter().map(|name| (name.as_str(), "a")).collect::<Vec<_>>())
    };
    "private-headers" [U18] "Set-Cookie, Server and other headers that must not be forwarded" =>
        |request, _| with_headers(request, PRIVATE_HEADERS);
    "early-hints" [] "103 before the reply" => |request, _| {
        Play::new().bytes("HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n").then(honest::answer(request))
    };
    "http-10" [] "HTTP/1.0: no framing, the body ends with the connection" => |request, _| {
        let head = Play::new().bytes(format!("HTTP/1.0 200 OK\r\ncontent-type: {}\r\n\r\n", media_type(request)));
        head.with_pieces(honest::answer(request).pieces().cloned()).close()
    };
    // Complete replies that are wrong.
    "status-N" (500) [U16 U17] "status N with an error in the protocol's format; a 401 repeats the key" =>
        |request, [status, _]| refuse(request, status, None);
    "status-N-retry-N" (429, 7) [U15] "the same with Retry-After: N" =>
        |request, [status, seconds]| refuse(request, status, Some(&seconds.to_string()));
    "status-429-retry-date" [U15] "429 with a date in Retry-After" =>
        |request, _| refuse(request, 429, Some("Fri, 31 Dec 2100 23:59:59 GMT"));
    "status-429-retry-negative" [U15] "429 with Retry-After: -5" => |request, _| refuse(request, 429, Some("-5"));
    "status-429-retry-garbage" [U15] "429 with Retry-After: soon" => |request, _| refuse(request, 429, Some("soon"));
    "flaky-N" (503) [U17] "status N for requests 0, 2, 4 …, conforming replies for the others" =>
        |request, [status, _]| match request.number % 2 {
            0 => refuse(request, status, None),
            _ => honest::answer(request),
        };
    "error-200" [U12] "200 with an error object" => |request, _| Play::json(200, &failure(request, 500).body(request));
    "error-for-stream" [U12] "200 with an error object under text/event-stream" =>
        |request, _| Play::answer(200, EVENT_STREAM, failure(request, 500).body(request).to_string());
    "html-200" [U13] "200 with an HTML page of a middlebox" =>
        |_, _| Play::answer(200, HTML, "<html><body><h1>Welcome to the network</h1></body></html>\n");
    "html-502" [U13] "502 with an HTML page of a middlebox" => |_, _| {
        Play::answer(502, HTML, "<html><head><title>502 Bad Gateway</title></head><body><hr>nginx</body></html>\n")
    };
    "empty-200" [U13] "200 with an empty body" => |_, _| Play::answer(200, &[], Bytes::new());
    "empty-204" [U13] "204" => |_, _| Play::new().head(204, &[], Framing::Bare);
    "redirect" [U13] "307 to /redirected on the same server" => |request, _| {
        let to = format!("http://{}/redirected{}", request.header("host").unwrap_or("127.0.0.1"), request.path);
        Play::answer(307, &[("location", &to)], Bytes::new())
    };
    "content-length-short" [U10] "a length that is 10 less than the body's" =>
        |request, _| with_length(request, |length| length.saturating_sub(10));
    "content-length-long" [U10] "a length that is 10 more than the body's, then FIN" =>
        |request, _| with_length(request, |length| length + 10).close();
    "two-answers" [U10 U22] "a second, unrequested reply" =>
        |request, _| honest::answer(request).then(Play::json(200, &json!({"unasked": true})));
    "json-as-event-stream" [U11 U12] "a plain reply under text/event-stream" =>
        |request, _| Play::answer(200, EVENT_STREAM, honest::plain(request).play(request).body_bytes());
    "json-for-stream" [U12] "a plain reply to a request for a stream" =>
        |request, _| honest::plain(request).play(request);
    "stream-as-text" [U13] "a stream under text/plain" => |request, _| {
        let head = Play::new().head(200, &[("content-type", "text/plain")], Framing::Chunked);
        head.with_pieces(honest::answer(request).pieces().cloned()).step(Step::End)
    };
    "gzip" [S14] "a body with Content-Encoding: gzip, though the request does not accept it" =>
        |request, _| packed(request, "gzip");
    "unknown-coding" [S14] "the same body with Content-Encoding: br" => |request, _| packed(request, "br");
}

/// The media type of the conforming reply to a request.
fn media_type(request: &Request) -> &'static str {
    if request.streams() {
        "text/event-stream"
    } else {
        "application/json"
    }
}

/// A conforming reply in gzip under the name of this coding.
fn packed(request: &Request, coding: &str) -> Play {
    let body = gzipped(&honest::answer(request).body_bytes());
    let headers = [
        ("content-type", media_type(request)),
        ("content-encoding", coding),
    ];
    Play::answer(200, &headers, body)
}

/// A conforming reply with additional headers.
fn with_headers(request: &Request, headers: &[(&str, &str)]) -> Play {
    let headers = [headers, &[("content-type", media_type(request))]].concat();
    Play::answer(200, &headers, honest::answer(request).body_bytes())
}

/// A conforming reply with a wrong `content-length`.
fn with_length(request: &Request, length: impl FnOnce(usize) -> usize) -> Play {
    let body = honest::plain(request).play(request).body_bytes();
    let head = Play::new().head(
        200,
        &[("content-type", "application/json")],
        Framing::Length(length(body.len())),
    );
    head.body(body)
}

/// An error of this status, with a `retry-after` header if there is a value for it.
fn refuse(request: &Request, status: u64, retry_after: Option<&str>) -> Play {
    let status = u16::try_from(status)
        .ok()
        .filter(|status| (200..1_000).contains(status))
        .unwrap_or(500);
    let retry_after = retry_after.map(|value| ("retry-after", value));
    let headers: Vec<_> = retry_after
        .into_iter()
        .chain([("content-type", "application/json")])
        .collect();
    Play::answer(
        status,
        &headers,
        failure(request, status).body(request).to_string(),
    )
}

/// The error of a status. Like some servers, it repeats an invalid API key.
fn failure(request: &Request, status: u16) -> Failure {
    let key = request
        .header("authorization")
        .or(request.header("x-api-key"))
        .unwrap_or_default();
    let message = match (status, request.protocol()) {
        (401, _) => {
            format!("Incorrect API key provided: {key}. Organization: org-simulator-secret.")
        }
        (429, _) => "Rate limit reached. Please try again later.".into(),
        (503 | 529, Some(Protocol::Messages)) => "Overloaded".into(),
        (500.., _) => {
            "The server had an error while processing your request (internal-host-7).".into()
        }
        _ => "Simulated refusal.".into(),
    };
    Failure::of_status(status, message)
}

/// Encodes a gzip file (RFC 1952) with stored blocks (RFC 1951 §3.2.4).
fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255];
    for block in bytes.chunks(usize::from(u16::MAX)) {
        let length = block.len() as u16;
        file.push(0);
        file.extend(length.to_le_bytes());
        file.extend((!length).to_le_bytes());
        file.extend(block);
    }
    // The last block is empty.
    file.extend([1, 0, 0, 0xFF, 0xFF]);
    file.extend(crc32(bytes).to_le_bytes());
    file.extend((bytes.len() as u32).to_le_bytes());
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    let mix = |sum: u32, _| {
        if sum & 1 == 1 {
            (sum >> 1) ^ 0xEDB8_8320
        } else {
            sum >> 1
        }
    };
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), mix)
    })
}

const PRIVATE_HEADERS: &[(&str, &str)] = &[
    ("set-cookie", "session=simulator-secret; HttpOnly"),
    ("server", "simulator/1.0 (internal-host-7)"),
    ("openai-organization", "org-simulator-secret"),
    ("alt-svc", "h3=\":443\"; ma=86400"),
    ("strict-transport-security", "max-age=31536000"),
];

const HTML: &[(&str, &str)] = &[("content-type", "text/html")];
