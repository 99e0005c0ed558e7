//! Faults of HTTP: before the head, in the head, and complete replies that are wrong.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::honest::{self, Failure};
use crate::play::{EVENT_STREAM, Framing, Play, Step};
use crate::request::{Protocol, Request};

pub(super) fn close_before_head(_: &Request, _: [u64; 2]) -> Play {
    Play::new().close()
}

pub(super) fn reset_before_head(_: &Request, _: [u64; 2]) -> Play {
    Play::new().reset()
}

pub(super) fn close_on_reuse(request: &Request, numbers: [u64; 2]) -> Play {
    if request.nth_on_connection > 0 { close_before_head(request, numbers) } else { honest::answer(request) }
}

pub(super) fn reset_on_reuse(request: &Request, numbers: [u64; 2]) -> Play {
    if request.nth_on_connection > 0 { reset_before_head(request, numbers) } else { honest::answer(request) }
}

pub(super) fn stall_head(_: &Request, _: [u64; 2]) -> Play {
    Play::new().hold()
}

pub(super) fn stall_in_head(_: &Request, _: [u64; 2]) -> Play {
    Play::new().bytes("HTTP/1.1 200 OK\r\ncontent-ty").hold()
}

pub(super) fn delay(request: &Request, [milliseconds, _]: [u64; 2]) -> Play {
    Play::new().pause(Duration::from_millis(milliseconds)).then(honest::answer(request))
}

pub(super) fn garbage_head(_: &Request, _: [u64; 2]) -> Play {
    Play::new().bytes("220 mail.host.example ESMTP\r\n\r\n").close()
}

pub(super) fn huge_head(request: &Request, _: [u64; 2]) -> Play {
    with_headers(request, [("x-padding".to_owned(), "a".repeat(100 << 10))])
}

pub(super) fn many_headers(request: &Request, _: [u64; 2]) -> Play {
    with_headers(request, (0..10_000).map(|number| (format!("x-{number}"), "a".to_owned())))
}

pub(super) fn private_headers(request: &Request, _: [u64; 2]) -> Play {
    let headers = [
        ("set-cookie", "session=simulator-secret; HttpOnly"),
        ("server", "simulator/1.0 (internal-host-7)"),
        ("openai-organization", "org-simulator-secret"),
        ("alt-svc", "h3=\":443\"; ma=86400"),
        ("strict-transport-security", "max-age=31536000"),
    ];
    with_headers(request, headers.map(|(name, value)| (name.to_owned(), value.to_owned())))
}

pub(super) fn early_hints(request: &Request, _: [u64; 2]) -> Play {
    Play::new().bytes("HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n").then(honest::answer(request))
}

pub(super) fn http_10(request: &Request, _: [u64; 2]) -> Play {
    let body = honest::answer(request);
    let head = Play::new().bytes(format!("HTTP/1.0 200 OK\r\ncontent-type: {}\r\n\r\n", media_type(request)));
    body.pieces().cloned().fold(head, Play::body).close()
}

pub(super) fn status(request: &Request, [status, _]: [u64; 2]) -> Play {
    refuse(request, status, &[])
}

pub(super) fn status_retry(request: &Request, [status, seconds]: [u64; 2]) -> Play {
    refuse(request, status, &[("retry-after", &seconds.to_string())])
}

pub(super) fn retry_date(request: &Request, _: [u64; 2]) -> Play {
    refuse(request, 429, &[("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT")])
}

pub(super) fn retry_negative(request: &Request, _: [u64; 2]) -> Play {
    refuse(request, 429, &[("retry-after", "-5")])
}

pub(super) fn retry_garbage(request: &Request, _: [u64; 2]) -> Play {
    refuse(request, 429, &[("retry-after", "soon")])
}

pub(super) fn flaky(request: &Request, [status, _]: [u64; 2]) -> Play {
    if request.number.is_multiple_of(2) { refuse(request, status, &[]) } else { honest::answer(request) }
}

pub(super) fn error_200(request: &Request, _: [u64; 2]) -> Play {
    Play::json(200, &failure(request, 500).body(request))
}

pub(super) fn error_for_stream(request: &Request, _: [u64; 2]) -> Play {
    Play::answer(200, EVENT_STREAM, failure(request, 500).body(request).to_string())
}

