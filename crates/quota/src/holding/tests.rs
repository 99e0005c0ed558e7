//! Tests of the holding.

use super::*;

const LEASE: Duration = Duration::from_secs(10);

fn at(millis: u64) -> Duration {
    Duration::from_secs(1_000) + Duration::from_millis(millis)
}

fn holding(loan: Loan, mode: FailMode) -> Holding {
    Holding::new("q0/team-a".into(), loan, mode, LEASE)
}

fn permits(cap: u64) -> Holding {
    holding(Loan::Permits { cap }, FailMode::Closed)
}

fn bucket() -> Holding {
    let loan = Loan::Bucket {
        per_minute: 6_000,
        capacity: 1_000,
    };
    holding(loan, FailMode::Closed)
}

fn reply(seq: u64, held: u64, free: u64) -> Reply {
    Reply {
        seq,
        held,
        free,
        level: 0,
        replicas: 1,
        hungry: 0,
        quarantined: false,
        lease: LEASE,
    }
}

/// Lets the holding be lent `held` at `millis`.
fn lend(holding: &mut Holding, millis: u64, held: u64, free: u64) -> Ask {
    let ask = holding.poll(at(millis)).unwrap();
    holding.granted(&reply(ask.seq, held, free), at(millis));
    ask
}

#[test]
fn a_state_is_small() {
    assert!(size_of::<Holding>() <= 208, "{}", size_of::<Holding>());
}

#[test]
fn waiting_requests_are_combined_into_one_grant_request() {
    let mut holding = permits(10);
    assert_eq!(holding.poll(at(0)), None);
    assert!(holding.take(1, at(0)).is_none() && holding.take(2, at(0)).is_none());
    let ask = holding.poll(at(1)).unwrap();
    assert_eq!((ask.seq, ask.acked, ask.claim), (1, 0, 0));
    assert_eq!((ask.more, ask.need, ask.least), (3, 3, 1));
    assert_eq!(holding.poll(at(1)), None, "one ask at a time");
    holding.granted(&reply(1, 3, 7), at(2));
    assert_eq!((holding.held(), holding.available()), (3, 3));
    let taken = holding.take(2, at(2)).unwrap();
    assert_eq!((holding.in_use(), holding.available()), (2, 1));
    assert!(holding.take(2, at(2)).is_none());
    holding.give_back(taken);
    assert!(holding.take(3, at(2)).is_some());
}

#[test]
fn a_lease_counts_from_before_its_ask_and_ends_a_fiftieth_early() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    let ask = holding.poll(at(0)).unwrap();
    // The reply is on its way for 90 ms.
    holding.granted(&reply(ask.seq, 5, 5), at(90));
    assert!(holding.take(1, at(4_799)).is_some());
    assert!(holding.is_leased(at(9_799)) && !holding.is_leased(at(9_800)));
    assert_eq!(holding.next(), Some(at(3_333) + Duration::from_micros(333)));
    assert!(!holding.lost(at(9_799)));
    assert!(holding.take(1, at(9_800)).is_none());
    assert!(holding.lost(at(9_800)) && !holding.lost(at(9_800)));
    assert_eq!((holding.held(), holding.in_use()), (0, 1));
}

/// Requests that take less than half of a lease have ended when it is over.
#[test]
fn permits_are_given_out_in_the_first_half_of_a_lease() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 5, 5);
    let _running = holding.take(3, at(1)).unwrap();
    let renewal = holding.poll(at(3_400)).unwrap();
    let taken = holding.take(1, at(4_799)).unwrap();
    holding.give_back(taken);
    assert!(holding.take(1, at(4_800)).is_none());
    assert_eq!(holding.available(), 1);
    holding.failed(renewal.seq, at(4_801));
    assert!(!holding.may_lend(at(4_801)));
    let ask = lend(&mut holding, 5_200, 5, 5);
    // The store need not lend more for the request that was refused.
    assert_eq!((ask.claim, ask.need), (4, 0));
    assert!(holding.take(1, at(5_201)).is_some());
}

/// A process that was stopped asks before it admits.
#[test]
fn renewal_is_due_for_a_request_in_the_second_half() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 5, 5);
    assert!(holding.take(1, at(7_000)).is_none());
    assert!(holding.may_lend(at(7_000)));
    lend(&mut holding, 7_000, 5, 5);
    assert!(holding.take(1, at(7_001)).is_some());
}

