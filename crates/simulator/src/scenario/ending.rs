//! Faults at the end of a body or a stream.

use std::time::Duration;

use bytes::Bytes;

use super::events::{edit, end_of_answer, first_delta, renumber};
use super::size;
use crate::honest::{self, Event};
use crate::play::{Cut, Play};
use crate::request::{Protocol, Request};

pub(super) fn stall_after(request: &Request, [events, _]: [u64; 2]) -> Play {
    honest::answer(request).cut_after(size(events), Cut::Hold)
}

pub(super) fn stall_at(request: &Request, [bytes, _]: [u64; 2]) -> Play {
    honest::answer(request).cut_at(size(bytes), Cut::Hold)
}

pub(super) fn reset_at(request: &Request, [bytes, _]: [u64; 2]) -> Play {
    honest::answer(request).cut_at(size(bytes), Cut::Reset)
}

pub(super) fn reset_after(request: &Request, [events, _]: [u64; 2]) -> Play {
    honest::answer(request).cut_after(size(events), Cut::Reset)
}

pub(super) fn close_at(request: &Request, [bytes, _]: [u64; 2]) -> Play {
    honest::answer(request).cut_at(size(bytes), Cut::Close)
}

pub(super) fn eof_at(request: &Request, [bytes, _]: [u64; 2]) -> Play {
    honest::answer(request).cut_at(size(bytes), Cut::Clean)
}

pub(super) fn reset_after_end(request: &Request, _: [u64; 2]) -> Play {
    honest::answer(request).reset()
}

pub(super) fn eof_without_end(request: &Request, _: [u64; 2]) -> Play {
    edit(request, |events| events.truncate(end_of_answer(request, events)))
}

pub(super) fn no_done(request: &Request, _: [u64; 2]) -> Play {
    edit(request, |events| {
        events.pop();
    })
}

pub(super) fn empty_stream(request: &Request, _: [u64; 2]) -> Play {
    edit(request, Vec::clear)
}

pub(super) fn missing_blank_line(request: &Request, _: [u64; 2]) -> Play {
    let play = honest::answer(request);
    if !request.streams() {
        return play;
    }
    let length = play.body_bytes().len();
    play.cut_at(length.saturating_sub(1), Cut::Clean)
}

pub(super) fn hold_after_end(request: &Request, _: [u64; 2]) -> Play {
    let play = honest::answer(request);
    if request.streams() { play.then_hold() } else { play }
}

pub(super) fn after_end(request: &Request, _: [u64; 2]) -> Play {
    edit(request, |events| {
        events.extend(events.get(first_delta(events)).cloned());
        renumber(events);
    })
}

pub(super) fn two_ends(request: &Request, _: [u64; 2]) -> Play {
    edit(request, |events| {
        events.extend(events.last().cloned());
        renumber(events);
    })
}

pub(super) fn done_after_end(request: &Request, _: [u64; 2]) -> Play {
    edit(request, |events| {
        if request.protocol() != Some(Protocol::Chat) {
            events.push(Event { name: None, data: "[DONE]".into() });
        }
    })
}

pub(super) fn delta_after_finish(request: &Request, _: [u64; 2]) -> Play {
    edit(request, |events| {
        let has_finish = matches!(request.protocol(), Some(Protocol::Chat | Protocol::Messages));
        let place = end_of_answer(request, events) + usize::from(has_finish);
        events.insert(place, events[first_delta(events)].clone());
        renumber(events);
    })
}

pub(super) fn endless_line(request: &Request, _: [u64; 2]) -> Play {
    without_end(request, Play::new().body("data: "), Play::new().body("a".repeat(16 << 10)))
}

pub(super) fn endless_deltas(request: &Request, _: [u64; 2]) -> Play {
    let events: Vec<Bytes> = honest::answer(request).pieces().cloned().collect();
    let honest::Reply::Events(parsed) = honest::reply(request) else { return honest::answer(request) };
    let delta = first_delta(&parsed);
    let beginning = events.iter().take(delta).cloned().fold(Play::new(), Play::body);
    without_end(request, beginning, Play::new().body(events[delta].clone()))
}

pub(super) fn endless_comments(request: &Request, [milliseconds, _]: [u64; 2]) -> Play {
    let comment = Play::new().pause(Duration::from_millis(milliseconds)).body(": keep-alive\n\n");
    without_end(request, Play::new(), comment)
}

pub(super) fn endless_empty_data(request: &Request, [milliseconds, _]: [u64; 2]) -> Play {
    let empty = Play::new().pause(Duration::from_millis(milliseconds)).body("data:\n\n");
    without_end(request, Play::new(), empty)
}

/// The head of a stream, its `beginning`, and then `forever` repeated endlessly.
fn without_end(request: &Request, beginning: Play, forever: Play) -> Play {
    if !request.streams() {
        return honest::answer(request);
    }
    Play::stream().then(beginning).forever(forever)
}
