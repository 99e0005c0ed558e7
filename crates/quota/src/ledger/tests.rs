//! Tests of the ledger.

mod lent;
mod shared;

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{Budget, Caps, Dimension, FailMode, LeaseSettings, Level, LostLease, Window, Zone};

/// Demands nothing but a place.
fn place(_: Option<u64>) -> Demand {
    Demand::default()
}

fn tokens(tokens: u64) -> impl FnOnce(Option<u64>) -> Demand {
    move |_| Demand {
        tokens,
        ..Demand::default()
    }
}

fn money(amount: &str) -> impl FnOnce(Option<u64>) -> Demand {
    let money = amount.parse().unwrap();
    move |_| Demand { tokens: 0, money }
}

fn at_second(seconds: u64) -> Now {
    Now {
        monotonic: seconds * 1_000_000,
        unix_ms: i64::try_from(seconds).unwrap() * 1_000,
    }
}

fn ledger(limits: &[(&str, Caps)]) -> (Ledger, Vec<LimitId>) {
    let mut ledger = Ledger::new();
    let ids = ledger.set_limits(
        limits
            .iter()
            .map(|(name, caps)| (Arc::from(*name), caps.clone().into())),
    );
    (ledger, ids)
}

fn claim(limit: LimitId, scope: &str) -> Claim<'_> {
    Claim { limit, scope }
}

fn budget(amount: &str, window: Window) -> Caps {
    let amount = amount.parse().unwrap();
    let budget = Budget::new(amount, "USD".parse().unwrap(), window, Zone::UTC).unwrap();
    Caps {
        budget: Some(budget),
        ..Caps::default()
    }
}

fn requests(per_minute: u64) -> Caps {
    Caps {
        requests_per_minute: Some(per_minute),
        ..Caps::default()
    }
}

fn tokens_per_minute(per_minute: u64) -> Caps {
    Caps {
        tokens_per_minute: Some(per_minute),
        ..Caps::default()
    }
}

/// A request that one limit refuses consumes nothing of any other.
#[test]
fn a_request_is_admitted_by_all_limits_or_by_none() {
    let limits = [
        ("all", Caps::concurrency(3)),
        ("rate", requests(1)),
        ("key", Caps::concurrency(1)),
    ];
    let (mut ledger, ids) = ledger(&limits);
    let of_key = |key| [claim(ids[0], ""), claim(ids[1], key), claim(ids[2], key)];
    let first = ledger.admit(&of_key("a"), place, Now::default()).unwrap();
    for _ in 0..5 {
        let refused = ledger.admit(&of_key("a"), place, Now::default());
        assert_eq!(refused.unwrap_err().dimension, Dimension::Requests);
    }
    assert_eq!(ledger.in_use(claim(ids[0], "")), 1);
    assert_eq!(ledger.in_use(claim(ids[2], "a")), 1);
    // The rate of another key is unused.
    let other = ledger.admit(&of_key("b"), place, Now::default()).unwrap();
    assert_eq!(other.remaining().requests.unwrap().remaining, 0);
    ledger.end(first, Used::default(), Now::default());
    ledger.end(other, Used::default(), Now::default());
    // The rates are full again a minute later.
    ledger.drop_idle(at_second(59));
    assert_eq!(ledger.len(), 2);
    ledger.drop_idle(at_second(60));
    assert!(ledger.is_empty(), "{ledger:?}");
}

/// If several limits apply, the smallest remaining rate counts, for requests and for tokens
/// separately.
#[test]
fn the_rest_of_the_rates_is_the_least_of_all_limits() {
    let rates = |requests, tokens| Caps {
        requests_per_minute: Some(requests),
        tokens_per_minute: Some(tokens),
        ..Caps::default()
    };
    let limits = [
        ("one", rates(5, 900)),
        ("two", rates(9, 700)),
        ("no rate", Caps::concurrency(1)),
    ];
    let (mut ledger, ids) = ledger(&limits);
    let claims: Vec<_> = ids.iter().map(|id| claim(*id, "a")).collect();
    let admitted = ledger.admit(&claims, tokens(100), Now::default()).unwrap();
    let Remaining { requests, tokens } = admitted.remaining();
    let rest = |level: Option<Level>| level.map(|level| (level.limit, level.remaining));
    assert_eq!(
        (rest(requests), rest(tokens)),
        (Some((5, 4)), Some((700, 600)))
    );
}

