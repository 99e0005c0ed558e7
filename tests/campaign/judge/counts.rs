//! Checks the metrics and the log of a fault.

use std::collections::BTreeMap;

use super::reason::{Reason, reasons};
use super::{Case, Verdict};
use crate::fault::Kind;
use crate::reading::Usage;

/// Each request has one outcome, in the metrics and in the log, and it is the one that its client
/// saw.
pub(super) fn check(case: &Case<'_>, verdict: Verdict, log: &str) {
    check_once(case, log);
    if matches!(case.fault.kind, Kind::Foreign(_)) {
        return check_stream_count(case, verdict);
    }
    if case.observed.client.response.is_some() || verdict == Verdict::BrokenOff {
        check_status(case, verdict);
    }
    check_stream(case, verdict);
    check_tokens(case, verdict);
}

/// A request whose head was sent is counted once, and has one log line.
fn check_once(
    Case {
        fault, observed, ..
    }: &Case<'_>,
    log: &str,
) {
    let requests: f64 = observed.counted.requests.values().sum();
    let owed = if observed.client.sent_head { 1.0 } else { 0.0 };
    // A request whose client disconnected before the response may never have been read.
    let may_be_unheard =
        !observed.client.stayed && matches!(fault.kind, Kind::Upload(..) | Kind::Leaves(..));
    let is_owed = requests == owed || (may_be_unheard && requests == 0.0);
    assert!(is_owed, "{requests} requests were counted, expected {owed}");
    let lines = log.lines().filter(|line| line.contains(ACCESS)).count();
    assert_eq!(lines as f64, requests, "lines in the log");
}

/// Requests are counted by the status that was sent, and by the error code.
fn check_status(case: &Case<'_>, verdict: Verdict) {
    let found: Vec<_> = case
        .observed
        .counted
        .requests
        .keys()
        .map(String::as_str)
        .collect();
    let codes = |has_begun| {
        reasons(case)
            .into_iter()
            .map(move |reason| reason.code(has_begun))
    };
    let status = case
        .observed
        .client
        .response
        .as_ref()
        .map_or(200, |response| response.status);
    let mut owed: Vec<_> = match verdict {
        Verdict::StreamWhole | Verdict::Reply | Verdict::BrokenOff | Verdict::Unseen => {
            vec![status.to_string()]
        }
        Verdict::StreamFailed => codes(true).map(|code| format!("{status} {code}")).collect(),
        Verdict::Refused => codes(false)
            .map(|code| format!("{status} {code}"))
            .collect(),
    };
    if !case.observed.client.stayed {
        owed.push(GONE.to_owned());
    }
    let is_owed = matches!(found[..], [found] if owed.iter().any(|owed| owed == found));
    assert!(
        is_owed,
        "requests were counted as {found:?}, not as one of {owed:?}"
    );
}

/// A stream that was requested has one outcome, which matches how it ended for its client.
fn check_stream(case: &Case<'_>, verdict: Verdict) {
    check_stream_count(case, verdict);
    let outcomes = &case.observed.counted.streams;
    let owed: Vec<_> = match verdict {
        Verdict::StreamWhole if case.theirs.is_incomplete => vec!["incomplete"],
        Verdict::StreamWhole => vec!["completed"],
        Verdict::StreamFailed => outcomes_of(case, true),
        Verdict::Refused if case.fault.stream && case.observed.client.sent_whole => {
            outcomes_of(case, false)
        }
        _ => return,
    };
    let is_owed = outcomes
        .keys()
        .all(|outcome| owed.contains(&outcome.as_str()));
    assert!(is_owed, "{verdict:?}: {outcomes:?}, not one of {owed:?}");
}

/// A stream that was requested has one outcome, whatever it is.
fn check_stream_count(case: &Case<'_>, verdict: Verdict) {
    let outcomes = &case.observed.counted.streams;
    let count: f64 = outcomes.values().sum();
    let most = if case.fault.stream && case.observed.client.sent_whole {
        1.0
    } else {
        0.0
    };
    // A shutdown may refuse a request before its body shows whether it asks for a stream.
    let may_be_unread = verdict == Verdict::Refused && matches!(case.fault.kind, Kind::Shutdown(_));
    let is_owed =
        count == most || ((!case.observed.client.stayed || may_be_unread) && count == 0.0);
    assert!(
        is_owed,
        "{verdict:?}: {outcomes:?} where {most} were expected"
    );
}

fn outcomes_of(case: &Case<'_>, has_begun: bool) -> Vec<&'static str> {
    reasons(case)
        .into_iter()
        .map(|reason: Reason| reason.outcome(has_begun))
        .collect()
}

/// The tokens of a complete reply are counted as the upstream reported them.
fn check_tokens(case: &Case<'_>, verdict: Verdict) {
    if !verdict.is_success() || !case.is_comparable() || !case.fault.kind.counts_tokens() {
        return;
    }
    let Usage { input, output } = case.theirs.usage.unwrap_or_default();
    let owed = [("input", input as f64), ("output", output as f64)]
        .into_iter()
        .filter(|(_, count)| *count > 0.0);
    let owed: BTreeMap<String, f64> = owed.map(|(name, count)| (name.to_owned(), count)).collect();
    assert_eq!(
        case.observed.counted.tokens, owed,
        "the tokens in the metrics"
    );
}

/// The status under which a request is counted whose client disconnected.
const GONE: &str = "499";
/// The target of the one log line of each request.
const ACCESS: &str = " access: ";
