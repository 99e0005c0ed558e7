//! Tests of the shares of one scope.

use super::*;
use crate::{FailMode, Window, Zone};

const LEASE: Duration = Duration::from_secs(10);
const LENDING: LeaseSettings = LeaseSettings {
    mode: FailMode::Closed,
    lease: LEASE,
    lost_lease: LostLease::Finish,
};
/// 2026-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_767_225_600_000;
const HOUR: i64 = 3_600_000;

fn now(millis: u64) -> Now {
    Now {
        monotonic: 1_000_000_000 + millis * 1_000,
        unix_ms: NEW_YEAR + i64::try_from(millis).unwrap(),
    }
}

/// A limit of 10 requests at once, 6 requests and 1,200 tokens a minute, and 50.00 an hour.
fn caps() -> Caps {
    let amount = "50.00".parse().unwrap();
    let budget = Budget::new(amount, "USD".parse().unwrap(), Window::Hour, Zone::UTC);
    Caps {
        concurrency: Some(10),
        requests_per_minute: Some(6),
        tokens_per_minute: Some(1_200),
        budget: Some(budget.unwrap()),
    }
}

fn leased(caps: &Caps) -> LeasedLimit {
    LeasedLimit::new("q0", "team-a", caps, LENDING, now(0))
}

fn requests(leased: &mut LeasedLimit, at: Now) -> Vec<(DimensionId, LeaseRequest)> {
    let mut requests = Vec::new();
    leased.poll(at, |dimension, request| requests.push((dimension, request)));
    requests
}

fn grant(request: &LeaseRequest) -> LeaseGrant {
    LeaseGrant {
        seq: request.seq,
        held: request.retained + request.wanted,
        available: request.spec.capacity(),
        level: 0,
        replicas: 1,
        waiting_replicas: 0,
        quarantined: false,
        duration: LEASE,
    }
}

/// Grants the amounts that the shares want.
fn lend(leased: &mut LeasedLimit, at: Now) -> Vec<LeaseRequest> {
    let requests = requests(leased, at);
    for (dimension, request) in &requests {
        leased.on_grant(*dimension, request, Some(&grant(request)), at);
    }
    requests.into_iter().map(|(_, request)| request).collect()
}

/// Takes the amounts that a request needs, after grants of the store if necessary.
fn take(leased: &mut LeasedLimit, tokens: u64, money: Money, at: Now) -> LeasedAmounts {
    for _ in 0..4 {
        if let Ok(taken) = leased.take(tokens, money, at) {
            return taken;
        }
        lend(leased, at);
    }
    leased.take(tokens, money, at).unwrap()
}

fn in_use(leased: &LeasedLimit) -> Vec<u64> {
    leased
        .dimensions
        .iter()
        .map(|dimension| dimension.share.in_use())
        .collect()
}

#[test]
fn each_part_of_a_limit_is_asked_for_under_its_terms() {
    let mut leased = leased(&caps());
    let money = Money::from_nanos(700);
    let mut found = Vec::new();
    for _ in 0..4 {
        let shortfall = leased.take(100, money, now(0)).unwrap_err();
        let asked = lend(&mut leased, now(0));
        let [request] = &asked[..] else {
            panic!("{asked:?}")
        };
        found.push((
            shortfall.dimension,
            shortfall.retry_after,
            request.limit.to_string(),
            request.spec,
            request.waiting,
        ));
    }
    let bucket = |units| LeasedLimitSpec::Bucket {
        per_minute: units,
        capacity: units,
    };
    let budget = LeasedLimitSpec::Budget {
        amount: 50_000_000_000,
        window: 1_767_225_600,
        accounted: 0,
    };
    let part = |dimension, wait, name: &str, spec, need| {
        (dimension, wait, format!("q0/team-a/{name}"), spec, need)
    };
    assert_eq!(
        found,
        [
            part(
                Dimension::Concurrency,
                None,
                "concurrency",
                LeasedLimitSpec::Permits { cap: 10 },
                1
            ),
            part(Dimension::Budget, None, "budget", budget, 700),
            // A request every 10 s, and 100 of 1,200 tokens in 5 s.
            part(
                Dimension::Requests,
                Some(10_000_000),
                "requests",
                bucket(6_000_000),
                1_000_000
            ),
            part(
                Dimension::Tokens,
                Some(5_000_000),
                "tokens",
                bucket(1_200_000_000),
                100_000_000
            ),
        ]
    );
    assert_eq!(in_use(&leased), [0, 0, 0, 0], "nothing was taken");
    let taken = leased.take(100, money, now(0)).unwrap();
    assert_eq!(in_use(&leased), [1, 1_000_000, 100_000_000, 700]);
    leased.release(taken);
    assert_eq!(in_use(&leased), [0, 0, 0, 0]);
}