pub(super) fn html_200(_: &Request, _: [u64; 2]) -> Play {
    Play::answer(200, HTML, "<html><body><h1>Welcome to the network</h1></body></html>\n")
}

pub(super) fn html_502(_: &Request, _: [u64; 2]) -> Play {
    Play::answer(502, HTML, "<html><head><title>502 Bad Gateway</title></head><body><hr>nginx</body></html>\n")
}

pub(super) fn empty_200(_: &Request, _: [u64; 2]) -> Play {
    Play::answer(200, &[], Bytes::new())
}

pub(super) fn empty_204(_: &Request, _: [u64; 2]) -> Play {
    Play::new().head(204, &[], Framing::Bare)
}

pub(super) fn redirect(request: &Request, _: [u64; 2]) -> Play {
    let to = format!("http://{}/redirected{}", request.header("host").unwrap_or("127.0.0.1"), request.path);
    Play::answer(307, &[("location", &to)], Bytes::new())
}

pub(super) fn length_short(request: &Request, _: [u64; 2]) -> Play {
    with_length(request, |length| length.saturating_sub(10))
}

pub(super) fn length_long(request: &Request, _: [u64; 2]) -> Play {
    with_length(request, |length| length + 10).close()
}

pub(super) fn two_answers(request: &Request, _: [u64; 2]) -> Play {
    honest::answer(request).then(Play::json(200, &json!({"unasked": true})))
}

pub(super) fn json_as_event_stream(request: &Request, _: [u64; 2]) -> Play {
    let body = honest::plain(request).play(request).body_bytes();
    Play::answer(200, EVENT_STREAM, body)
}

pub(super) fn json_for_stream(request: &Request, _: [u64; 2]) -> Play {
    honest::plain(request).play(request)
}

pub(super) fn stream_as_text(request: &Request, _: [u64; 2]) -> Play {
    let body = honest::answer(request);
    let head = Play::new().head(200, &[("content-type", "text/plain")], Framing::Chunked);
    body.pieces().cloned().fold(head, Play::body).step(Step::End)
}

pub(super) fn gzip(request: &Request, _: [u64; 2]) -> Play {
    let body = gzipped(&honest::answer(request).body_bytes());
    Play::answer(200, &[("content-type", media_type(request)), ("content-encoding", "gzip")], body)
}

/// The media type of the conforming reply to a request.
fn media_type(request: &Request) -> &'static str {
    if request.streams() { "text/event-stream" } else { "application/json" }
}

/// A conforming reply with additional headers.
fn with_headers(request: &Request, headers: impl IntoIterator<Item = (String, String)>) -> Play {
    let headers: Vec<_> = headers.into_iter().collect();
    let kind = ("content-type", media_type(request));
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain([kind]);
    Play::answer(200, &headers.collect::<Vec<_>>(), honest::answer(request).body_bytes())
}

/// A conforming reply with a wrong `content-length`.
fn with_length(request: &Request, length: impl FnOnce(usize) -> usize) -> Play {
    let body = honest::plain(request).play(request).body_bytes();
    let head = Play::new().head(200, &[("content-type", "application/json")], Framing::Length(length(body.len())));
    head.body(body)
}

fn refuse(request: &Request, status: u64, headers: &[(&str, &str)]) -> Play {
    let status = u16::try_from(status).ok().filter(|status| (200..1_000).contains(status)).unwrap_or(500);
    let headers: Vec<_> = headers.iter().copied().chain([("content-type", "application/json")]).collect();
    Play::answer(status, &headers, failure(request, status).body(request).to_string())
}

/// The error of a status. Like some servers, it repeats an invalid API key.
fn failure(request: &Request, status: u16) -> Failure {
    let key = request.header("authorization").or(request.header("x-api-key")).unwrap_or_default();
    let message = match (status, request.protocol()) {
        (401, _) => format!("Incorrect API key provided: {key}. Organization: org-simulator-secret."),
        (429, _) => "Rate limit reached. Please try again later.".into(),
        (503 | 529, Some(Protocol::Messages)) => "Overloaded".into(),
        (500.., _) => "The server had an error while processing your request (internal-host-7).".into(),
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
    let mix = |sum: u32, _| if sum & 1 == 1 { (sum >> 1) ^ 0xEDB8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), mix))
}

const HTML: &[(&str, &str)] = &[("content-type", "text/html")];