#[test]
fn a_refusal_names_the_limit_and_the_time_to_wait() {
    let (mut ledger, ids) = ledger(&[("team-*", requests(6))]);
    let claims = [claim(ids[0], "team-a")];
    for _ in 0..6 {
        let admitted = ledger.admit(&claims, place, Now::default()).unwrap();
        ledger.end(admitted, Used::default(), Now::default());
    }
    let refused = ledger.admit(&claims, place, at_second(4)).unwrap_err();
    assert_eq!(&*refused.limit, "team-*");
    assert_eq!(refused.dimension, Dimension::Requests);
    assert_eq!(refused.retry_after, Some(6_000_000));
    assert!(ledger.admit(&claims, place, at_second(10)).is_ok());
}

/// Reserved tokens that were not used are returned; tokens above the reservation are a debt, which
/// is paid before the next request is admitted.
#[test]
fn tokens_are_reserved_and_settled() {
    let (mut ledger, ids) = ledger(&[("tokens", tokens_per_minute(1_200))]);
    let claims = [claim(ids[0], "a")];
    let one = ledger.admit(&claims, tokens(200), Now::default()).unwrap();
    assert_eq!(
        one.remaining().tokens,
        Some(Level {
            limit: 1_200,
            remaining: 1_000,
            reset: 10_000_000
        })
    );
    let used = |tokens| Used {
        tokens,
        ..Used::default()
    };
    ledger.end(one, used(20), Now::default());
    // A quarter of the limit is the most that one request reserves.
    let large = ledger
        .admit(&claims, tokens(5_000), Now::default())
        .unwrap();
    assert_eq!(large.remaining().tokens.unwrap().remaining, 880);
    ledger.end(large, used(1_300), Now::default());
    // 1,180 − 1,300 = −120: at 20 tokens a second, 6 s until the debt is paid, and 5 s for 100
    // more.
    let refused = ledger
        .admit(&claims, tokens(100), Now::default())
        .unwrap_err();
    assert_eq!(
        (refused.dimension, refused.retry_after),
        (Dimension::Tokens, Some(11_000_000))
    );
    assert!(ledger.admit(&claims, tokens(100), at_second(11)).is_ok());
}

#[test]
fn a_budget_is_reserved_spent_and_renewed_with_its_window() {
    let (mut ledger, ids) = ledger(&[("budget", budget("1.00", Window::Hour))]);
    let claims = [claim(ids[0], "a")];
    let spent = |amount: &str| Used {
        money: amount.parse().unwrap(),
        ..Used::default()
    };
    let one = ledger
        .admit(&claims, money("0.60"), Now::default())
        .unwrap();
    let refused = ledger.admit(&claims, money("0.50"), Now::default());
    assert_eq!(refused.unwrap_err().dimension, Dimension::Budget);
    ledger.end(one, spent("0.25"), Now::default());
    let two = ledger.admit(&claims, money("0.50"), at_second(10)).unwrap();
    ledger.end(two, spent("0.90"), at_second(10));
    let status = ledger.status(at_second(10));
    assert_eq!(status[0].spent, Some("1.15".parse().unwrap()));
    assert_eq!(status[0].reserved, Money::ZERO);
    // Used up: not even a request that is free is admitted until the hour ends.
    assert!(ledger.admit(&claims, money("0"), at_second(3_599)).is_err());
    let three = ledger.admit(&claims, money("1.00"), at_second(3_600));
    ledger.end(three.unwrap(), spent("0.10"), at_second(3_700));
    assert_eq!(
        ledger.status(at_second(3_700))[0].spent,
        Some("0.10".parse().unwrap())
    );
}