#[test]
fn a_request_that_costs_nothing_needs_some_of_the_budget() {
    let mut leased = leased(&Caps {
        budget: caps().budget,
        ..Caps::default()
    });
    assert!(leased.take(0, Money::ZERO, now(0)).is_err());
    assert_eq!(lend(&mut leased, now(0))[0].waiting, 1);
    let taken = leased.take(0, Money::ZERO, now(0)).unwrap();
    assert_eq!(taken[0].1.amount, 1);
}

#[test]
fn a_request_that_ends_is_counted_by_its_use() {
    let mut leased = leased(&caps());
    let taken = take(&mut leased, 100, Money::from_nanos(700), now(0));
    let used = Used {
        tokens: 30,
        answer_tokens: 20,
        money: Money::from_nanos(900),
    };
    leased.settle(taken, used);
    assert_eq!(in_use(&leased), [0, 0, 0, 0]);
    let mut used: Vec<_> = lend(&mut leased, now(4_000))
        .into_iter()
        .map(|request| request.used)
        .collect();
    used.sort_unstable();
    assert_eq!(used, [0, 900, 1_000_000, 30_000_000]);
}

#[test]
fn a_request_that_is_given_back_is_not_counted() {
    let mut leased = leased(&caps());
    let taken = take(&mut leased, 100, Money::from_nanos(700), now(0));
    leased.release(taken);
    let asked = lend(&mut leased, now(4_000));
    assert!(
        !asked.is_empty() && asked.iter().all(|request| request.used == 0),
        "{asked:?}"
    );
}

#[test]
fn money_that_was_spent_before_is_reported_to_the_store() {
    let mut leased = leased(&caps());
    leased.set_accounted(Money::from_nanos(5));
    // The store may have lost its data later.
    leased.set_accounted(Money::from_nanos(12));
    take(&mut leased, 0, Money::ZERO, now(0));
    let budget = |leased: &mut LeasedLimit| {
        leased
            .find(leased.current_budget().unwrap())
            .unwrap()
            .share
            .spec()
    };
    let spec = |window, accounted| LeasedLimitSpec::Budget {
        amount: 50_000_000_000,
        window,
        accounted,
    };
    assert_eq!(budget(&mut leased), spec(1_767_225_600, 12));
    // The next hour begins without accounted spending.
    leased.refresh(&caps(), LENDING, now(3_600_000));
    assert_eq!(budget(&mut leased), spec(1_767_229_200, 0));
}

#[test]
fn money_that_was_spent_before_is_kept_for_its_window() {
    let caps = Caps {
        budget: caps().budget,
        ..Caps::default()
    };
    let mut leased = leased(&caps);
    assert!(leased.is_unused());
    leased.set_accounted(Money::from_nanos(5));
    assert!(!leased.is_unused());
    leased.refresh(&caps, LENDING, now(3_600_000));
    assert!(leased.is_unused());
}

