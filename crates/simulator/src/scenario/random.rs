//! Random faults: a seed selects the fault and its position in the reply.

use bytes::Bytes;

use super::events::end_of_answer;
use super::{named, size};
use crate::honest::{self, Reply};
use crate::play::Play;
use crate::request::{Protocol, Request};

/// The fault of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    template: &'static str,
    loses: bool,
    /// The position of the fault in the reply, as a fraction of `u32::MAX`.
    depth: u32,
}

/// Returns the fault of the scenario `fault-SEED`, for requests with or without a stream.
#[must_use]
pub fn fault(seed: u64, stream: bool) -> Fault {
    let mut random = SplitMix64(seed);
    // Half of all faults are truncations, because they have the most positions.
    let faults = match (random.below(2), stream) {
        (0, _) => TRUNCATIONS,
        (_, true) => STREAM_FAULTS,
        (_, false) => REPLY_FAULTS,
    };
    let (template, loses) = faults[size(random.below(faults.len() as u64))];
    Fault { template, loses, depth: random.next() as u32 }
}

pub(super) fn play(request: &Request, [seed, _]: [u64; 2]) -> Play {
    fault(seed, request.streams()).play(request)
}

impl Fault {
    /// The template of the scenario that is played.
    #[must_use]
    pub fn template(&self) -> &'static str {
        self.template
    }

    /// Returns true if part of the reply is lost, so that a gateway must not report a success. Otherwise the reply is
    /// complete, and the fault is in addition to it.
    #[must_use]
    pub fn loses(&self) -> bool {
        self.loses
    }

    fn play(self, request: &Request) -> Play {
        let name = match self.template.strip_suffix('N') {
            Some(start) => {
                let required = required(request);
                let is_of_bytes = start.ends_with("-at-");
                let bound = if is_of_bytes { required.iter().map(Bytes::len).sum() } else { required.len() };
                format!("{start}{}", self.position(bound))
            }
            None => self.template.to_owned(),
        };
        named(&name).map_or_else(|| honest::answer(request), |scenario| scenario.play(request))
    }

    /// The position of the fault among this many.
    fn position(self, bound: usize) -> u64 {
        (u64::from(self.depth) * bound as u64) >> u32::BITS
    }
}

/// The chunks without which a reply is incomplete, down to the last byte. In Chat, the chunks after the finish reason
/// are not required.
fn required(request: &Request) -> Vec<Bytes> {
    let reply = honest::reply(request);
    let mut pieces: Vec<_> = reply.play(request).pieces().cloned().collect();
    if let (Reply::Events(events), Some(Protocol::Chat)) = (&reply, request.protocol()) {
        pieces.truncate(end_of_answer(request, events) + 1);
    }
    pieces
}

/// The [SplitMix64](https://doi.org/10.1145/2714064.2660195) generator, whose values differ widely even for consecutive
/// seeds.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The templates of scenarios that truncate a reply at any position. The flag, here and below, is [`Fault::loses`].
const TRUNCATIONS: &[(&str, bool)] =
    &[("reset-at-N", true), ("close-at-N", true), ("eof-at-N", true), ("stall-at-N", true)];

const STREAM_FAULTS: &[(&str, bool)] = &[
    ("reset-after-N", true),
    ("stall-after-N", true),
    ("eof-without-end", true),
    ("empty-stream", true),
    ("endless-line", true),
    ("endless-comments-10", true),
    ("endless-empty-data-10", true),
    ("malformed-event", true),
    ("not-an-object", true),
    ("wrong-type", true),
    ("invalid-utf8", true),
    ("failed-first", true),
    ("failed-middle", true),
    ("failed-last", true),
    ("limited-first", true),
    ("error-for-stream", true),
    ("stream-as-text", false),
    ("close-before-head", true),
    ("reset-before-head", true),
    ("stall-head", true),
    ("stall-in-head", true),
    ("garbage-head", true),
    ("huge-head", false),
    ("status-400", true),
    ("status-401", true),
    ("status-429", true),
    ("status-503", true),
    ("error-200", true),
    ("html-200", true),
    ("empty-200", true),
    ("gzip", true),
    ("reset-after-end", false),
    ("hold-after-end", false),
    ("json-for-stream", false),
    ("json-as-event-stream", false),
    ("after-end", false),
    ("two-ends", false),
    ("done-after-end", false),
    ("two-answers", false),
];

const REPLY_FAULTS: &[(&str, bool)] = &[
    ("close-before-head", true),
    ("reset-before-head", true),
    ("stall-head", true),
    ("stall-in-head", true),
    ("garbage-head", true),
    ("huge-head", false),
    ("many-headers", false),
    ("status-400", true),
    ("status-401", true),
    ("status-404", true),
    ("status-422", true),
    ("status-429", true),
    ("status-500", true),
    ("status-503", true),
    ("status-529", true),
    ("error-200", true),
    ("html-200", true),
    ("html-502", true),
    ("empty-200", true),
    ("empty-204", true),
    ("redirect", true),
    ("content-length-short", true),
    ("content-length-long", true),
    ("gzip", true),
    ("json-as-event-stream", false),
    ("reset-after-end", false),
    ("two-answers", false),
];
