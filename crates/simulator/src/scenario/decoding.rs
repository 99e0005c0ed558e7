//! Other encodings of valid streams, and invalid text.

use std::time::Duration;

use bytes::Bytes;

use super::events::{change, edit, first_delta};
use super::size;
use crate::honest::{self, Event, Reply};
use crate::play::Play;
use crate::request::{Protocol, Request};

pub(super) fn byte_by_byte(request: &Request, _: [u64; 2]) -> Play {
    honest::answer(request).chunked_by(&[1])
}

pub(super) fn chunked(request: &Request, [bytes, _]: [u64; 2]) -> Play {
    honest::answer(request).chunked_by(&[size(bytes)])
}

pub(super) fn at_once(request: &Request, _: [u64; 2]) -> Play {
    honest::answer(request).chunked_by(&[])
}

pub(super) fn drip(request: &Request, [milliseconds, _]: [u64; 2]) -> Play {
    honest::answer(request).paced(Duration::from_millis(milliseconds))
}

pub(super) fn crlf(request: &Request, _: [u64; 2]) -> Play {
    rewritten(request, |_, text| text.replace('\n', "\r\n"))
}

pub(super) fn cr(request: &Request, _: [u64; 2]) -> Play {
    rewritten(request, |_, text| text.replace('\n', "\r"))
}

pub(super) fn bom(request: &Request, _: [u64; 2]) -> Play {
    rewritten(request, |place, text| if place == 0 { format!("\u{FEFF}{text}") } else { text })
}

pub(super) fn comments(request: &Request, _: [u64; 2]) -> Play {
    rewritten(request, |_, text| format!(": keep-alive\n\n{text}"))
}

pub(super) fn fields(request: &Request, _: [u64; 2]) -> Play {
    rewritten(request, |place, text| format!("id: {place}\nretry: 3000\nretry: soon\nx-unknown: 1\nlonely\n{text}"))
}

pub(super) fn no_space(request: &Request, _: [u64; 2]) -> Play {
    rewritten(request, |_, text| text.replacen("event: ", "event:", 1).replacen("data: {", "data:{", 1))
}

/// Splits the data before the last brace, where JSON allows a line break.
pub(super) fn multi_line(request: &Request, _: [u64; 2]) -> Play {
    rewritten(request, |_, text| match text.strip_suffix("}\n\n") {
        Some(start) => format!("{start}\ndata: }}\n\n"),
        None => text,
    })
}

pub(super) fn huge_event(request: &Request, [kibibytes, _]: [u64; 2]) -> Play {
    let length = size(kibibytes).min(MAX_KIBIBYTES) << 10;
    edit(request, |events| {
        let place = first_delta(events);
        change(&mut events[place], |data| data["padding"] = "x".repeat(length).into());
    })
}

pub(super) fn invalid_utf8(request: &Request, _: [u64; 2]) -> Play {
    let play = honest::answer(request);
    let Reply::Events(events) = honest::reply(request) else { return play };
    let member = match request.protocol() {
        Some(Protocol::Chat) => "\"content\":\"",
        Some(Protocol::Messages) => "\"text\":\"",
        Some(Protocol::Images) => "\"b64_json\":\"",
        _ => "\"delta\":\"",
    };
    let place = first_delta(&events);
    let pieces = events.iter().enumerate().map(|(at, event)| {
        let bytes = event.to_bytes();
        let text = event.data.find(member).filter(|_| at == place);
        let Some(text) = text else { return bytes };
        let (before, after) = bytes.split_at(bytes.len() - 2 - event.data.len() + text + member.len());
        // A byte that is never valid, a lead byte without continuation, and a continuation byte without a lead byte.
        Bytes::from([before, b"\xFF\xC3\x28\x80", after].concat())
    });
    play.with_pieces(pieces)
}

/// A conforming stream with each event in another encoding.
fn rewritten(request: &Request, write: impl Fn(usize, String) -> String) -> Play {
    let play = honest::answer(request);
    let Reply::Events(events) = honest::reply(request) else { return play };
    let text = |event: &Event| String::from_utf8_lossy(&event.to_bytes()).into_owned();
    play.with_pieces(events.iter().enumerate().map(|(place, event)| write(place, text(event))))
}

const MAX_KIBIBYTES: usize = 1 << 20;