/// The cost of a request belongs to the window in which it was admitted, as its row of usage does.
#[test]
fn money_counts_in_the_window_of_the_admission() {
    let (mut ledger, ids) = ledger(&[("budget", budget("1.00", Window::Hour))]);
    let claims = [claim(ids[0], "a")];
    let spent = Used {
        money: "0.90".parse().unwrap(),
        ..Used::default()
    };
    let before = ledger.admit(&claims, money("0.60"), at_second(3_598));
    let before = before.unwrap();
    // The new window has all of its money, while the request of the old one goes on.
    let one = ledger.admit(&claims, money("1.00"), at_second(3_600));
    let one = one.unwrap();
    assert_eq!(
        ledger.status(at_second(3_600))[0].reserved,
        "1.00".parse().unwrap()
    );
    ledger.end(before, spent, at_second(3_601));
    let status = ledger.status(at_second(3_601));
    assert_eq!(status[0].spent, Some(Money::ZERO));
    assert_eq!(status[0].reserved, "1.00".parse().unwrap());
    ledger.end(one, spent, at_second(3_602));
    let status = ledger.status(at_second(3_602));
    assert_eq!(status[0].spent, Some("0.90".parse().unwrap()));
    assert_eq!(status[0].reserved, Money::ZERO);
}

/// Otherwise clients with high limits could never use the last part of a budget.
#[test]
fn last_part_of_a_budget_goes_to_one_request() {
    let (mut ledger, ids) = ledger(&[("budget", budget("1.00", Window::Hour))]);
    let claims = [claim(ids[0], "a")];
    let spent = |amount: &str| Used {
        money: amount.parse().unwrap(),
        ..Used::default()
    };
    let one = ledger.admit(&claims, money("5.00"), Now::default());
    let one = one.unwrap();
    for _ in 0..50 {
        let refused = ledger.admit(&claims, money("0.01"), Now::default());
        assert_eq!(refused.unwrap_err().dimension, Dimension::Budget);
    }
    ledger.end(one, spent("0.40"), Now::default());
    let small = ledger.admit(&claims, money("0.10"), Now::default());
    let large = ledger.admit(&claims, money("5.00"), Now::default());
    assert!(large.is_err(), "another request has a reservation");
    ledger.end(small.unwrap(), spent("0.10"), Now::default());
    let last = ledger.admit(&claims, money("5.00"), Now::default());
    ledger.end(last.unwrap(), spent("0.50"), Now::default());
    assert!(ledger.admit(&claims, place, Now::default()).is_err());
}

/// A response in the background takes no place, and may still cost the amount reserved for it.
#[test]
fn place_is_given_back_before_the_reservation() {
    let caps = Caps {
        concurrency: Some(1),
        ..budget("1.00", Window::Hour)
    };
    let (mut ledger, ids) = ledger(&[("limit", caps)]);
    let claims = [claim(ids[0], "a")];
    let mut background = ledger
        .admit(&claims, money("0.70"), Now::default())
        .unwrap();
    for _ in 0..2 {
        ledger.release_place(&mut background);
    }
    assert_eq!(ledger.in_use(claims[0]), 0);
    ledger.drop_idle(Now::default());
    let refused = ledger.admit(&claims, money("0.40"), Now::default());
    assert_eq!(refused.unwrap_err().dimension, Dimension::Budget);
    let other = ledger.admit(&claims, money("0.30"), Now::default());
    let other = other.unwrap();
    let used = Used {
        money: "0.20".parse().unwrap(),
        ..Used::default()
    };
    ledger.end(background, used, Now::default());
    assert_eq!(ledger.in_use(claims[0]), 1, "the other one goes on");
    ledger.end(other, Used::default(), Now::default());
    let status = ledger.status(Now::default());
    assert_eq!(status[0].spent, Some("0.20".parse().unwrap()));
    assert_eq!(status[0].reserved, Money::ZERO);
}

#[test]
fn money_that_was_spent_before_counts() {
    let (mut ledger, ids) = ledger(&[("budget", budget("1.00", Window::Day))]);
    ledger.add_spent(claim(ids[0], "a"), "1.00".parse().unwrap(), Now::default());
    let refused = ledger.admit(&[claim(ids[0], "a")], place, Now::default());
    assert_eq!(refused.unwrap_err().dimension, Dimension::Budget);
    assert!(
        ledger
            .admit(&[claim(ids[0], "b")], place, Now::default())
            .is_ok()
    );
}

