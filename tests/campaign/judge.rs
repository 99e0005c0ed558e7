//! Checks the outcome of each fault against the requirements.

mod answer;
mod bystander;
mod counts;
mod foreign;
mod handshake;
mod reason;
mod requests;

use simulator::Protocol;
use testkit::reading::Reading;
use testkit::requests::protocol_name;
use testkit::{assert_private, check_response_headers};

use crate::fault::{Fault, Kind, OTHER_VENDOR, Place, Transport, VENDOR, other};
use crate::harness::{Exchange, Leftovers, Observed};
use crate::metrics::Counted;
use crate::upstream_response::UpstreamResponse;

/// The end of a response, as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// A stream with the terminal event of a success.
    StreamWhole,
    /// A stream with a failure event.
    StreamFailed,
    /// A plain reply.
    Reply,
    /// An error status.
    Refused,
    /// A plain reply that was truncated.
    BrokenOff,
    /// The client had disconnected, or the process has ended before it began the request.
    Unseen,
}

impl Verdict {
    /// Returns true if the client has the complete reply.
    fn is_success(self) -> bool {
        matches!(self, Self::StreamWhole | Self::Reply)
    }
}

/// A fault, and the observations of it.
struct Case<'a> {
    /// The fault as it was drawn, with all of its targets.
    drawn: &'a Fault,
    /// The fault at the target that got the request last.
    fault: &'a Fault,
    observed: &'a Observed,
    /// The upstream's last response.
    sent: &'a UpstreamResponse,
    /// The content of it, if its status is one of success.
    theirs: Reading,
}

/// Checks observations against requirements.
///
/// # Panics
///
/// If a requirement is violated.
pub(crate) fn judge(fault: &Fault, observed: &Observed, log: &str, panics: &[String]) -> Verdict {
    assert!(panics.is_empty(), "a task panicked: {}", panics.join("\n"));
    assert_eq!(
        observed.leftovers,
        Leftovers::default(),
        "something is left over"
    );
    assert_private("the log", log);
    let met = at_last(fault, observed.exchanges.last());
    let case = Case::new(fault, &met, observed);
    if case.is_unprocessed() {
        assert_eq!(log, "", "a request that was not begun has no log line");
        return Verdict::Unseen;
    }
    requests::check(&case);
    let verdict = case.verdict();
    if !verdict.is_success() && !matches!(fault.kind, Kind::Foreign(_)) && !fault.is_undecodable() {
        answer::check_withheld(&case, verdict);
        requests::check_next(&case, verdict);
    }
    let (mut counted, mut log) = (observed.counted.clone(), log.to_owned());
    if fault.transport == Transport::WebSocket {
        (counted, log) = handshake::check(&counted, &log);
    }
    if let (Some(bystander), Some(seen)) = (&fault.bystander, &observed.bystander) {
        (counted, log) = bystander::check(bystander, seen, &counted, &log);
    }
    counts::check(&case, verdict, &counted, &log);
    verdict
}

/// The fault at the target that got the request last. An upstream that cannot be connected to may be
/// reached over an open connection.
fn at_last(fault: &Fault, last: Option<&Exchange>) -> Fault {
    let Some(last) = last else {
        return fault.clone();
    };
    let mut fault = fault.at(last.place);
    if fault.is_out_of_reach() && last.request.nth_on_connection > 0 && !last.was_stale() {
        fault.kind = Kind::Nothing;
    }
    fault
}

impl<'a> Case<'a> {
    fn new(drawn: &'a Fault, fault: &'a Fault, observed: &'a Observed) -> Self {
        let sent = observed.last_response();
        let is_ok = sent.is_ok();
        let theirs =
            is_ok.then(|| Reading::of(fault.upstream, &sent.body, sent.is_whole, fault.pictures()));
        let theirs = theirs.map(|theirs| {
            if fault.kind.changes_bytes() {
                theirs
            } else {
                theirs.checked()
            }
        });
        Self {
            drawn,
            fault,
            observed,
            sent,
            theirs: theirs.unwrap_or_default(),
        }
    }

    fn verdict(&self) -> Verdict {
        let client = &self.observed.client;
        let Some(response) = &client.response else {
            assert!(!client.stayed || answer::may_break_off(self), "no answer");
            return if client.stayed {
                Verdict::BrokenOff
            } else {
                Verdict::Unseen
            };
        };
        check_response_headers(&response.headers);
        assert_private("the body", &String::from_utf8_lossy(&response.body));
        if let Kind::Foreign(foreign) = self.fault.kind {
            return foreign::check(self, foreign, response);
        }
        match response.status {
            200 if response.is_stream() => answer::stream(self, response),
            200 => answer::reply(self, response),
            _ => {
                reason::check_refusal(self, response);
                Verdict::Refused
            }
        }
    }

    /// Returns true if the process has ended or begun to leave before it began a request over HTTP/2: the connection is closed
    /// without a response, and the client may send the request elsewhere
    /// (<https://www.rfc-editor.org/rfc/rfc9113#section-6.8>). Such a request is counted nowhere.
    fn is_unprocessed(&self) -> bool {
        let observed = self.observed;
        self.drawn.kind.is_of_process()
            && matches!(self.drawn.transport, Transport::Http2 { .. })
            && observed.client.response.is_none()
            && observed.exchanges.is_empty()
            && observed.counted == Counted::default()
    }

    /// The body whose words for an error may reach the client, which speaks the same protocol.
    fn words(&self) -> &[u8] {
        let is_same = self.fault.client == self.fault.upstream;
        if is_same { &self.sent.body } else { b"" }
    }

    /// Returns true if the second target was tried.
    fn fell_back(&self) -> bool {
        let is_second = |exchange: &Exchange| exchange.place == Place::Second;
        self.observed.exchanges.last().is_some_and(is_second)
    }

    /// The name of the upstream that got the request last.
    fn server(&self) -> String {
        match (self.fell_back(), &self.fault.strict) {
            (false, None) => protocol_name(self.fault.upstream).to_owned(),
            (false, Some(_)) => VENDOR.to_owned(),
            (true, None) => other(self.fault.upstream),
            (true, Some(_)) => OTHER_VENDOR.to_owned(),
        }
    }

    /// Returns true if a timeout may end a response that would have been completed.
    fn may_be_late(&self) -> bool {
        self.fault.is_slow() || matches!(self.fault.kind, Kind::Shutdown(_))
    }

    /// Returns true if the upstream's text and the client's can be compared word for word.
    fn is_comparable(&self) -> bool {
        // A changed reply of pictures may be passed through unread.
        let is_unread =
            self.fault.client == Protocol::Images && matches!(self.fault.kind, Kind::Changed(..));
        self.fault.kind.keeps_words() && !is_unread
    }
}

#[cfg(test)]
mod lies;
