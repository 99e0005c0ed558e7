//! Checks the request that ran at the same time as a fault: nothing happened to it.

use super::counts::{check_line, lines, tokens};
use super::{Case, requests};
use crate::fault::Fault;
use crate::harness::Observed;
use crate::metrics::Counted;

/// Checks that its client has its complete reply. Returns the counts and the log without it.
pub(super) fn check(
    fault: &Fault,
    observed: &Observed,
    counted: &Counted,
    log: &str,
) -> (Counted, String) {
    let case = Case::new(fault, fault, observed);
    requests::check(&case);
    let verdict = case.verdict();
    assert!(verdict.is_success(), "a bystander was hit: {verdict:?}");
    assert_eq!(
        observed.exchanges.len(),
        1,
        "the upstream requests of a bystander"
    );
    let model = format!(" model=\"{}\"", fault.model);
    let (own, rest): (Vec<_>, Vec<_>) = lines(log).partition(|line| line.contains(&model));
    assert_eq!(own.len(), 1, "the lines of a bystander in the log");
    check_line(&case, &own.join("\n"));
    (counted.without(&counts(&case)), rest.join("\n"))
}

/// The counts of a request with a complete reply.
fn counts(case: &Case<'_>) -> Counted {
    let one = |name: &str| [(name.to_owned(), 1.0)].into();
    Counted {
        requests: one("200"),
        streams: if case.fault.stream {
            one("completed")
        } else {
            [].into()
        },
        tokens: tokens(case),
    }
}
