//! Checks the metrics and the log of a fault.

use std::collections::BTreeMap;

use testkit::reading::{Reading, Usage};

use super::reason::{Reason, reasons};
use super::{Case, Verdict};
use crate::fault::Kind;
use crate::metrics::Counted;

/// Each request has one outcome, in the metrics and in the log, and it is the one that its client
/// saw.
pub(super) fn check(case: &Case<'_>, verdict: Verdict, counted: &Counted, log: &str) {
    check_once(case, counted, log);
    if matches!(case.fault.kind, Kind::Foreign(_)) {
        return check_stream_count(case, verdict, counted);
    }
    if case.observed.client.response.is_some() || verdict == Verdict::BrokenOff {
        check_status(case, verdict, counted);
    }
    check_stream(case, verdict, counted);
    check_tokens(case, verdict, counted);
    if verdict.is_success() {
        check_line(case, log);
    }
}

/// A request whose head was sent is counted once, and has one log line.
fn check_once(
    Case {
        fault, observed, ..
    }: &Case<'_>,
    counted: &Counted,
    log: &str,
) {
    let requests: f64 = counted.requests.values().sum();
    let owed = if observed.client.sent_head { 1.0 } else { 0.0 };
    // A request whose client disconnected before the response may never have been read.
    let may_be_unheard =
        !observed.client.stayed && matches!(fault.kind, Kind::Upload(..) | Kind::Leaves(..));
    let is_owed = requests == owed || (may_be_unheard && requests == 0.0);
    assert!(is_owed, "{requests} requests were counted, expected {owed}");
    assert_eq!(lines(log).count() as f64, requests, "lines in the log");
}

/// Requests are counted by the status that was sent, and by the error code.
fn check_status(case: &Case<'_>, verdict: Verdict, counted: &Counted) {
    let found: Vec<_> = counted.requests.keys().map(String::as_str).collect();
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
fn check_stream(case: &Case<'_>, verdict: Verdict, counted: &Counted) {
    check_stream_count(case, verdict, counted);
    let outcomes = &counted.streams;
    let owed: Vec<_> = match verdict {
        // Only Responses says of an answer that a filter has cut that it is incomplete.
        Verdict::StreamWhole if case.theirs.is_filtered && case.theirs.is_incomplete => {
            vec!["incomplete", "completed"]
        }
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
fn check_stream_count(case: &Case<'_>, verdict: Verdict, counted: &Counted) {
    let outcomes = &counted.streams;
    let count: f64 = outcomes.values().sum();
    // Only the decoded body shows whether it asks for a stream.
    let is_read = case.observed.client.sent_whole && !case.fault.is_undecodable();
    let most = if case.fault.stream && is_read {
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
fn check_tokens(case: &Case<'_>, verdict: Verdict, counted: &Counted) {
    if verdict.is_success() && case.is_comparable() && case.fault.kind.counts_tokens() {
        check_sums(case, &counted.tokens, "the metrics");
    }
}

/// The tokens are those that the last attempt reported, and those before it as far as their responses
/// were read.
fn check_sums(case: &Case<'_>, found: &BTreeMap<String, f64>, place: &str) {
    let (last, before) = (tokens(case), tokens_before(case));
    for (name, before) in before {
        let of = |counts: &BTreeMap<String, f64>| counts.get(name).copied().unwrap_or_default();
        let (found, least) = (of(found), of(&last));
        let is_owed = (least..=least + before).contains(&found);
        assert!(
            is_owed,
            "{found} {name} tokens in {place}, where the last attempt reported {least}, and those before it {before}"
        );
    }
}

/// The tokens of the attempts before the last one, by direction.
fn tokens_before(case: &Case<'_>) -> [(&'static str, f64); 2] {
    let exchanges = &case.observed.exchanges;
    let before = &exchanges[..exchanges.len().saturating_sub(1)];
    let usages = before.iter().filter_map(|exchange| {
        let (fault, sent) = (case.drawn.at(exchange.place), &exchange.response);
        Reading::of(fault.upstream, &sent.body, sent.is_whole, fault.pictures()).usage
    });
    let sums = usages.fold([0, 0], |[inputs, outputs], usage| {
        [inputs + usage.input, outputs + usage.output]
    });
    [("input", sums[0] as f64), ("output", sums[1] as f64)]
}

/// The tokens that the upstream reported, by direction.
pub(super) fn tokens(case: &Case<'_>) -> BTreeMap<String, f64> {
    let Usage { input, output, .. } = case.theirs.usage.unwrap_or_default();
    let owed = [("input", input as f64), ("output", output as f64)]
        .into_iter()
        .filter(|(_, count)| *count > 0.0);
    owed.map(|(name, count)| (name.to_owned(), count)).collect()
}

/// The line in the log names the model that was requested, the upstream that answered, and its
/// tokens.
pub(super) fn check_line(case: &Case<'_>, log: &str) {
    let line = lines(log).next().unwrap_or_default();
    let owed = [
        format!(" model=\"{}\"", case.fault.model),
        format!(" target=\"{}\"", case.server()),
    ];
    if case.is_comparable() && case.fault.kind.counts_tokens() {
        let count = |name: &str| {
            let (_, rest) = line.split_once(&format!(" {name}_tokens="))?;
            Some((name.to_owned(), rest.split(' ').next()?.parse().ok()?))
        };
        let found = ["input", "output"].into_iter().filter_map(count);
        check_sums(case, &found.collect(), "the log");
    }
    for field in owed {
        assert!(line.contains(&field), "no '{field}' in the log: {line}");
    }
}

/// The line of each request in a log.
pub(super) fn lines(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter(|line| line.contains(ACCESS))
}

/// The status under which a request is counted whose client disconnected.
const GONE: &str = "499";
/// The target of the one log line of each request.
const ACCESS: &str = " access: ";