#[test]
fn a_store_that_does_not_answer_makes_the_limit_degraded() {
    let mut leased = leased(&Caps::concurrency(10));
    let shortfall = leased.take(0, Money::ZERO, now(0)).unwrap_err();
    assert_eq!((shortfall.may_wait, shortfall.is_degraded), (true, false));
    assert!(!leased.is_degraded());
    let asked = requests(&mut leased, now(0));
    leased.on_grant(DimensionId::Permits, &asked[0].1, None, now(1));
    assert!(leased.is_degraded());
    let shortfall = leased.take(0, Money::ZERO, now(1)).unwrap_err();
    assert_eq!((shortfall.may_wait, shortfall.is_degraded), (false, true));
    lend(&mut leased, now(1_000));
    assert!(!leased.is_degraded());
}

#[test]
fn a_store_that_may_have_forgotten_makes_the_limit_degraded() {
    let mut leased = leased(&Caps::concurrency(10));
    assert!(leased.take(0, Money::ZERO, now(0)).is_err());
    let asked = requests(&mut leased, now(0));
    let grant = LeaseGrant {
        held: 0,
        quarantined: true,
        ..grant(&asked[0].1)
    };
    leased.on_grant(DimensionId::Permits, &asked[0].1, Some(&grant), now(0));
    assert!(leased.is_degraded());
}

/// Amounts that were taken before the refusal come back, also from a store in quarantine.
#[test]
fn request_refused_in_quarantine_spends_no_budget() {
    let mut leased = leased(&Caps {
        requests_per_minute: Some(6),
        budget: caps().budget,
        ..Caps::default()
    });
    let dollar = "1.00".parse().unwrap();
    assert!(leased.take(0, dollar, now(0)).is_err());
    for (dimension, request) in requests(&mut leased, now(0)) {
        let grant = LeaseGrant {
            held: 5_000_000_000,
            quarantined: true,
            ..grant(&request)
        };
        leased.on_grant(dimension, &request, Some(&grant), now(0));
    }
    for _ in 0..9 {
        let shortfall = leased.take(0, dollar, now(1)).unwrap_err();
        assert_eq!(shortfall.dimension, Dimension::Requests);
    }
    let held: Vec<_> = leased.parts().iter().map(|part| part.held).collect();
    assert_eq!(held, [0, 5_000_000_000]);
}

#[test]
fn a_reply_with_another_number_refuses_the_ask() {
    let mut leased = leased(&Caps::concurrency(10));
    assert!(leased.take(0, Money::ZERO, now(0)).is_err());
    let asked = requests(&mut leased, now(0));
    let late = LeaseGrant {
        seq: 7,
        ..grant(&asked[0].1)
    };
    leased.on_grant(DimensionId::Permits, &asked[0].1, Some(&late), now(1));
    assert!(leased.is_degraded());
    assert_eq!(leased.parts()[0].held, 0);
}

#[test]
fn a_reply_for_another_scope_changes_nothing() {
    let mut leased = leased(&Caps::concurrency(10));
    assert!(leased.take(0, Money::ZERO, now(0)).is_err());
    let asked = requests(&mut leased, now(0));
    let other = LeaseRequest {
        limit: "q0/team-b/concurrency".into(),
        ..asked[0].1.clone()
    };
    leased.on_grant(DimensionId::Permits, &other, Some(&grant(&other)), now(1));
    leased.on_grant(DimensionId::Permits, &other, None, now(1));
    assert_eq!((leased.parts()[0].held, leased.is_degraded()), (0, false));
    leased.on_grant(
        DimensionId::Permits,
        &asked[0].1,
        Some(&grant(&asked[0].1)),
        now(1),
    );
    assert_eq!(leased.parts()[0].held, 1);
}