#[test]
fn rates_are_given_out_until_the_lease_is_over() {
    let mut holding = bucket();
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 5, 5);
    assert!(holding.take(1, at(9_799)).is_some());
    assert!(holding.take(1, at(9_800)).is_none());
}

/// Its own part is no loan.
#[test]
fn floor_is_given_out_in_the_second_half_too() {
    let mode = FailMode::Floor {
        percent: 20,
        replicas: 5,
    };
    let mut holding = holding(Loan::Permits { cap: 50 }, mode);
    let own = holding.take(2, at(0)).unwrap();
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 5, 35);
    holding.give_back(own);
    let _two = holding.take(2, at(4_800)).unwrap();
    assert!(holding.take(1, at(4_800)).is_none());
}

/// The replica slept, and finds the reply when it wakes.
#[test]
fn a_reply_does_not_revive_a_lease_that_is_over() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 5, 5);
    let _running = holding.take(5, at(1)).unwrap();
    let ask = holding.poll(at(9_000)).unwrap();
    assert_eq!((ask.claim, ask.acked, ask.incarnation), (5, 1, 0));
    holding.granted(&reply(ask.seq, 5, 5), at(9_900));
    assert_eq!(holding.held(), 0);
    let ask = holding.poll(at(9_901)).unwrap();
    assert_eq!(
        (ask.seq, ask.claim, ask.acked, ask.incarnation),
        (3, 0, 0, 1)
    );
    // The request that still runs needs its permit again.
    assert_eq!(ask.more, 7);
}

#[test]
fn a_reply_that_is_older_than_its_lease_is_as_good_as_none() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    let ask = holding.poll(at(0)).unwrap();
    holding.granted(&reply(ask.seq, 5, 5), at(9_800));
    assert!(holding.held() == 0 && holding.is_degraded());
}

#[test]
fn replies_to_other_asks_are_ignored() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    let first = holding.poll(at(0)).unwrap();
    holding.failed(first.seq, at(100));
    holding.granted(&reply(first.seq, 5, 5), at(101));
    assert_eq!(holding.held(), 0);
    assert!(holding.take(1, at(500)).is_none());
    let second = holding.poll(at(500)).unwrap();
    holding.granted(&reply(first.seq, 5, 5), at(501));
    holding.failed(first.seq, at(501));
    assert_eq!(holding.held(), 0);
    holding.granted(&reply(second.seq, 2, 5), at(502));
    assert_eq!(holding.held(), 2);
}

#[test]
fn unreachable_store_refuses_immediately_and_retries_later() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none() && !holding.is_degraded());
    let ask = holding.poll(at(0)).unwrap();
    holding.failed(ask.seq, at(100));
    assert!(holding.take(1, at(100)).is_none() && holding.is_degraded());
    // A tenth of a renewal, which is 333 ms.
    assert_eq!(holding.poll(at(433)), None);
    lend(&mut holding, 434, 1, 9);
    assert!(holding.take(1, at(434)).is_some() && !holding.is_degraded());
}

#[test]
fn a_renewal_keeps_the_peak_and_a_quarter() {
    let mut holding = permits(100);
    assert!(holding.take(8, at(0)).is_none());
    lend(&mut holding, 0, 40, 60);
    let taken = holding.take(8, at(1)).unwrap();
    holding.settle(taken, 0);
    assert_eq!(holding.poll(at(3_333)), None);
    let ask = lend(&mut holding, 3_334, 11, 89);
    // 8 + 2 + 1
    assert_eq!((ask.claim, ask.more, ask.need), (11, 0, 0));
    // Nothing was used since.
    let ask = lend(&mut holding, 7_000, 0, 100);
    assert_eq!((ask.claim, ask.more), (0, 0));
    assert_eq!(holding.poll(at(10_334)), None, "dormant");
    assert_eq!(holding.poll(at(100_000)), None, "dormant");
    assert_eq!(holding.next(), None);
}

