//! One fault: the client, the upstream, the request, the connections, and the failure. All of it
//! follows from a seed and a number.

mod coded;
mod draw;
mod foreign;
mod next;
mod play;
mod rewrite;
mod strict;
mod transport;

use std::fmt;
use std::time::Duration;

use simulator::scenario::Scenario;
use simulator::{Cut, Protocol, Request};
use testkit::requests::Question;
use testkit::upstreams::BENT;

#[cfg(test)]
pub(crate) use self::coded::Coding;
pub(crate) use self::coded::{Coded, JSON_BODY, Upload};
pub(crate) use self::foreign::Foreign;
pub(crate) use self::next::{Next, Place, either, other};
use self::rewrite::Rewrite;
pub(crate) use self::strict::{OTHER_VENDOR, Strict, VENDOR, VENDORS, Vendors};
pub(crate) use self::transport::Transport;
use crate::drawing::Drawing;

/// One fault.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// Its number in the campaign.
    pub(crate) number: u64,
    pub(crate) client: Protocol,
    pub(crate) upstream: Protocol,
    /// The name of the model that is requested.
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) question: Question,
    /// For Images.
    pub(crate) drawing: Drawing,
    pub(crate) kind: Kind,
    pub(crate) pace: Pace,
    pub(crate) transport: Transport,
    /// True if the next fault follows at once, and finds the connections and the counts of circuit
    /// breakers that this one left behind.
    pub(crate) is_hurried: bool,
    /// The target that is tried if the first one fails.
    pub(crate) next: Option<Next>,
    /// For a request whose upstreams are strict vendors.
    pub(crate) strict: Option<Strict>,
    /// The message that has a content coding.
    pub(crate) coded: Option<Coded>,
    /// A request that runs at the same time, and that nothing happens to.
    pub(crate) bystander: Option<Box<Self>>,
}

/// The timing and the piece sizes of the connections.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// The capacity of a connection in each direction, in bytes.
    pub(crate) capacity: usize,
    /// The number of bytes that the client writes and reads at once.
    pub(crate) at_once: usize,
    /// The sizes of the pieces in which the upstream writes its body; empty for the default.
    pieces: Vec<usize>,
    /// The upstream's pause before each piece.
    pause: Duration,
}

/// The failure.
#[derive(Clone)]
pub(crate) enum Kind {
    /// Nothing.
    Nothing,
    /// The body of the upstream's response is truncated.
    Cut(Spot, Cut),
    /// The head of the response is truncated.
    HeadCut(Spot, Cut),
    /// The body is changed.
    Changed(Spot, Change),
    /// The upstream's response is complete, but is not a valid reply.
    Hollow(Hollow),
    /// The upstream's response is complete, but ends in another word or contradicts itself.
    Rewritten(Rewrite),
    /// The upstream sends the answer of a real server.
    Foreign(Foreign),
    /// The upstream plays one of the simulator's scenarios.
    Scenario(Scenario),
    /// The connection to the upstream is refused.
    Refused,
    /// The connection to the upstream times out.
    Unreachable,
    /// The client disconnects in the middle of the response.
    Leaves(Spot, Leave),
    /// The client disconnects in the middle of its request, or stalls.
    Upload(Spot, Leave),
    /// The shutdown deadline passes while the response stalls.
    Shutdown(Spot),
    /// The graceful shutdown begins while the response continues.
    Drain(Spot),
}

/// The way in which a client disconnects. Over HTTP/2 it may leave its stream only. A WebSocket that is half closed is
/// at its end, as one that is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It closes the connection.
    Close,
    /// It resets the connection, or over HTTP/2 the stream.
    Reset,
    /// It half-closes the connection. Over HTTP/2 it ends the stream, or announces with `GOAWAY`
    /// after its request that it is about to leave.
    HalfClose,
    /// It stays connected and does nothing. Over HTTP/2 it opens no window.
    Still,
}

/// A change of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A byte is replaced.
    Byte(u8),
    /// A byte is inserted.
    Inserted(u8),
    /// A byte is removed.
    Removed,
    /// An event is removed.
    EventLost,
    /// An event is repeated.
    EventDoubled,
    /// An event is swapped with the next.
    EventLate,
}

/// A reason for which a complete reply is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hollow {
    /// It is an empty object.
    Empty,
    /// Its status member says that it is not finished.
    Unfinished,
    /// Only the HTTP status says that it is an error.
    Status(u16),
}

/// A position in something whose length is known later.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot(u16);

impl Spot {
    /// The position within so many bytes; the end is a possible position.
    pub(crate) fn of(self, length: usize) -> usize {
        ((length + 1) * usize::from(self.0)) >> 16
    }
}