#[test]
fn a_notice_is_for_the_part_that_it_names() {
    let mut leased = leased(&caps());
    let taken = take(&mut leased, 100, Money::from_nanos(700), now(0));
    leased.release(taken);
    for other in ["q0/team-a/other", "q0/team-b/concurrency", "q0/team-a"] {
        leased.on_notice(other);
        assert!(!leased.should_exchange(), "{other}");
    }
    leased.on_notice("q0/team-a/budget@1767225600");
    assert!(leased.should_exchange());
    let asked = lend(&mut leased, now(1));
    assert_eq!(
        (asked.len(), asked[0].key()),
        (1, "q0/team-a/budget@1767225600".to_owned())
    );
}

#[test]
fn parts_are_reported_in_the_units_of_their_caps() {
    let mut leased = leased(&caps());
    take(&mut leased, 100, Money::from_nanos(700), now(0));
    let free = [9, 4_000_000, 999_000_000, 41];
    for (dimension, free) in leased.dimensions.iter_mut().zip(free) {
        dimension.free = free;
    }
    let found: Vec<_> = leased
        .parts()
        .into_iter()
        .map(|part| (part.dimension, part.key, part.held, part.free))
        .collect();
    let part =
        |dimension, name: &str, held, free| (dimension, format!("q0/team-a/{name}"), held, free);
    assert_eq!(
        found,
        [
            part(Dimension::Concurrency, "concurrency", 1, 9),
            part(Dimension::Requests, "requests", 0, 4),
            part(Dimension::Tokens, "tokens", 0, 999),
            part(Dimension::Budget, "budget@1767225600", 0, 41),
        ]
    );
}

/// The remaining rate is the amount that the replica holds plus the amount that is available in the
/// store.
#[test]
fn remaining_rate_is_held_plus_free() {
    let mut leased = leased(&caps());
    let taken = take(&mut leased, 100, Money::ZERO, now(0));
    leased.release(taken);
    leased.find(DimensionId::Requests).unwrap().free = 3_000_000;
    leased.find(DimensionId::Tokens).unwrap().free = 500_000_000;
    let remaining = leased.remaining();
    // Two of six requests are gone, at one in 10 s; half of 1,200 tokens, at 20 in a second.
    assert_eq!(
        (remaining.requests, remaining.tokens),
        (
            Some(Level {
                limit: 6,
                remaining: 4,
                reset: 20_000_000,
            }),
            Some(Level {
                limit: 1_200,
                remaining: 600,
                reset: 30_000_000,
            }),
        )
    );
    // The store still has the larger bucket of a limit that was lowered since.
    leased.find(DimensionId::Requests).unwrap().free = 90_000_000;
    assert_eq!(
        leased.remaining().requests,
        Some(Level {
            limit: 6,
            remaining: 6,
            reset: 0,
        })
    );
}

#[test]
fn spent_money_is_the_stores_count_in_the_window() {
    let mut leased = leased(&caps());
    assert_eq!(leased.spent(), Money::ZERO);
    let id = leased.current_budget().unwrap();
    leased.find(id).unwrap().level = 123;
    assert_eq!(leased.spent(), Money::from_nanos(123));
    leased.refresh(&caps(), LENDING, now(3_599_999));
    assert_eq!(leased.spent(), Money::from_nanos(123));
    leased.refresh(&caps(), LENDING, now(3_600_000));
    assert_eq!(leased.spent(), Money::ZERO);
}

#[test]
fn replies_update_free_and_spent_amounts() {
    let mut leased = leased(&Caps {
        budget: caps().budget,
        ..Caps::default()
    });
    assert!(leased.take(0, Money::from_nanos(5), now(0)).is_err());
    let asked = requests(&mut leased, now(0));
    let grant = LeaseGrant {
        available: 77,
        level: 88,
        ..grant(&asked[0].1)
    };
    leased.on_grant(asked[0].0, &asked[0].1, Some(&grant), now(0));
    assert_eq!(
        (leased.parts()[0].free, leased.spent()),
        (77, Money::from_nanos(88))
    );
}