#[test]
fn in_tight_times_idle_permits_go_back_at_once() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 4, 1);
    let taken = holding.take(2, at(1)).unwrap();
    let ask = holding.poll(at(20)).unwrap();
    assert_eq!((ask.claim, ask.more), (2, 0));
    // The amount given back cannot be taken, although the store has not replied.
    assert!(holding.take(1, at(20)).is_none());
    holding.granted(&reply(ask.seq, 2, 1), at(21));
    assert_eq!(holding.poll(at(22)), None);
    holding.settle(taken, 0);
    assert_eq!(holding.poll(at(22)).unwrap().claim, 0);
}

/// Requests wait in tasks of their own, and take some time to learn of the reply.
#[test]
fn grant_for_waiters_is_retained_until_they_retry() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 1, 0);
    assert!(!holding.is_due() && holding.is_waiting());
    assert_eq!(holding.poll(at(19)), None);
    let taken = holding.take(1, at(19)).unwrap();
    assert!(!holding.is_due() && !holding.is_waiting());
    holding.settle(taken, 0);
    assert!(holding.is_due() && !holding.is_waiting());
    assert_eq!(holding.poll(at(19)).unwrap().claim, 0);

    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 1, 0);
    assert_eq!(holding.poll(at(20)).unwrap().claim, 0, "nobody came");
}

#[test]
fn tokens_are_spent_and_settled() {
    let mut holding = bucket();
    assert!(holding.take(100, at(0)).is_none());
    lend(&mut holding, 0, 300, 700);
    let taken = holding.take(100, at(1)).unwrap();
    let other = holding.take(200, at(1)).unwrap();
    assert_eq!(holding.held(), 0);
    holding.settle(taken, 40);
    assert_eq!((holding.held(), holding.in_use()), (60, 200));
    holding.settle(other, 290);
    // Debt: 30 above the lent amount.
    assert_eq!((holding.held(), holding.in_use()), (0, 0));
    assert!(holding.take(1, at(2)).is_none());
    let ask = holding.poll(at(2)).unwrap();
    assert_eq!((ask.claim, ask.used, ask.need), (0, 330, 1));
}

#[test]
fn overspending_of_a_lost_lease_is_still_reported() {
    let mut holding = bucket();
    assert!(holding.take(100, at(0)).is_none());
    lend(&mut holding, 0, 100, 700);
    let first = holding.take(60, at(1)).unwrap();
    let second = holding.take(40, at(1)).unwrap();
    holding.settle(first, 90);
    assert!(holding.lost(at(9_800)));
    // The store has counted the 100 that it had lent. 30 are missing.
    let ask = lend(&mut holding, 9_801, 50, 700);
    assert_eq!((ask.used, ask.incarnation, ask.acked), (30, 1, 0));
    // 35 of the lost lease were not spent, but the store has counted them.
    holding.settle(second, 5);
    assert_eq!(holding.held(), 50);
    let third = holding.take(1, at(9_802)).unwrap();
    holding.settle(third, 4);
    assert_eq!(holding.held(), 46);
}

/// A store that has lost its data counts this again.
#[test]
fn spending_since_the_last_reply_is_reported_apart() {
    let mut holding = bucket();
    assert!(holding.take(60, at(0)).is_none());
    lend(&mut holding, 0, 100, 700);
    let _first = holding.take(60, at(1)).unwrap();
    let ask = lend(&mut holding, 3_400, 50, 700);
    assert_eq!((ask.used, ask.unacked), (60, 60));
    let _second = holding.take(30, at(3_401)).unwrap();
    for (millis, fails) in [(7_000, 7_100), (7_500, 7_600)] {
        let ask = holding.poll(at(millis)).unwrap();
        assert_eq!((ask.used, ask.unacked), (90, 30), "{millis}");
        holding.failed(ask.seq, at(fails));
    }
}

#[test]
fn refund_from_an_earlier_era_is_dropped() {
    let mut holding = bucket();
    assert!(holding.take(10, at(0)).is_none());
    lend(&mut holding, 0, 100, 700);
    let first = holding.take(10, at(1)).unwrap();
    let second = holding.take(10, at(1)).unwrap();
    let ask = holding.poll(at(3_400)).unwrap();
    let recovering = Reply {
        quarantined: true,
        ..reply(ask.seq, ask.claim, 0)
    };
    holding.granted(&recovering, at(3_400));
    let held = holding.held();
    holding.settle(first, 0);
    lend(&mut holding, 7_000, held, 700);
    holding.settle(second, 0);
    assert_eq!(holding.held(), held);
    let third = holding.take(1, at(7_001)).unwrap();
    holding.settle(third, 0);
    assert_eq!(holding.held(), held);
}