impl Fault {
    /// Its name in the summary.
    pub(crate) fn name(&self) -> &'static str {
        match (&self.strict, &self.next) {
            (Some(_), None) => "strict vendor",
            (Some(_), Some(_)) => "two strict vendors",
            (None, Some(_)) => "two targets",
            (None, None) if self.is_undecodable() => "undecodable request",
            (None, None) if self.transport == Transport::WebSocket => "over a WebSocket",
            (None, None) => self.kind.name(),
        }
    }

    /// The text of the request, which the reply repeats.
    pub(crate) fn nonce(&self) -> String {
        nonce(self.number)
    }

    /// Returns true if a request has its text.
    pub(crate) fn sent(&self, request: &Request) -> bool {
        String::from_utf8_lossy(&request.body).contains(&self.nonce())
    }

    /// Returns true if the upstream is so slow, or goes on for so long, that a timeout may expire.
    pub(crate) fn is_slow(&self) -> bool {
        !self.pace.pause.is_zero() || self.kind.is_endless()
    }

    /// Returns true if a target may keep its connection open after a complete response, and never
    /// read from it again: then the next request gets no answer.
    pub(crate) fn holds(&self) -> bool {
        let next = self.next.as_ref().map(|next| &next.kind);
        [Some(&self.kind), next]
            .into_iter()
            .flatten()
            .any(Kind::holds)
    }

    /// Returns true if no connection to the upstream can be established.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        matches!(self.kind, Kind::Refused | Kind::Unreachable)
    }

    /// The number of pictures in a stream.
    pub(crate) fn pictures(&self) -> u32 {
        self.drawing.count
    }
}

/// The text of the request with this number.
fn nonce(number: u64) -> String {
    format!("nonce-{number:08x}")
}

impl Kind {
    /// Its name in the summary, with one target.
    fn name(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Cut(_, Cut::Reset) => "answer reset",
            Self::Cut(_, Cut::Close) => "answer closed",
            Self::Cut(_, Cut::Clean) => "answer ended early",
            Self::Cut(_, Cut::Hold) => "answer stalled",
            Self::HeadCut(..) => "head cut",
            Self::Changed(_, Change::Byte(_) | Change::Inserted(_) | Change::Removed) => {
                "byte changed"
            }
            Self::Changed(..) => "event lost, doubled, late",
            Self::Hollow(_) => "hollow reply",
            Self::Rewritten(Rewrite::Finish(_) | Rewrite::Filtered) => "another end",
            Self::Rewritten(_) => "contradiction",
            Self::Foreign(_) => "real server",
            Self::Scenario(_) => "scenario",
            Self::Refused | Self::Unreachable => "not reached",
            Self::Leaves(_, Leave::Still) => "client stops reading",
            Self::Leaves(..) => "client leaves",
            Self::Upload(..) => "upload cut",
            Self::Shutdown(_) => "process ends",
            Self::Drain(_) => "process leaves",
        }
    }

    /// Returns true if the upstream's output means the same in every protocol, as far as it gets.
    pub(crate) fn keeps_words(&self) -> bool {
        match self {
            Self::Changed(..) => !self.changes_bytes(),
            Self::Hollow(_) | Self::Foreign(_) => false,
            Self::Scenario(scenario) => !ODD.contains(&scenario.template),
            _ => true,
        }
    }

    /// Returns true if the upstream reports the tokens of everything it sends.
    pub(crate) fn counts_tokens(&self) -> bool {
        !matches!(self, Self::Scenario(scenario) if scenario.template == "usage-missing")
    }

    /// Returns true if any byte of the response may be changed.
    pub(crate) fn changes_bytes(&self) -> bool {
        matches!(
            self,
            Self::Changed(_, Change::Byte(_) | Change::Inserted(_) | Change::Removed)
        )
    }

    /// Returns true if the events of the response may be outside of the grammar.
    pub(crate) fn bends_events(&self) -> bool {
        match self {
            Self::Changed(..) | Self::Rewritten(_) => true,
            // The call that lacks its first delta has no name, so that the stream fails at its end.
            Self::Scenario(scenario) => {
                BENT.contains(&scenario.template) || scenario.template == "missing-delta"
            }
            _ => false,
        }
    }

    /// Returns true if the process of the gateway ends.
    pub(crate) fn is_of_process(&self) -> bool {
        matches!(self, Self::Shutdown(_) | Self::Drain(_))
    }

    /// Returns true if the upstream never comes to an end.
    fn is_endless(&self) -> bool {
        matches!(self, Self::Scenario(scenario) if scenario.template.starts_with("endless-"))
    }

    /// Returns true if the upstream stalls in the middle of a conforming reply.
    pub(crate) fn stalls(&self) -> bool {
        match self {
            Self::Cut(_, cut) | Self::HeadCut(_, cut) => *cut == Cut::Hold,
            Self::Scenario(scenario) => scenario.template.starts_with("stall-"),
            _ => false,
        }
    }

    /// Returns true if the upstream may stall after a complete response.
    pub(crate) fn holds(&self) -> bool {
        let may_hold = |scenario: &Scenario| HOLDS.contains(&scenario.template);
        self.stalls() || matches!(self, Self::Scenario(scenario) if may_hold(scenario))
    }

    /// Returns true if a reply that the upstream completed has to reach the client.
    pub(crate) fn lets_through(&self) -> bool {
        match self {
            Self::Scenario(scenario) => !STRAYS.contains(&scenario.template),
            Self::Nothing | Self::Cut(..) | Self::Drain(_) | Self::Rewritten(_) => true,
            _ => false,
        }
    }

    /// Returns true if the response has to be complete in spite of the fault.
    pub(crate) fn is_harmless(&self) -> bool {
        match self {
            Self::Nothing | Self::Drain(_) => true,
            Self::Scenario(scenario) => HARMLESS.contains(&scenario.template),
            _ => false,
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(spot, cut) => write!(f, "body cut at {spot:?}: {cut:?}"),
            Self::HeadCut(spot, cut) => write!(f, "head cut at {spot:?}: {cut:?}"),
            Self::Changed(spot, change) => write!(f, "body changed at {spot:?}: {change:?}"),
            Self::Scenario(scenario) => write!(f, "scenario {}", scenario.name()),
            Self::Hollow(hollow) => write!(f, "hollow reply: {hollow:?}"),
            Self::Foreign(foreign) => {
                write!(f, "answer of a real server: {}", foreign.name())
            }
            Self::Rewritten(rewrite) => write!(f, "rewritten reply: {rewrite:?}"),
            Self::Leaves(spot, how) => write!(f, "client leaves at {spot:?}: {how:?}"),
            Self::Upload(spot, how) => write!(f, "upload ends at {spot:?}: {how:?}"),
            Self::Shutdown(spot) => write!(f, "process ends at {spot:?}"),
            Self::Drain(spot) => write!(f, "process leaves at {spot:?}"),
            other => f.write_str(other.name()),
        }
    }
}

