//! Other encodings of valid streams, and invalid text.

use std::time::Duration;

use memchr::memmem;

use super::events::{change_delta, first_delta};
use super::{Scenario, pair, size};
use crate::honest::{self, Reply};
use crate::play::Play;
use crate::request::{Protocol, Request};

scenarios! {
    "byte-by-byte" [S1] "a body in chunks of one byte" => |request, _| honest::answer(request).chunked_by(&[1]);
    "chunked-N" (7) [S1] "a body in pieces of N bytes" =>
        |request, [bytes, _]| honest::answer(request).chunked_by(&[size(bytes)]);
    "at-once" [S1] "a body in one piece" => |request, _| honest::answer(request).chunked_by(&[]);
    "drip-N" (50) [U21] "N milliseconds before each event" =>
        |request, [pause, _]| honest::answer(request).paced(Duration::from_millis(pause));
    "sse-crlf" [S2] "lines that end in CRLF" => |request, _| rewritten(request, |_, text| text.replace('\n', "\r\n"));
    "sse-cr" [S2] "lines that end in CR" => |request, _| rewritten(request, |_, text| text.replace('\n', "\r"));
    "sse-bom" [S2] "a byte order mark before the first event" =>
        |request, _| rewritten(request, |place, text| if place == 0 { format!("\u{FEFF}{text}") } else { text });
    "sse-comments" [S2] "comments between the events" =>
        |request, _| rewritten(request, |_, text| format!(": keep-alive\n\n{text}"));
    "sse-fields" [S2] "id, retry and unknown fields in every event" => |request, _| {
        rewritten(request, |place, text| format!("id: {place}\nretry: 3000\nretry: soon\nx-unknown: 1\nlonely\n{text}"))
    };
    "sse-no-space" [S2] "no space after the colons" => |request, _| {
        rewritten(request, |_, text| text.replacen("event: ", "event:", 1).replacen("data: {", "data:{", 1))
    };
    "sse-multi-line" [S2] "data over several lines" => |request, _| rewritten(request, |_, text| {
        // JSON allows a line break before the last brace.
        match text.strip_suffix("}\n\n") {
            Some(start) => format!("{start}\ndata: }}\n\n"),
            None => text,
        }
    });
    "huge-event-N" (2_048) [S4] "an event with an unknown member of N KiB" => |request, [kibibytes, _]| {
        let length = size(kibibytes).min(MAX_KIBIBYTES) << 10;
        change_delta(request, |data| data["padding"] = "x".repeat(length).into())
    };
    "invalid-utf8" [S11] "invalid UTF-8 in a delta" => invalid_utf8;
}

fn invalid_utf8(request: &Request, _: [u64; 2]) -> Play {
    let play = honest::answer(request);
    let Reply::Events(events) = honest::reply(request) else {
        return play;
    };
    let member = match request.protocol() {
        Some(Protocol::Chat) => "\"content\":\"",
        Some(Protocol::Messages) => "\"text\":\"",
        Some(Protocol::Images) => "\"b64_json\":\"",
        _ => "\"delta\":\"",
    };
    let mut pieces: Vec<_> = events
        .iter()
        .map(|event| event.encoded().into_bytes())
        .collect();
    let delta = &mut pieces[first_delta(&events)];
    if let Some(at) = memmem::find(delta, member.as_bytes()) {
        let at = at + member.len();
        // A byte that is never valid, a lead byte without continuation, and a continuation byte
        // without a lead byte.
        delta.splice(at..at, *b"\xFF\xC3\x28\x80");
    }
    play.with_pieces(pieces)
}

/// A conforming stream with each event in another encoding.
fn rewritten(request: &Request, write: impl Fn(usize, String) -> String) -> Play {
    let play = honest::answer(request);
    let Reply::Events(events) = honest::reply(request) else {
        return play;
    };
    play.with_pieces(
        events
            .iter()
            .enumerate()
            .map(|(place, event)| write(place, event.encoded())),
    )
}

const MAX_KIBIBYTES: usize = 1 << 20;