/// Replacing the limits keeps the requests in progress, and requests of a removed limit end without
/// a trace.
#[test]
fn limits_are_replaced_while_requests_are_in_progress() {
    let (mut ledger, ids) = ledger(&[("kept", Caps::concurrency(2)), ("gone", requests(1))]);
    let claims = [claim(ids[0], "a"), claim(ids[1], "a")];
    let one = ledger.admit(&claims, place, Now::default()).unwrap();
    let after = ledger.set_limits([
        (Arc::from("new"), Caps::concurrency(9).into()),
        (Arc::from("kept"), Caps::concurrency(1).into()),
    ]);
    assert_eq!(after[1], ids[0]);
    assert!(
        ledger
            .admit(&[claim(after[1], "a")], place, Now::default())
            .is_err()
    );
    // A request that began with the limits before is not refused by one that was removed.
    let two = ledger.admit(&[claim(ids[1], "a")], place, Now::default());
    ledger.end(two.unwrap(), Used::default(), Now::default());
    ledger.end(one, Used::default(), Now::default());
    assert!(
        ledger
            .admit(&[claim(after[1], "a")], place, Now::default())
            .is_ok()
    );
}

/// Returns the requests that are left of a rate of 100 a minute after 90 requests, once a reload has
/// changed the rate, and the microseconds until the next one is admitted.
fn left_after_a_reload(changed: Caps) -> (u64, Option<u64>) {
    let (mut ledger, ids) = ledger(&[("rate", requests(100))]);
    let claims = [claim(ids[0], "a")];
    for _ in 0..90 {
        let admission = ledger.admit(&claims, place, at_second(0));
        ledger.end(admission.unwrap(), Used::default(), at_second(0));
    }
    ledger.set_limits([("rate".into(), changed.into())]);
    let mut left = 0;
    loop {
        match ledger.admit(&claims, place, at_second(0)) {
            Ok(admission) => ledger.end(admission, Used::default(), at_second(0)),
            Err(refused) => return (left, refused.retry_after),
        };
        left += 1;
    }
}

#[test]
fn rate_that_a_reload_changes_keeps_its_use() {
    assert_eq!(left_after_a_reload(requests(100)), (10, Some(600_000)));
    assert_eq!(left_after_a_reload(requests(1_000)), (910, Some(60_000)));
    assert_eq!(left_after_a_reload(requests(50)), (0, Some(1_200_000)));
}

/// Requests and tokens from the time before were within no rate, and are no debt of a new one.
#[test]
fn rate_that_a_reload_adds_begins_full() {
    let (mut ledger, ids) = ledger(&[("limit", Caps::concurrency(1))]);
    let claims = [claim(ids[0], "a")];
    let used = Used {
        tokens: 5_000,
        ..Used::default()
    };
    for _ in 0..500 {
        let admission = ledger.admit(&claims, tokens(5_000), at_second(0));
        ledger.end(admission.unwrap(), used, at_second(0));
    }
    let with_rates = Caps {
        requests_per_minute: Some(10),
        tokens_per_minute: Some(9_000),
        ..Caps::concurrency(1)
    };
    ledger.set_limits([("limit".into(), with_rates.clone().into())]);
    let admission = ledger.admit(&claims, place, at_second(1)).unwrap();
    let rest = admission.remaining();
    let level = |limit, remaining, reset| {
        Some(Level {
            limit,
            remaining,
            reset,
        })
    };
    assert_eq!(rest.requests, level(10, 9, 6_000_000));
    assert_eq!(rest.tokens, level(9_000, 9_000, 0));
    ledger.end(admission, used, at_second(1));
    // 5,000 of 9,000 tokens were used. They are forgotten with the rate.
    ledger.set_limits([("limit".into(), Caps::concurrency(1).into())]);
    let without = ledger.admit(&claims, tokens(5_000), at_second(1)).unwrap();
    assert_eq!(without.remaining(), Remaining::default());
    ledger.end(without, used, at_second(1));
    ledger.set_limits([("limit".into(), with_rates.into())]);
    let admission = ledger.admit(&claims, place, at_second(1)).unwrap();
    assert_eq!(admission.remaining().tokens, level(9_000, 9_000, 0));
    ledger.end(admission, Used::default(), at_second(1));
}