/// The share of a window that is over stays until its requests have ended and are reported.
#[test]
fn a_window_that_is_over_is_settled_and_dropped() {
    let mut leased = leased(&Caps {
        budget: caps().budget,
        ..Caps::default()
    });
    let taken = take(&mut leased, 0, Money::from_nanos(700), now(0));
    leased.refresh(&caps(), LENDING, now(3_600_000));
    assert_eq!(
        leased.parts().last().unwrap().key,
        "q0/team-a/budget@1767229200"
    );
    let budgets = |leased: &LeasedLimit| {
        leased
            .dimensions
            .iter()
            .filter(|dimension| matches!(dimension.id, DimensionId::Budget(_)))
            .count()
    };
    lend(&mut leased, now(3_600_000));
    assert_eq!(budgets(&leased), 2);
    let used = Used {
        money: Money::from_nanos(900),
        ..Used::default()
    };
    leased.settle(taken, used);
    let asked = lend(&mut leased, now(3_604_000));
    // The store has counted the 700 of the lost lease, and learns of the rest.
    assert_eq!(
        (asked[0].key(), asked[0].used),
        ("q0/team-a/budget@1767225600".to_owned(), 200)
    );
    lend(&mut leased, now(3_615_000));
    lend(&mut leased, now(3_616_000));
    assert_eq!(budgets(&leased), 1);
    assert_eq!(
        leased.dimensions.last().unwrap().id,
        DimensionId::Budget(NEW_YEAR + 2 * HOUR)
    );
}

#[test]
fn a_window_is_entered_once() {
    let mut leased = leased(&caps());
    leased.refresh(&caps(), LENDING, now(1));
    assert_eq!(leased.dimensions.len(), 4);
    assert_eq!(
        leased.current_budget(),
        Some(DimensionId::Budget(NEW_YEAR + HOUR))
    );
}

#[test]
fn changed_caps_keep_permits_in_use() {
    let mut leased = leased(&caps());
    take(&mut leased, 0, Money::ZERO, now(0));
    let fewer = Caps {
        concurrency: Some(5),
        requests_per_minute: None,
        ..caps()
    };
    leased.refresh(&fewer, LENDING, now(1));
    let ids: Vec<_> = leased
        .dimensions
        .iter()
        .map(|dimension| dimension.id)
        .collect();
    let budget = DimensionId::Budget(NEW_YEAR + HOUR);
    assert_eq!(ids, [DimensionId::Permits, DimensionId::Tokens, budget]);
    let permits = &leased.dimensions[0].share;
    assert_eq!(
        (permits.spec(), permits.in_use()),
        (LeasedLimitSpec::Permits { cap: 5 }, 1)
    );
    assert_eq!(leased.remaining().requests, None);
}

/// A reload changes the amount of the window that has begun, and keeps its spending.
#[test]
fn changed_amount_of_a_budget_applies_at_once() {
    let amount = |amount: &str| {
        let amount = amount.parse().unwrap();
        let budget = Budget::new(amount, "USD".parse().unwrap(), Window::Hour, Zone::UTC);
        Caps {
            budget: Some(budget.unwrap()),
            ..Caps::default()
        }
    };
    let mut leased = leased(&amount("50.00"));
    leased.set_accounted("20.00".parse().unwrap());
    let taken = take(&mut leased, 0, "5.00".parse().unwrap(), now(0));
    leased.refresh(&amount("80.00"), LENDING, now(1));
    assert!(leased.take(0, "30.00".parse().unwrap(), now(1)).is_err());
    let asked = requests(&mut leased, now(1));
    let [(_, request)] = &asked[..] else {
        panic!("{asked:?}")
    };
    let expected = LeasedLimitSpec::Budget {
        amount: 80_000_000_000,
        window: 1_767_225_600,
        accounted: 20_000_000_000,
    };
    assert_eq!(request.spec, expected);
    assert_eq!(in_use(&leased), [5_000_000_000]);
    leased.release(taken);
    assert_eq!(in_use(&leased), [0]);
}

