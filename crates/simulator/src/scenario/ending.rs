//! Faults at the end of a body or a stream.

use std::time::Duration;

use super::events::{edit, end_of_answer, first_delta, renumber};
use super::{Scenario, pair, size};
use crate::honest::{self, Event, Reply};
use crate::play::{Cut, Play};
use crate::request::{Protocol, Request};

scenarios! {
    // The end of a body.
    "stall-after-N" (3) [U7] "nothing after N events" =>
        |request, [events, _]| honest::answer(request).cut_after(size(events), Cut::Hold);
    "stall-at-N" (200) [U7] "nothing after N bytes of the body" =>
        |request, [bytes, _]| honest::answer(request).cut_at(size(bytes), Cut::Hold);
    "reset-at-N" (200) [U8] "RST after N bytes of the body" =>
        |request, [bytes, _]| honest::answer(request).cut_at(size(bytes), Cut::Reset);
    "reset-after-N" (3) [U8] "RST after N events" =>
        |request, [events, _]| honest::answer(request).cut_after(size(events), Cut::Reset);
    "close-at-N" (200) [U8] "FIN after N bytes of the body, without its proper end" =>
        |request, [bytes, _]| honest::answer(request).cut_at(size(bytes), Cut::Close);
    "eof-at-N" (200) [U9] "the proper end of a body after N bytes of it" =>
        |request, [bytes, _]| honest::answer(request).cut_at(size(bytes), Cut::Clean);
    "reset-after-end" [U8] "RST after the last byte" => |request, _| honest::answer(request).reset();
    "eof-without-end" [U9] "a stream that ends properly before its terminal event" =>
        |request, _| edit(request, |events| events.truncate(end_of_answer(request, events)));
    "no-done" [U9] "a stream without its very last event: for Chat, without [DONE]" =>
        |request, _| edit(request, |events| drop(events.pop()));
    "empty-stream" [S9] "a stream without events" => |request, _| edit(request, Vec::clear);
    "missing-blank-line" [S3] "a stream whose last event has no empty line" => missing_blank_line;
    "hold-after-end" [U20] "a stream that stays open after its terminal event" => hold_after_end;
    "after-end" [S7] "a delta after the terminal event" => |request, _| with_repeated(request, first_delta);
    "two-ends" [S7] "the terminal event twice" =>
        |request, _| with_repeated(request, |events| events.len().saturating_sub(1));
    "done-after-end" [S7] "[DONE] after the terminal event of protocols that have none" => |request, _| {
        let done = (request.protocol() != Some(Protocol::Chat)).then(|| Event { name: None, data: "[DONE]".into() });
        edit(request, |events| events.extend(done))
    };
    "delta-after-finish" [S7] "a delta after the finish reason, before the terminal event" => delta_after_finish;
    // Endless streams.
    "endless-line" [S4] "a line that never ends" =>
        |request, _| without_end(request, Play::new().body("data: "), Play::new().body("a".repeat(16 << 10)));
    "endless-deltas" [U19] "endless deltas as fast as they are read" => endless_deltas;
    "endless-comments-N" (10) [S10] "a comment every N milliseconds, endlessly, and no event" =>
        |request, [pause, _]| repeated(request, pause, ": keep-alive\n\n");
    "endless-empty-data-N" (10) [S10] "an empty event every N milliseconds, endlessly" =>
        |request, [pause, _]| repeated(request, pause, "data:\n\n");
}

fn missing_blank_line(request: &Request, _: [u64; 2]) -> Play {
    let play = honest::answer(request);
    let length = play.body_bytes().len();
    if request.streams() {
        play.cut_at(length.saturating_sub(1), Cut::Clean)
    } else {
        play
    }
}

fn hold_after_end(request: &Request, _: [u64; 2]) -> Play {
    let play = honest::answer(request);
    if request.streams() {
        play.cut_after(usize::MAX, Cut::Hold)
    } else {
        play
    }
}

fn delta_after_finish(request: &Request, _: [u64; 2]) -> Play {
    edit(request, |events| {
        let has_finish = matches!(
            request.protocol(),
            Some(Protocol::Chat | Protocol::Messages)
        );
        let place = end_of_answer(request, events) + usize::from(has_finish);
        events.insert(place, events[first_delta(events)].clone());
        renumber(events);
    })
}

/// A stream with one of its events again at the end.
fn with_repeated(request: &Request, place: impl FnOnce(&[Event]) -> usize) -> Play {
    edit(request, |events| {
        events.extend(events.get(place(events)).cloned());
        renumber(events);
    })
}

fn endless_deltas(request: &Request, _: [u64; 2]) -> Play {
    let Reply::Events(events) = honest::reply(request) else {
        return honest::answer(request);
    };
    let delta = first_delta(&events);
    let beginning = events[..delta]
        .iter()
        .map(Event::encoded)
        .fold(Play::new(), Play::body);
    let mut repeated = events[delta].clone();
    // Numbers would repeat, which is a failure of its own. Servers that do not number their events
    // leave them out.
    repeated.change(|data| {
        if let Some(data) = data.as_object_mut() {
            data.remove("sequence_number");
        }
    });
    without_end(request, beginning, Play::new().body(repeated.encoded()))
}

/// A stream of this text, endlessly, with a pause in milliseconds before each time.
fn repeated(request: &Request, pause: u64, text: &'static str) -> Play {
    without_end(
        request,
        Play::new(),
        Play::new().pause(Duration::from_millis(pause)).body(text),
    )
}

/// The head of a stream, its `beginning`, and then `forever` repeated endlessly.
fn without_end(request: &Request, beginning: Play, forever: Play) -> Play {
    if request.streams() {
        Play::stream().then(beginning).forever(forever)
    } else {
        honest::answer(request)
    }
}