#[test]
fn budget_that_returns_is_another_one() {
    let names = ["spent", "rate"].map(Arc::<str>::from);
    let budget: Terms = budget("1", Window::Month).into();
    let rate: Terms = requests(9).into();
    let terms = [budget, rate];
    let mut ledger = Ledger::new();
    let set = |ledger: &mut Ledger, places: &[usize]| {
        let limits = places
            .iter()
            .map(|place| (Arc::clone(&names[*place]), terms[*place].clone()));
        ledger.set_limits(limits.collect::<Vec<_>>())
    };
    let first = set(&mut ledger, &[0, 1]);
    ledger.add_spent(claim(first[0], "a"), "1".parse().unwrap(), at_second(0));
    let in_progress = ledger.admit(&[claim(first[1], "a")], place, at_second(0));
    assert_eq!(set(&mut ledger, &[0, 1]), first, "nothing was removed");
    set(&mut ledger, &[]);
    let after = set(&mut ledger, &[0, 1]);
    assert_ne!(after[0], first[0], "what was spent has to be added again");
    assert_eq!(after[1], first[1]);
    let admission = ledger.admit(&[claim(after[0], "a")], money("1"), at_second(0));
    ledger.end(admission.unwrap(), Used::default(), at_second(0));
    ledger.end(in_progress.unwrap(), Used::default(), at_second(0));
}

/// Keys that were deleted leave no limits behind: each of them may have had limits of its own.
#[test]
fn removed_limits_take_no_memory_once_nothing_is_in_use() {
    let (mut ledger, first) = ledger(&[("of key 0", requests(1))]);
    let admission = ledger.admit(&[claim(first[0], "a")], place, at_second(0));
    let admission = admission.unwrap();
    let mut last = first[0];
    for number in 1..1_000 {
        let name = format!("of key {number}");
        last = ledger.set_limits([(Arc::from(name), requests(1).into())])[0];
        assert_ne!(last, first[0]);
        assert_eq!(ledger.limits(), 2, "the first is in use");
    }
    ledger.end(admission, Used::default(), at_second(1));
    ledger.drop_idle(at_second(1_000));
    let newer = ledger.set_limits([(Arc::from("newer"), requests(1).into())])[0];
    assert_eq!(ledger.limits(), 1);
    // Requests that still claim a removed limit are not counted by the limit in its place.
    for removed in [first[0], last] {
        for _ in 0..3 {
            let admission = ledger.admit(&[claim(removed, "a")], place, at_second(1_000));
            ledger.end(admission.unwrap(), Used::default(), at_second(1_000));
        }
    }
    assert!(ledger.is_empty());
    let admission = ledger.admit(&[claim(newer, "a")], place, at_second(1_000));
    ledger.end(admission.unwrap(), Used::default(), at_second(1_000));
    let refused = ledger.admit(&[claim(newer, "a")], place, at_second(1_000));
    assert!(refused.is_err());
}

/// Keys that come and go do not fill the memory: admissions drop idle ones.
#[test]
fn scopes_that_are_idle_are_dropped_little_by_little() {
    let (mut ledger, ids) = ledger(&[("key", Caps::concurrency(1))]);
    for key in 0..10_000 {
        let name = key.to_string();
        let admitted = ledger.admit(&[claim(ids[0], &name)], place, Now::default());
        ledger.end(admitted.unwrap(), Used::default(), Now::default());
    }
    assert!(ledger.len() <= 200, "{}", ledger.len());
}

/// A scope with spending is retained for one window more, so that its budget does not start over.
#[test]
fn scope_with_spending_is_kept_for_one_window_more() {
    let (mut ledger, ids) = ledger(&[("budget", budget("1.00", Window::Hour))]);
    let spent = "0.10".parse().unwrap();
    ledger.add_spent(claim(ids[0], "a"), spent, Now::default());
    ledger.drop_idle(at_second(3_599));
    assert_eq!(ledger.len(), 1);
    // The clock may have been set forward.
    ledger.drop_idle(at_second(3_600));
    assert_eq!(ledger.len(), 1);
    ledger.drop_idle(at_second(7_200));
    assert_eq!(ledger.len(), 0);
}