/// A reload during an outage of the store admits requests to scopes in use as well.
#[test]
fn changed_reaction_to_a_lost_store_applies_at_once() {
    let ending = |mode| LeaseSettings {
        mode,
        lost_lease: LostLease::End,
        ..LENDING
    };
    let caps = Caps::concurrency(10);
    let mut leased = leased(&caps);
    leased.refresh(&caps, ending(FailMode::Closed), now(0));
    let running = take(&mut leased, 0, Money::ZERO, now(0));
    let loss = leased.loss().unwrap().clone();
    let without_store = now(11_000);
    assert!(leased.take(0, Money::ZERO, without_store).is_err());
    assert!(loss.has_happened());
    let asked = requests(&mut leased, without_store);
    leased.on_grant(DimensionId::Permits, &asked[0].1, None, without_store);
    assert!(leased.take(0, Money::ZERO, without_store).is_err());
    leased.refresh(&caps, ending(FailMode::Open), without_store);
    let admitted = leased.take(0, Money::ZERO, without_store).unwrap();
    assert!(leased.loss().is_none(), "it need not end");
    leased.refresh(&caps, ending(FailMode::Closed), without_store);
    assert!(leased.take(0, Money::ZERO, without_store).is_err());
    assert!(leased.loss().is_some());
    for taken in [running, admitted] {
        leased.release(taken);
    }
    assert_eq!(in_use(&leased), [0]);
}

#[test]
fn a_scope_is_dormant_once_the_store_knows_everything() {
    let mut leased = leased(&Caps::concurrency(10));
    assert!(leased.is_unused() && !leased.needs_retry());
    assert!(leased.take(0, Money::ZERO, now(0)).is_err());
    assert!(!leased.is_unused() && leased.needs_retry());
    lend(&mut leased, now(0));
    let taken = leased.take(0, Money::ZERO, now(0)).unwrap();
    assert!(!leased.is_unused() && !leased.needs_retry());
    leased.release(taken);
    lend(&mut leased, now(4_000));
    lend(&mut leased, now(8_000));
    // Its lease is over.
    lend(&mut leased, now(18_000));
    assert!(leased.is_unused());
}

/// Otherwise clients with high limits could never use the last part of a budget.
#[test]
fn last_part_of_a_lent_budget_goes_to_one_request() {
    let caps = Caps {
        budget: caps().budget,
        ..Caps::default()
    };
    let mut leased = leased(&caps);
    let sixty = Money::from_nanos(60_000_000_000);
    let taken = take(&mut leased, 0, sixty, now(0));
    assert_eq!(in_use(&leased), [50_000_000_000], "all of the budget");
    assert!(leased.take(0, Money::from_nanos(1), now(0)).is_err());
    let used = Used {
        money: Money::from_nanos(20_000_000_000),
        ..Used::default()
    };
    leased.settle(taken, used);
    let taken = take(&mut leased, 0, sixty, now(0));
    assert_eq!(in_use(&leased), [30_000_000_000], "what is left of it");
    leased.settle(taken, used);
    let small = take(&mut leased, 0, Money::from_nanos(1), now(0));
    let shortfall = leased.take(0, sixty, now(0)).unwrap_err();
    assert_eq!(shortfall.dimension, Dimension::Budget, "not alone");
    leased.settle(small, Used::default());
}

/// A response in the background takes no permit, and may still cost the amount reserved for it.
#[test]
fn permit_is_given_back_before_the_reservation() {
    let mut leased = leased(&caps());
    let money = Money::from_nanos(700);
    let mut taken = take(&mut leased, 100, money, now(0));
    let before = in_use(&leased);
    leased.release_place(&mut taken);
    leased.release_place(&mut taken);
    let after = in_use(&leased);
    assert_eq!((before[0], after[0]), (1, 0));
    assert_eq!(before[1..], after[1..]);
    leased.settle(taken, Used::default());
    assert!(in_use(&leased).iter().all(|amount| *amount == 0));
}
