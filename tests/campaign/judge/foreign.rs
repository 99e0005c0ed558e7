//! Checks the answers of real servers as clients get them, against the answers that they are owed.

use testkit::Response;
use testkit::dialects::{Outcome, Owed};
use testkit::reading::{End, Reading};

use super::{Case, Verdict, answer};
use crate::fault::Foreign;

/// Checks a response. `foreign` is the answer of the server.
pub(super) fn check(case: &Case<'_>, foreign: Foreign, response: &Response) -> Verdict {
    let client = foreign.client;
    if response.status != 200 {
        testkit::check_relayed_refusal(client, response, case.words());
        assert!(response.is_complete(), "a refusal breaks off");
        check_failure(case, &foreign.owed());
        return Verdict::Refused;
    }
    let ours = answer::read(case.fault, response);
    assert!(!ours.has_more, "something comes after the end");
    match ours.end {
        End::Success => {
            assert!(response.is_complete(), "a success in a truncated body");
            check_success(&foreign.owed(), &ours);
            if response.is_stream() {
                Verdict::StreamWhole
            } else {
                Verdict::Reply
            }
        }
        End::Failure(_) if response.is_stream() => {
            check_failure(case, &foreign.owed());
            Verdict::StreamFailed
        }
        _ => panic!("a response without an end: {}", response.text()),
    }
}

/// A success needs a server that succeeded, and is as incomplete as the server's answer was.
fn check_success(owed: &Owed, ours: &Reading) {
    let is_partial = ours.is_incomplete || ours.is_filtered;
    match owed.outcome {
        Outcome::Complete => assert!(!is_partial, "a complete answer is marked as truncated"),
        Outcome::Incomplete | Outcome::NotComplete => {
            assert!(is_partial, "a false success: the answer was truncated");
        }
        Outcome::Failure => panic!("a false success: the answer failed"),
    }
    if let Some(text) = &owed.text {
        // Between the texts may be the inputs of hosted tools, which are relayed.
        let mut words = ours.words.chars();
        let is_owed = text.chars().all(|letter| words.any(|word| word == letter));
        assert!(is_owed, "the text is '{}', not '{text}'", ours.words);
    }
}

/// A server that succeeded in time is not taken for one that failed.
fn check_failure(case: &Case<'_>, owed: &Owed) {
    let is_owed = !matches!(owed.outcome, Outcome::Complete | Outcome::Incomplete);
    assert!(is_owed || case.may_be_late(), "a success is withheld");
}
