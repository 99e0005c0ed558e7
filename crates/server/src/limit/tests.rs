//! Tests of the limiter.

use std::collections::HashMap;

use engine::Usage;
use quota::Dimension;

use super::*;
use crate::config::Config;

/// One key cannot take the permits of all, neither for requests nor for fetches.
#[test]
fn f11_o07_one_key_cannot_take_what_is_anothers() {
    let limiter = Limiter::new(3, 2);
    let (first, second) = (limiter.take("a"), limiter.take("a"));
    assert!(first.is_some() && second.is_some() && limiter.take("a").is_none());
    let third = limiter.take("b");
    assert!(
        third.is_some() && limiter.take("b").is_none(),
        "three over all"
    );
    drop(first);
    assert_eq!(limiter.taken(), 2);
    assert!(limiter.take("b").is_some());
}

/// A refused request takes no permit.
#[test]
fn o04_a_refusal_takes_nothing() {
    let limiter = Limiter::new(1, 2);
    let held = limiter.take("a");
    for _ in 0..10 {
        assert!(limiter.take("b").is_none());
    }
    drop(held);
    assert!(limiter.take("b").is_some());
    assert_eq!(limiter.taken(), 0);
}

/// Registers the quotas of a configuration.
fn with_quotas(quotas: &str) -> (Limiter, Quotas) {
    let limiter = Limiter::new(10, 10);
    let config = Config::parse(quotas).unwrap();
    let mut quotas = Quotas::new(config.quota_rules().unwrap(), HashMap::new());
    quotas.register(&limiter);
    (limiter, quotas)
}

fn applicant<'a>(key: &'a str, model: &'a str, quotas: &'a Quotas) -> Applicant<'a> {
    Applicant {
        key,
        model,
        quotas,
        price: None,
        is_journaled: false,
    }
}

fn tokens(_: Option<u64>) -> Reserved {
    Reserved {
        prompt: 50,
        answer: 50,
        pictures: Pictures::default(),
    }
}

/// Each key has its own quota, for the models that it is for.
#[test]
fn a_quota_is_counted_for_each_key() {
    let (limiter, quotas) =
        with_quotas("[[quotas]]\nkey = \"team-*\"\nmodels = [\"big\"]\nconcurrency = 1");
    let admit = |key, model| limiter.try_admit(applicant(key, model, &quotas), &tokens);
    let one = admit("team-a", "big").unwrap();
    let refused = admit("team-a", "big").unwrap_err();
    assert_eq!(&*refused.limit, "key team-* with big");
    assert_eq!(
        (refused.dimension, refused.cap),
        (Dimension::Concurrency, 1)
    );
    let others = [
        admit("team-a", "small"),
        admit("team-b", "big"),
        admit("other", "big"),
    ];
    assert!(others.iter().all(Result::is_ok));
    one.end(Known::Unused);
    assert!(admit("team-a", "big").is_ok());
}

/// The usage counts as far as it is known.
#[tokio::test(start_paused = true)]
async fn tokens_are_settled_with_what_is_known() {
    let usage = Usage {
        input: 30,
        output: 20,
        ..Usage::default()
    };
    for (known, left) in [
        (Known::Usage(usage), 950),
        (Known::Events(3), 947),
        (Known::Nothing, 900),
        (Known::Unused, 1_000),
    ] {
        let (limiter, quotas) = with_quotas("[[quotas]]\ntokens_per_minute = 1000");
        let admit = || limiter.try_admit(applicant("a", "m", &quotas), &tokens);
        let remaining = |permit: &Permit| permit.quotas().remaining.tokens.unwrap().remaining;
        let first = admit().unwrap();
        assert_eq!(remaining(&first), 900);
        first.end(known);
        // The second request reserves another 100.
        let second = admit().unwrap();
        assert_eq!(remaining(&second), left - 100, "{known:?}");
    }
}