impl fmt::Debug for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} %", f64::from(self.0) / 655.36)
    }
}

/// Scenarios after which the response is complete.
const HARMLESS: [&str; 14] = [
    "early-hints",
    "private-headers",
    "byte-by-byte",
    "chunked-N",
    "at-once",
    "drip-N",
    "sse-crlf",
    "sse-cr",
    "sse-bom",
    "sse-comments",
    "sse-fields",
    "sse-no-space",
    "sse-multi-line",
    "hold-after-end",
];
/// Scenarios that stall after a complete response, besides those named after it.
const HOLDS: [&str; 2] = ["hold-after-end", "fault-N"];
/// Scenarios whose output means different things in each protocol, or nothing.
const ODD: [&str; 4] = ["vllm", "delta-after-finish", "huge-index-N", "fault-N"];
/// Scenarios whose output leaves the protocol's grammar, though the upstream completed it: the
/// relay at least need not accept it.
const STRAYS: [&str; 13] = [
    "content-length-long",
    "huge-head",
    "many-headers",
    "stream-as-text",
    "unknown-coding",
    "wrong-type",
    "missing-delta",
    "huge-index-N",
    "delta-after-finish",
    "usage-twice",
    "vllm",
    "filtered",
    "fault-N",
];

/// Helpers with which tests of the judge build faults.
#[cfg(test)]
pub(crate) mod planted {
    use super::*;

    impl Spot {
        pub(crate) const MIDDLE: Self = Self(1 << 15);
    }

    impl Fault {
        /// A request of this client to this upstream, over connections without delays.
        pub(crate) fn planted(
            client: Protocol,
            upstream: Protocol,
            stream: bool,
            kind: Kind,
        ) -> Self {
            let pace = Pace {
                capacity: 1 << 20,
                at_once: 1 << 16,
                pieces: Vec::new(),
                pause: Duration::ZERO,
            };
            let drawn = Self::draw(1, 7);
            let mut planted = Self {
                client,
                upstream,
                stream,
                question: Question::Text,
                kind,
                pace,
                transport: Transport::Http1,
                is_hurried: false,
                model: String::new(),
                next: None,
                strict: None,
                coded: None,
                bystander: None,
                ..drawn
            };
            planted.model = next::model(&planted);
            planted
        }

        /// The same with a pause before each piece of the response.
        pub(crate) fn slow(mut self) -> Self {
            self.pace.pause = Duration::from_secs(20);
            self
        }
    }
}
