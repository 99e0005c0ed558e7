//! Random schedules of replicas and a store, with faults.
//!
//! `SLUICEGATE_SIM_SCHEDULES` sets how many are run, and `SLUICEGATE_SIM_SEED` the first seed.

use quota::LeasedLimitSpec;

use crate::random::Random;
use crate::world::{Counts, LEASE, MILLI, Plan, run};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}: expected a number"))
    })
}

fn schedules(kind: u64, plan: impl Fn(&mut Random) -> Plan) {
    let count = number("SLUICEGATE_SIM_SCHEDULES", 20_000) / 5;
    let first = number("SLUICEGATE_SIM_SEED", kind << 40);
    let mut sum = Counts::default();
    let mut waits = false;
    for seed in first..first + count {
        let plan = plan(&mut Random::new(!seed));
        waits |= !plan.spec.is_rate();
        let mut world = run(seed, plan);
        let counts = world.counts;
        sum.steps += counts.steps;
        sum.taken += counts.taken;
        sum.short += counts.short;
        sum.lost += counts.lost;
        sum.quarantined += counts.quarantined;
        sum.losses += counts.losses;
        sum.stalls += counts.stalls;
        sum.late += counts.late;
        sum.noticed += counts.noticed;
        let (got, level) = world.ask_for_all();
        let capacity = plan.spec.capacity();
        match plan.spec {
            LeasedLimitSpec::Permits { .. } | LeasedLimitSpec::Bucket { .. } => {
                assert_eq!(got, capacity, "not all came back: seed {seed}, {plan:?}");
            }
            LeasedLimitSpec::Budget { .. } => {
                assert_eq!(got, capacity.saturating_sub(level), "seed {seed}, {plan:?}");
                let spent = world.spent_within_reservations();
                assert!(level >= spent, "{level} of {spent}: seed {seed}, {plan:?}");
            }
        }
    }
    eprintln!("{count} schedules: {sum:?}");
    // The schedules have covered the cases that they are meant for.
    if count >= 100 {
        assert!(
            sum.taken > 10 * count && sum.short > count && sum.lost > count / 20,
            "{sum:?}"
        );
        assert!(
            sum.losses > count / 2 && sum.stalls > count / 4 && sum.late > 0,
            "{sum:?}"
        );
        // Rates are granted at once after a loss, without a quarantine.
        assert_eq!(sum.quarantined > count, waits, "{sum:?}");
        assert!(sum.noticed > count, "{sum:?}");
    }
}

fn plan(random: &mut Random, spec: LeasedLimitSpec, end_with_lease: bool) -> Plan {
    Plan {
        spec,
        replicas: random.within(2, 5) as usize,
        end_with_lease,
        longest: 8_000 * MILLI,
        faults: true,
        pressure: random.within(5, 70),
        clock_is_set: random.chance(50),
        busy: random.within(2 * LEASE, 8 * LEASE),
    }
}

/// Requests that end before their lease is over never exceed the cap, however long they would take.
#[test]
fn permits_never_exceed_their_cap() {
    schedules(1, |random| {
        let cap = random.within(1, 12);
        plan(random, LeasedLimitSpec::Permits { cap }, true)
    });
}

/// Requests that take less than half of a lease never exceed the cap, although no request is ended.
#[test]
fn short_requests_never_exceed_their_cap() {
    schedules(5, |random| {
        let cap = random.within(1, 12);
        let mut plan = plan(random, LeasedLimitSpec::Permits { cap }, false);
        plan.longest = LEASE / 2;
        plan
    });
}

#[test]
fn permits_that_outlive_their_lease_are_not_lent_twice() {
    schedules(2, |random| {
        let cap = random.within(1, 12);
        plan(random, LeasedLimitSpec::Permits { cap }, false)
    });
}

#[test]
fn tokens_never_exceed_their_bucket() {
    schedules(3, |random| {
        let spec = LeasedLimitSpec::Bucket {
            per_minute: random.within(1, 3_000_000_000),
            capacity: random.within(1_000_000, 1_000_000_000),
        };
        plan(random, spec, false)
    });
}

#[test]
fn money_never_exceeds_its_budget() {
    schedules(4, |random| {
        let spec = LeasedLimitSpec::Budget {
            amount: random.within(10, 1_000_000),
            window: 7,
            accounted: 0,
        };
        plan(random, spec, false)
    });
}

/// Without faults, nothing is forfeited: the store counts exactly the amount that was spent.
#[test]
fn store_level_equals_spending_without_faults() {
    let mut spent = 0;
    for seed in 0..300 {
        let mut random = Random::new(!seed);
        let spec = LeasedLimitSpec::Budget {
            amount: random.within(1_000_000, 1_000_000_000),
            window: 7,
            accounted: 0,
        };
        let mut plan = plan(&mut random, spec, false);
        plan.faults = false;
        let mut world = run(seed, plan);
        let (_, level) = world.ask_for_all();
        assert_eq!(level, world.spent(), "seed {seed}");
        spent += level;
    }
    assert!(spent > 0);
}