/// The store may count all of it as spent when it recovers.
#[test]
fn refund_during_a_quarantine_is_dropped() {
    let mut holding = bucket();
    assert!(holding.take(10, at(0)).is_none());
    lend(&mut holding, 0, 100, 700);
    let ask = holding.poll(at(3_400)).unwrap();
    let recovering = Reply {
        quarantined: true,
        ..reply(ask.seq, 50, 0)
    };
    holding.granted(&recovering, at(3_400));
    let taken = holding.take(10, at(3_401)).unwrap();
    holding.settle(taken, 4);
    assert_eq!(holding.held(), 40);
}

#[test]
fn a_floor_is_never_lent_and_always_there() {
    let mode = FailMode::Floor {
        percent: 20,
        replicas: 4,
    };
    // A fifth of 64 is 12, and 3 for each replica.
    let mut holding = holding(Loan::Permits { cap: 64 }, mode);
    assert_eq!(holding.available(), 3);
    let _three = holding.take(3, at(0)).unwrap();
    assert_eq!(holding.poll(at(0)), None, "the store need not know of them");
    assert!(holding.take(1, at(0)).is_none());
    let ask = lend(&mut holding, 0, 1, 51);
    assert_eq!((ask.loan, ask.more), (Loan::Permits { cap: 52 }, 1));
    let _fourth = holding.take(1, at(0)).unwrap();
    assert!(holding.take(1, at(0)).is_none());
    assert!(holding.lost(at(9_800)));
    assert_eq!(holding.available(), 0);
}

#[test]
fn open_admits_everything_once_the_store_is_gone_and_counts_it() {
    let mut holding = holding(
        Loan::Bucket {
            per_minute: 6_000,
            capacity: 1_000,
        },
        FailMode::Open,
    );
    assert!(holding.take(10, at(0)).is_none(), "the store may answer");
    let ask = holding.poll(at(0)).unwrap();
    holding.failed(ask.seq, at(100));
    assert!(holding.take(5_000, at(100)).is_some());
    let ask = holding.poll(at(500)).unwrap();
    assert_eq!((ask.used, ask.claim), (5_000, 0));
    holding.granted(&reply(ask.seq, 0, 0), at(501));
    assert!(holding.take(1, at(501)).is_none());
}

#[test]
fn open_limit_keeps_to_its_lease_until_it_is_over() {
    let mut holding = holding(Loan::Permits { cap: 10 }, FailMode::Open);
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 2, 5);
    let _two = holding.take(2, at(1)).unwrap();
    let ask = holding.poll(at(3_400)).unwrap();
    holding.failed(ask.seq, at(3_500));
    assert!(holding.take(1, at(9_799)).is_none());
    assert!(holding.take(1, at(9_800)).is_some());
}

#[test]
fn budget_reports_its_accounted_spending() {
    let loan = Loan::Budget {
        amount: 500,
        window: 7,
        accounted: 0,
    };
    let mut holding = holding(loan, FailMode::Closed);
    holding.set_accounted(123);
    assert!(holding.take(1, at(0)).is_none());
    let ask = holding.poll(at(0)).unwrap();
    assert_eq!(ask.key(), "q0/team-a@7");
    let Loan::Budget { accounted, .. } = ask.loan else {
        panic!("{ask:?}");
    };
    assert_eq!(accounted, 123);
}

/// A holding can be dropped once nothing is in use, and not while a request waits for it.
#[test]
fn a_holding_for_which_a_request_waits_is_not_dormant() {
    let loan = Loan::Permits { cap: 1 };
    let lease = Duration::from_secs(10);
    let mut holding = Holding::new("a".into(), loan, FailMode::Closed, lease);
    assert!(holding.is_dormant());
    assert_eq!(holding.take(1, Duration::ZERO), None);
    assert!(!holding.is_dormant());
}

/// Requests that wait are asked for once, and again a while later: not for each of them.
#[test]
fn a_store_that_has_nothing_is_asked_again_a_while_later() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 0, 0);
    assert!(holding.take(1, at(1)).is_none());
    assert_eq!(holding.poll(at(19)), None);
    assert_eq!(holding.poll(at(20)).unwrap().need, 1);
}

