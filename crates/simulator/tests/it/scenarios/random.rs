//! Random faults: the same in every run, all of them among the first thousand seeds, and correctly
//! described.

use std::collections::BTreeSet;

use sluicegate_simulator::{Request, scenario};

use super::{plain, stream};
use crate::folds::fold;
use crate::samples::PROTOCOLS;

const SEEDS: u64 = 1_000;

/// The body of the reply for this seed.
fn body(request: &Request, seed: u64) -> Vec<u8> {
    scenario::named(&format!("fault-{seed}"))
        .unwrap()
        .play(request)
        .body_bytes()
}

#[test]
fn a_stream_that_loses_a_part_is_no_valid_answer() {
    for protocol in PROTOCOLS {
        let request = stream("any", protocol).request;
        for seed in 0..SEEDS {
            let fault = scenario::fault(seed, true);
            // The event decoder replaces invalid UTF-8.
            if fault.loses && fault.template != "invalid-utf8" {
                let folded = fold(protocol, &body(&request, seed));
                assert!(folded.is_err(), "{protocol:?}, seed {seed}, {fault:?}");
            }
        }
    }
}

#[test]
fn truncated_replies_are_shorter() {
    for protocol in PROTOCOLS {
        let exchange = plain("any", protocol);
        let honest = exchange.honest_body();
        let mut lengths = BTreeSet::new();
        for seed in 0..SEEDS {
            if scenario::fault(seed, false).template.contains("-at-") {
                let body = body(&exchange.request, seed);
                assert!(
                    honest.starts_with(&body) && body.len() < honest.len(),
                    "{protocol:?}, seed {seed}"
                );
                lengths.insert(body.len());
            }
        }
        assert!(lengths.len() > 150, "cut at {} places", lengths.len());
    }
}

#[test]
fn kept_replies_are_complete() {
    for protocol in PROTOCOLS {
        let exchange = stream("any", protocol);
        let (honest, mut seen) = (exchange.honest_body(), 0);
        for seed in 0..SEEDS {
            let fault = scenario::fault(seed, true);
            if !fault.loses && !fault.template.starts_with("json") {
                assert!(
                    body(&exchange.request, seed).starts_with(&honest),
                    "{protocol:?}, seed {seed}, {fault:?}"
                );
                seen += 1;
            }
        }
        assert!(seen > 50, "{seen} seeds keep everything");
    }
}

#[test]
fn a_seed_draws_the_same_in_every_run_and_all_faults_are_drawn() {
    for is_stream in [true, false] {
        let faults: Vec<_> = (0..SEEDS)
            .map(|seed| scenario::fault(seed, is_stream))
            .collect();
        assert_eq!(
            faults,
            (0..SEEDS)
                .map(|seed| scenario::fault(seed, is_stream))
                .collect::<Vec<_>>()
        );
        let templates: BTreeSet<_> = faults.iter().map(|fault| fault.template).collect();
        let known: BTreeSet<_> = scenario::all()
            .iter()
            .map(|scenario| scenario.template)
            .collect();
        assert!(templates.len() > 25, "{templates:?}");
        for template in templates {
            let is_named = known.contains(template) || scenario::named(template).is_some();
            assert!(is_named, "{template} is a scenario");
        }
    }
}