/// A clock that is 40 days ahead for a moment changes neither the spending nor the end of the
/// window.
#[test]
fn clock_that_is_set_forward_and_back_keeps_what_was_spent() {
    const DAY: u64 = 24 * 60 * 60;
    let (mut ledger, ids) = ledger(&[("budget", budget("1.00", Window::Month))]);
    let claims = [claim(ids[0], "a")];
    let spent = |amount: &str| Used {
        money: amount.parse().unwrap(),
        ..Used::default()
    };
    let one = ledger
        .admit(&claims, money("0.60"), at_second(DAY))
        .unwrap();
    let two = ledger
        .admit(&claims, money("0.40"), at_second(DAY))
        .unwrap();
    ledger.end(one, spent("0.60"), at_second(DAY));
    let ahead = ledger.admit(&claims, money("1.00"), at_second(41 * DAY));
    ledger.drop_idle(at_second(41 * DAY));
    ledger.end(two, spent("0.30"), at_second(41 * DAY));
    ledger.end(ahead.unwrap(), spent("0.20"), at_second(2 * DAY));
    let status = ledger.status(at_second(2 * DAY));
    assert_eq!(status[0].spent, Some("0.90".parse().unwrap()));
    assert_eq!(status[0].reserved, Money::ZERO);
    let last = ledger.admit(&claims, money("0.20"), at_second(3 * DAY));
    assert!(last.is_ok(), "nothing else is reserved");
    let refused = ledger.admit(&claims, money("0.20"), at_second(3 * DAY));
    assert_eq!(refused.unwrap_err().dimension, Dimension::Budget);
    // The next month includes the spending from the time when the clock was ahead.
    let status = ledger.status(at_second(41 * DAY));
    assert_eq!(status[0].spent, Some("0.20".parse().unwrap()));
    assert!(
        ledger
            .admit(&claims, money("0.80"), at_second(31 * DAY))
            .is_ok()
    );
}

#[test]
fn scope_in_debt_is_kept_until_the_debt_is_paid() {
    let (mut ledger, ids) = ledger(&[("tokens", tokens_per_minute(60))]);
    let admitted = ledger.admit(&[claim(ids[0], "a")], place, Now::default());
    let used = Used {
        tokens: 120,
        ..Used::default()
    };
    ledger.end(admitted.unwrap(), used, Now::default());
    ledger.drop_idle(at_second(119));
    assert_eq!(ledger.len(), 1);
    ledger.drop_idle(at_second(120));
    assert_eq!(ledger.len(), 0);
}

#[test]
fn the_demand_is_given_the_length_of_answers() {
    let (mut ledger, ids) = ledger(&[("tokens", tokens_per_minute(100_000))]);
    let claims = [claim(ids[0], "a")];
    let mut seen = Vec::new();
    for _ in 0..2 {
        let admitted = ledger.admit(
            &claims,
            |typical| {
                seen.push(typical);
                Demand::default()
            },
            Now::default(),
        );
        let used = Used {
            tokens: 500,
            answer_tokens: 400,
            money: Money::ZERO,
        };
        ledger.end(admitted.unwrap(), used, Now::default());
    }
    assert_eq!(seen, [None, Some(400)]);
}

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Admit {
        key: u8,
        tokens: u64,
        nanos: i64,
    },
    End {
        which: usize,
        tokens: u64,
        nanos: i64,
    },
    Wait {
        microseconds: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3_u8, 0..50_u64, 0..40_i64).prop_map(|(key, tokens, nanos)| Step::Admit {
            key,
            tokens,
            nanos
        }),
        (any::<usize>(), 0..80_u64, 0..60_i64).prop_map(|(which, tokens, nanos)| Step::End {
            which,
            tokens,
            nanos
        }),
        (0..30_000_000_u64).prop_map(|microseconds| Step::Wait { microseconds }),
    ];
    prop::collection::vec(step, 0..80)
}

/// The requests that the history has admitted, counted separately from the ledger.
#[derive(Default)]
struct Judge {
    /// The keys of the requests in progress, and their reservations.
    open: Vec<(u8, Demand)>,
    /// The times at which requests began, by key.
    began: Vec<(u8, u64)>,
}