/// The store has noted that requests wait, and others give back at once as long as it has.
#[test]
fn unmet_need_is_withdrawn_at_the_next_renewal() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 0, 0);
    assert_eq!(holding.next(), Some(at(3_333) + Duration::from_micros(333)));
    assert_eq!(holding.poll(at(3_333)), None);
    assert_eq!(lend(&mut holding, 3_334, 0, 0).need, 0);
    assert_eq!(holding.poll(at(20_000)), None);
    assert!(holding.is_dormant());
}

#[test]
fn a_store_that_had_something_is_asked_again_at_once() {
    let mut holding = permits(10);
    assert!(holding.take(2, at(0)).is_none());
    lend(&mut holding, 0, 1, 0);
    assert!(holding.take(2, at(1)).is_none());
    assert_eq!(holding.poll(at(1)).unwrap().need, 2);
}

#[test]
fn a_notice_lets_a_replica_that_waits_ask_at_once() {
    let mut holding = permits(10);
    assert!(holding.take(1, at(0)).is_none());
    lend(&mut holding, 0, 0, 0);
    assert!(holding.take(1, at(1)).is_none());
    holding.noticed();
    assert_eq!(holding.poll(at(1)).unwrap().need, 1);
}

#[test]
fn notice_returns_idle_permits() {
    let mut holding = permits(10);
    assert!(holding.take(6, at(0)).is_none());
    lend(&mut holding, 0, 6, 4);
    let taken = holding.take(2, at(1)).unwrap();
    assert_eq!(holding.poll(at(1)), None);
    holding.noticed();
    let ask = holding.poll(at(20)).unwrap();
    assert_eq!((ask.claim, ask.more), (2, 0));
    holding.granted(&reply(ask.seq, 2, 8), at(21));
    // It goes on as before once there is enough.
    holding.give_back(taken);
    assert_eq!(holding.poll(at(22)), None);
}

#[test]
fn a_key_names_its_limit_in_any_window() {
    let holding = permits(10);
    assert!(holding.is_of("q0/team-a") && holding.is_of("q0/team-a@1793491200"));
    assert!(!holding.is_of("q0/team-ab") && !holding.is_of("q0/team") && !holding.is_of(""));
}

/// A store that may have forgotten its loans is asked again, so that the end of this time is found,
/// but requests do not wait for each of these asks.
#[test]
fn quarantine_is_probed_once_per_interval() {
    let mut holding = permits(10);
    assert!(holding.may_lend(at(0)));
    assert!(holding.take(1, at(0)).is_none());
    let ask = holding.poll(at(0)).unwrap();
    let quarantined = Reply {
        quarantined: true,
        ..reply(ask.seq, 0, 0)
    };
    holding.granted(&quarantined, at(1));
    assert!(!holding.may_lend(at(199)));
    assert!(holding.may_lend(at(200)));
    assert!(holding.take(1, at(200)).is_none());
    let ask = holding.poll(at(200)).unwrap();
    holding.failed(ask.seq, at(300));
    assert!(!holding.may_lend(at(1_000)), "it does not answer");
}

/// Of requests that come one after another, only the first few wait for the store.
#[test]
fn bucket_tokens_are_borrowed_in_advance() {
    let mut holding = bucket();
    let mut asked_at = Vec::new();
    let mut waited_at = Vec::new();
    for millis in 0..10_000 {
        let mut taken = holding.take(1, at(millis));
        if taken.is_none() {
            waited_at.push(millis);
        }
        if let Some(ask) = holding.poll(at(millis)) {
            let held = ask.claim + ask.more;
            holding.granted(&reply(ask.seq, held, 500), at(millis));
            asked_at.push(millis);
            taken = taken.or_else(|| holding.take(1, at(millis)));
        }
        assert!(taken.is_some(), "{millis}");
    }
    assert!(waited_at.len() <= 3, "{waited_at:?}");
    assert!(waited_at.iter().all(|millis| *millis < 10), "{waited_at:?}");
    // 500 ms and a quarter are borrowed, and three quarters of that are spent until the next ask.
    let later = asked_at.iter().filter(|millis| **millis >= 1_000).count();
    assert!((18..=20).contains(&later), "{asked_at:?}");
}
