//! Random faults: a seed selects the fault and its position in the reply.

use bytes::Bytes;

use super::events::end_of_answer;
use super::{Scenario, named, pair, size};
use crate::honest::{self, Reply};
use crate::play::Play;
use crate::request::{Protocol, Request};

scenarios! {
    "fault-N" (0) [] "one of the faults above at any position of the reply, both chosen by the seed N" => play;
}

/// The fault of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The template of the scenario that is played.
    pub template: &'static str,
    /// True if part of the reply is lost, so that a gateway must not report a success. Otherwise
    /// the reply is complete, and the fault is in addition to it.
    pub loses: bool,
    /// The position of the fault in the reply, as a fraction of `u32::MAX`.
    depth: u32,
}

/// Returns the fault of the scenario `fault-SEED`, for requests with or without a stream.
#[must_use]
pub fn fault(seed: u64, stream: bool) -> Fault {
    // Half of all faults are truncations, because they have the most positions.
    let faults = match (random(seed, 1) % 2, stream) {
        (0, _) => TRUNCATIONS,
        (_, true) => STREAM_FAULTS,
        (_, false) => REPLY_FAULTS,
    };
    let (template, loses) = faults[size(random(seed, 2) % faults.len() as u64)];
    Fault {
        template,
        loses,
        depth: random(seed, 3) as u32,
    }
}

fn play(request: &Request, [seed, _]: [u64; 2]) -> Play {
    let fault = fault(seed, request.streams());
    let name = match fault.template.strip_suffix('N') {
        Some(start) => {
            let required = required(request);
            let is_of_bytes = start.ends_with("-at-");
            let bound: usize = if is_of_bytes {
                required.iter().map(Bytes::len).sum()
            } else {
                required.len()
            };
            format!(
                "{start}{}",
                (u64::from(fault.depth) * bound as u64) >> u32::BITS
            )
        }
        None => fault.template.to_owned(),
    };
    named(&name).map_or_else(
        || honest::answer(request),
        |scenario| scenario.play(request),
    )
}

/// The chunks without which a reply is incomplete, down to the last byte. In Chat, the chunks after
/// the finish reason are not required.
fn required(request: &Request) -> Vec<Bytes> {
    let reply = honest::reply(request);
    let mut pieces: Vec<_> = reply.play(request).pieces().cloned().collect();
    if let (Reply::Events(events), Some(Protocol::Chat)) = (&reply, request.protocol()) {
        pieces.truncate(end_of_answer(request, events) + 1);
    }
    pieces
}

/// The value at this position, from 1, in the sequence of the
/// [SplitMix64](https://doi.org/10.1145/2714064.2660195) generator. Its values differ widely even
/// for consecutive seeds.
fn random(seed: u64, position: u64) -> u64 {
    let state = seed.wrapping_add(position.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Lists templates of scenarios, each with the value of `Fault::loses`.
macro_rules! faults {
    ($($loses:literal: $($template:literal)*;)*) => { &[$($(($template, $loses)),*),*] };
}

/// The scenarios that truncate a reply at any position.
const TRUNCATIONS: &[(&str, bool)] = faults! {
    true: "reset-at-N" "close-at-N" "eof-at-N" "stall-at-N";
};

const STREAM_FAULTS: &[(&str, bool)] = faults! {
    true: "reset-after-N" "stall-after-N" "eof-without-end" "empty-stream" "endless-line" "endless-comments-10"
        "endless-empty-data-10" "malformed-event" "not-an-object" "wrong-type" "invalid-utf8" "failed-first"
        "failed-middle" "failed-last" "limited-first" "error-for-stream";
    false: "stream-as-text";
    true: "close-before-head" "reset-before-head" "stall-head" "stall-in-head" "garbage-head";
    false: "huge-head";
    true: "status-400" "status-401" "status-429" "status-503" "error-200" "html-200" "empty-200" "unknown-coding";
    false: "reset-after-end" "hold-after-end" "json-for-stream" "json-as-event-stream" "after-end" "two-ends"
        "done-after-end" "two-answers";
};

const REPLY_FAULTS: &[(&str, bool)] = faults! {
    true: "close-before-head" "reset-before-head" "stall-head" "stall-in-head" "garbage-head";
    false: "huge-head" "many-headers";
    true: "status-400" "status-401" "status-404" "status-422" "status-429" "status-500" "status-503" "status-529"
        "error-200" "html-200" "html-502" "empty-200" "empty-204" "redirect" "content-length-short"
        "content-length-long" "unknown-coding";
    false: "json-as-event-stream" "reset-after-end" "two-answers";
};