proptest! {
    /// In any history: never more requests at once, nor begun in any span of time, than the limits
    /// allow; money is admitted only within the budget; and everything is released in the end.
    #[test]
    fn no_history_exceeds_a_limit(steps in steps()) {
        let caps = [
            ("all", Caps::concurrency(3)),
            ("each", Caps { concurrency: Some(2), ..requests(4) }),
            ("tokens", Caps { tokens_per_minute: Some(100), ..budget("0.000000100", Window::Month) }),
        ];
        let (mut ledger, ids) = ledger(&caps);
        let mut judge = Judge::default();
        let mut admissions = Vec::new();
        let (mut now, mut spent) = (Now { monotonic: 0, unix_ms: 1 }, 0);
        for step in steps {
            match step {
                Step::Wait { microseconds } => now.monotonic += microseconds,
                Step::Admit { key, tokens, nanos } => {
                    let name = key.to_string();
                    let claims = [claim(ids[0], ""), claim(ids[1], &name), claim(ids[2], "")];
                    let demand = Demand { tokens, money: Money::from_nanos(nanos) };
                    let Ok(admission) = ledger.admit(&claims, |_| demand, now) else { continue };
                    judge.open.push((key, demand));
                    judge.began.push((key, now.monotonic));
                    admissions.push(admission);
                    let reserved = judge.open.iter().map(|(_, open)| open.money.nanos());
                    let (reserved, costly) = reserved.fold((0, 0), |(sum, count), money| {
                        (sum + money, count + i64::from(money > 0))
                    });
                    // One request alone may take the rest, however little that is.
                    let is_within = spent + reserved <= 100 || spent < 100 && costly == 1;
                    prop_assert!(is_within, "{spent} spent, {reserved} reserved");
                    prop_assert!(judge.open.len() <= 3);
                    prop_assert!(judge.open.iter().filter(|(open, _)| *open == key).count() <= 2);
                    let of_key = judge.began.iter().filter(|(of, _)| *of == key);
                    let times: Vec<u64> = of_key.map(|(_, at)| *at).collect();
                    for (first, from) in times.iter().enumerate() {
                        // At most 4 at once, and one more for each 15 s.
                        let most = 4 + (now.monotonic - from) / 15_000_000;
                        prop_assert!((times.len() - first) as u64 <= most, "{times:?}");
                    }
                }
                Step::End { which, tokens, nanos } if !admissions.is_empty() => {
                    let index = which % admissions.len();
                    judge.open.swap_remove(index);
                    spent += nanos;
                    let money = Money::from_nanos(nanos);
                    let used = Used { tokens, answer_tokens: tokens / 2, money };
                    ledger.end(admissions.swap_remove(index), used, now);
                }
                Step::End { .. } => {}
            }
            prop_assert_eq!(ledger.in_use(claim(ids[0], "")), judge.open.len() as u64);
        }
        for admission in admissions {
            ledger.end(admission, Used::default(), now);
        }
        // After an hour the rates are full, and a new month has a new budget. Spending is retained
        // for one month more.
        for days in [40, 70] {
            now = Now { monotonic: now.monotonic + 3_600_000_000, unix_ms: days * 86_400_000 };
            ledger.drop_idle(now);
        }
        prop_assert!(ledger.is_empty(), "{ledger:?}");
    }
}

/// A request that waits for a store in quarantine, which still grants nothing after that, is
/// refused because it is not known whether there is room.
#[test]
fn refusal_during_quarantine_is_marked_degraded() {
    let lease = Duration::from_secs(10);
    let terms = Terms {
        caps: Caps::concurrency(2),
        lending: Some(LeaseSettings {
            mode: FailMode::Closed,
            lease,
            lost_lease: LostLease::Finish,
        }),
    };
    let mut ledger = Ledger::new();
    let ids = ledger.set_limits([("leased".into(), terms)]);
    let refused = |ledger: &mut Ledger, at| {
        let refused = ledger.admit(&[claim(ids[0], "a")], place, at).unwrap_err();
        (refused.may_wait, refused.is_degraded)
    };
    let answer = |ledger: &mut Ledger, at| {
        let asked = ledger.poll(at, false);
        let grant = LeaseGrant {
            seq: asked[0].request.seq,
            held: 0,
            available: 0,
            level: 0,
            replicas: 1,
            waiting_replicas: 0,
            quarantined: true,
            duration: lease,
        };
        ledger.on_grant(&asked[0], Some(&grant), at);
    };
    assert_eq!(refused(&mut ledger, at_second(0)), (true, false));
    answer(&mut ledger, at_second(0));
    assert_eq!(refused(&mut ledger, at_second(0)), (false, true));
    // More than a fiftieth of a lease later, a request may wait again, and is refused in the same
    // way if the store still grants nothing.
    assert_eq!(refused(&mut ledger, at_second(1)), (true, true));
    answer(&mut ledger, at_second(1));
    assert_eq!(refused(&mut ledger, at_second(1)), (false, true));
}
