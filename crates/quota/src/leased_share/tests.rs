//! Tests of the leased share.

use super::*;

const LEASE: Duration = Duration::from_secs(10);

fn at(millis: u64) -> Duration {
    Duration::from_secs(1_000) + Duration::from_millis(millis)
}

fn share(spec: LeasedLimitSpec, mode: FailMode) -> LeasedShare {
    LeasedShare::new("q0/team-a".into(), spec, mode, LEASE)
}

fn permits(cap: u64) -> LeasedShare {
    share(LeasedLimitSpec::Permits { cap }, FailMode::Closed)
}

fn bucket() -> LeasedShare {
    let spec = LeasedLimitSpec::Bucket {
        per_minute: 6_000,
        capacity: 1_000,
    };
    share(spec, FailMode::Closed)
}

fn grant(seq: u64, held: u64, available: u64) -> LeaseGrant {
    LeaseGrant {
        seq,
        held,
        available,
        level: 0,
        replicas: 1,
        waiting_replicas: 0,
        quarantined: false,
        duration: LEASE,
    }
}

/// Polls the share, and grants it `held` at `millis`. Returns the lease request.
fn lend(share: &mut LeasedShare, millis: u64, held: u64, available: u64) -> LeaseRequest {
    let request = share.poll(at(millis)).unwrap();
    share.on_grant(&grant(request.seq, held, available), at(millis));
    request
}

#[test]
fn a_state_is_small() {
    assert!(
        size_of::<LeasedShare>() <= 208,
        "{}",
        size_of::<LeasedShare>()
    );
}

#[test]
fn waiting_requests_are_combined_into_one_grant_request() {
    let mut share = permits(10);
    assert_eq!(share.poll(at(0)), None);
    assert!(share.take(1, at(0)).is_none() && share.take(2, at(0)).is_none());
    let request = share.poll(at(1)).unwrap();
    assert_eq!((request.seq, request.acked, request.retained), (1, 0, 0));
    assert_eq!(
        (request.wanted, request.waiting, request.smallest_waiting),
        (3, 3, 1)
    );
    assert_eq!(share.poll(at(1)), None, "one request at a time");
    share.on_grant(&grant(1, 3, 7), at(2));
    assert_eq!((share.held(), share.available()), (3, 3));
    let taken = share.take(2, at(2)).unwrap();
    assert_eq!((share.in_use(), share.available()), (2, 1));
    assert!(share.take(2, at(2)).is_none());
    share.release(taken);
    assert!(share.take(3, at(2)).is_some());
}

#[test]
fn a_lease_counts_from_before_its_ask_and_ends_a_fiftieth_early() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    let request = share.poll(at(0)).unwrap();
    // The grant is on its way for 90 ms.
    share.on_grant(&grant(request.seq, 5, 5), at(90));
    assert!(share.take(1, at(4_799)).is_some());
    assert!(share.is_leased(at(9_799)) && !share.is_leased(at(9_800)));
    assert_eq!(
        share.next_deadline(),
        Some(at(3_333) + Duration::from_micros(333))
    );
    assert!(!share.take_loss(at(9_799)));
    assert!(share.take(1, at(9_800)).is_none());
    assert!(share.take_loss(at(9_800)) && !share.take_loss(at(9_800)));
    assert_eq!((share.held(), share.in_use()), (0, 1));
}

/// Requests that take less than half of a lease have ended when it is over.
#[test]
fn permits_are_given_out_in_the_first_half_of_a_lease() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 5, 5);
    let _running = share.take(3, at(1)).unwrap();
    let renewal = share.poll(at(3_400)).unwrap();
    let taken = share.take(1, at(4_799)).unwrap();
    share.release(taken);
    assert!(share.take(1, at(4_800)).is_none());
    assert_eq!(share.available(), 1);
    share.on_no_answer(renewal.seq, at(4_801));
    assert!(!share.may_wait_for_grant(at(4_801)));
    let request = lend(&mut share, 5_200, 5, 5);
    // The store need not grant more for the request that was refused.
    assert_eq!((request.retained, request.waiting), (4, 0));
    assert!(share.take(1, at(5_201)).is_some());
}

/// A process that was stopped renews its lease before it admits a request.
#[test]
fn renewal_is_due_for_a_request_in_the_second_half() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 5, 5);
    assert!(share.take(1, at(7_000)).is_none());
    assert!(share.may_wait_for_grant(at(7_000)));
    lend(&mut share, 7_000, 5, 5);
    assert!(share.take(1, at(7_001)).is_some());
}

#[test]
fn rates_are_given_out_until_the_lease_is_over() {
    let mut share = bucket();
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 5, 5);
    assert!(share.take(1, at(9_799)).is_some());
    assert!(share.take(1, at(9_800)).is_none());
}

/// The floor is not leased, so it does not depend on a lease.
#[test]
fn floor_is_given_out_in_the_second_half_too() {
    let mode = FailMode::Floor {
        percent: 20,
        replicas: 5,
    };
    let mut share = share(LeasedLimitSpec::Permits { cap: 50 }, mode);
    let floor_permits = share.take(2, at(0)).unwrap();
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 5, 35);
    share.release(floor_permits);
    let _two = share.take(2, at(4_800)).unwrap();
    assert!(share.take(1, at(4_800)).is_none());
}

/// A replica that slept past its lease finds the grant when it wakes.
#[test]
fn a_reply_does_not_revive_a_lease_that_is_over() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 5, 5);
    let _running = share.take(5, at(1)).unwrap();
    let request = share.poll(at(9_000)).unwrap();
    assert_eq!(
        (request.retained, request.acked, request.incarnation),
        (5, 1, 0)
    );
    share.on_grant(&grant(request.seq, 5, 5), at(9_900));
    assert_eq!(share.held(), 0);
    let request = share.poll(at(9_901)).unwrap();
    assert_eq!(
        (
            request.seq,
            request.retained,
            request.acked,
            request.incarnation
        ),
        (3, 0, 0, 1)
    );
    // The request that still runs needs its permit again.
    assert_eq!(request.wanted, 7);
}

#[test]
fn a_reply_that_is_older_than_its_lease_is_as_good_as_none() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    let request = share.poll(at(0)).unwrap();
    share.on_grant(&grant(request.seq, 5, 5), at(9_800));
    assert!(share.held() == 0 && share.is_degraded());
}

#[test]
fn replies_to_other_asks_are_ignored() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    let first = share.poll(at(0)).unwrap();
    share.on_no_answer(first.seq, at(100));
    share.on_grant(&grant(first.seq, 5, 5), at(101));
    assert_eq!(share.held(), 0);
    assert!(share.take(1, at(500)).is_none());
    let second = share.poll(at(500)).unwrap();
    share.on_grant(&grant(first.seq, 5, 5), at(501));
    share.on_no_answer(first.seq, at(501));
    assert_eq!(share.held(), 0);
    share.on_grant(&grant(second.seq, 2, 5), at(502));
    assert_eq!(share.held(), 2);
}

#[test]
fn unreachable_store_refuses_immediately_and_retries_later() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none() && !share.is_degraded());
    let request = share.poll(at(0)).unwrap();
    share.on_no_answer(request.seq, at(100));
    assert!(share.take(1, at(100)).is_none() && share.is_degraded());
    // A tenth of a renewal, which is 333 ms.
    assert_eq!(share.poll(at(433)), None);
    lend(&mut share, 434, 1, 9);
    assert!(share.take(1, at(434)).is_some() && !share.is_degraded());
}

#[test]
fn a_renewal_keeps_the_peak_and_a_quarter() {
    let mut share = permits(100);
    assert!(share.take(8, at(0)).is_none());
    lend(&mut share, 0, 40, 60);
    let taken = share.take(8, at(1)).unwrap();
    share.settle(taken, 0);
    assert_eq!(share.poll(at(3_333)), None);
    let request = lend(&mut share, 3_334, 11, 89);
    // 8 + 2 + 1
    assert_eq!(
        (request.retained, request.wanted, request.waiting),
        (11, 0, 0)
    );
    // Nothing was used since.
    let request = lend(&mut share, 7_000, 0, 100);
    assert_eq!((request.retained, request.wanted), (0, 0));
    assert_eq!(share.poll(at(10_334)), None, "dormant");
    assert_eq!(share.poll(at(100_000)), None, "dormant");
    assert_eq!(share.next_deadline(), None);
}

#[test]
fn in_tight_times_idle_permits_go_back_at_once() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 4, 1);
    let taken = share.take(2, at(1)).unwrap();
    let request = share.poll(at(20)).unwrap();
    assert_eq!((request.retained, request.wanted), (2, 0));
    // The returned amount cannot be taken, although the store has not answered.
    assert!(share.take(1, at(20)).is_none());
    share.on_grant(&grant(request.seq, 2, 1), at(21));
    assert_eq!(share.poll(at(22)), None);
    share.settle(taken, 0);
    assert_eq!(share.poll(at(22)).unwrap().retained, 0);
}

/// A grant for waiting requests is reserved for them: they wait in tasks of their own, and take
/// some time to learn of it.
#[test]
fn grant_for_waiters_is_retained_until_they_retry() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 1, 0);
    assert!(!share.should_exchange() && share.needs_retry());
    assert_eq!(share.poll(at(19)), None);
    let taken = share.take(1, at(19)).unwrap();
    assert!(!share.should_exchange() && !share.needs_retry());
    share.settle(taken, 0);
    assert!(share.should_exchange() && !share.needs_retry());
    assert_eq!(share.poll(at(19)).unwrap().retained, 0);

    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 1, 0);
    assert_eq!(share.poll(at(20)).unwrap().retained, 0, "nobody came");
}

#[test]
fn tokens_are_spent_and_settled() {
    let mut share = bucket();
    assert!(share.take(100, at(0)).is_none());
    lend(&mut share, 0, 300, 700);
    let taken = share.take(100, at(1)).unwrap();
    let other = share.take(200, at(1)).unwrap();
    assert_eq!(share.held(), 0);
    share.settle(taken, 40);
    assert_eq!((share.held(), share.in_use()), (60, 200));
    share.settle(other, 290);
    // Debt: 30 above the granted amount.
    assert_eq!((share.held(), share.in_use()), (0, 0));
    assert!(share.take(1, at(2)).is_none());
    let request = share.poll(at(2)).unwrap();
    assert_eq!(
        (request.retained, request.used, request.waiting),
        (0, 330, 1)
    );
}

#[test]
fn overspending_of_a_lost_lease_is_still_reported() {
    let mut share = bucket();
    assert!(share.take(100, at(0)).is_none());
    lend(&mut share, 0, 100, 700);
    let first = share.take(60, at(1)).unwrap();
    let second = share.take(40, at(1)).unwrap();
    share.settle(first, 90);
    assert!(share.take_loss(at(9_800)));
    // The store has counted the 100 that it had granted. 30 are missing.
    let request = lend(&mut share, 9_801, 50, 700);
    assert_eq!(
        (request.used, request.incarnation, request.acked),
        (30, 1, 0)
    );
    // 35 of the lost lease were not spent, but the store has counted them.
    share.settle(second, 5);
    assert_eq!(share.held(), 50);
    let third = share.take(1, at(9_802)).unwrap();
    share.settle(third, 4);
    assert_eq!(share.held(), 46);
}

/// A store that has lost its data counts only the spending since the last grant.
#[test]
fn spending_since_the_last_reply_is_reported_apart() {
    let mut share = bucket();
    assert!(share.take(60, at(0)).is_none());
    lend(&mut share, 0, 100, 700);
    let _first = share.take(60, at(1)).unwrap();
    let request = lend(&mut share, 3_400, 50, 700);
    assert_eq!((request.used, request.unacked), (60, 60));
    let _second = share.take(30, at(3_401)).unwrap();
    for (millis, fails) in [(7_000, 7_100), (7_500, 7_600)] {
        let request = share.poll(at(millis)).unwrap();
        assert_eq!((request.used, request.unacked), (90, 30), "{millis}");
        share.on_no_answer(request.seq, at(fails));
    }
}

#[test]
fn refund_from_an_earlier_era_is_dropped() {
    let mut share = bucket();
    assert!(share.take(10, at(0)).is_none());
    lend(&mut share, 0, 100, 700);
    let first = share.take(10, at(1)).unwrap();
    let second = share.take(10, at(1)).unwrap();
    let request = share.poll(at(3_400)).unwrap();
    let recovering = LeaseGrant {
        quarantined: true,
        ..grant(request.seq, request.retained, 0)
    };
    share.on_grant(&recovering, at(3_400));
    let held = share.held();
    share.settle(first, 0);
    lend(&mut share, 7_000, held, 700);
    share.settle(second, 0);
    assert_eq!(share.held(), held);
    let third = share.take(1, at(7_001)).unwrap();
    share.settle(third, 0);
    assert_eq!(share.held(), held);
}

/// The store may count the whole reservation as spent when its quarantine ends.
#[test]
fn refund_during_a_quarantine_is_dropped() {
    let mut share = bucket();
    assert!(share.take(10, at(0)).is_none());
    lend(&mut share, 0, 100, 700);
    let request = share.poll(at(3_400)).unwrap();
    let recovering = LeaseGrant {
        quarantined: true,
        ..grant(request.seq, 50, 0)
    };
    share.on_grant(&recovering, at(3_400));
    let taken = share.take(10, at(3_401)).unwrap();
    share.settle(taken, 4);
    assert_eq!(share.held(), 40);
}

#[test]
fn a_floor_is_never_lent_and_always_there() {
    let mode = FailMode::Floor {
        percent: 20,
        replicas: 4,
    };
    // A fifth of 64 is 12, and 3 for each replica.
    let mut share = share(LeasedLimitSpec::Permits { cap: 64 }, mode);
    assert_eq!(share.available(), 3);
    let _three = share.take(3, at(0)).unwrap();
    assert_eq!(share.poll(at(0)), None, "the store need not know of them");
    assert!(share.take(1, at(0)).is_none());
    let request = lend(&mut share, 0, 1, 51);
    assert_eq!(
        (request.spec, request.wanted),
        (LeasedLimitSpec::Permits { cap: 52 }, 1)
    );
    let _fourth = share.take(1, at(0)).unwrap();
    assert!(share.take(1, at(0)).is_none());
    assert!(share.take_loss(at(9_800)));
    assert_eq!(share.available(), 0);
}

#[test]
fn open_admits_everything_once_the_store_is_gone_and_counts_it() {
    let mut share = share(
        LeasedLimitSpec::Bucket {
            per_minute: 6_000,
            capacity: 1_000,
        },
        FailMode::Open,
    );
    assert!(share.take(10, at(0)).is_none(), "the store may answer");
    let request = share.poll(at(0)).unwrap();
    share.on_no_answer(request.seq, at(100));
    assert!(share.take(5_000, at(100)).is_some());
    let request = share.poll(at(500)).unwrap();
    assert_eq!((request.used, request.retained), (5_000, 0));
    share.on_grant(&grant(request.seq, 0, 0), at(501));
    assert!(share.take(1, at(501)).is_none());
}

#[test]
fn open_limit_keeps_to_its_lease_until_it_is_over() {
    let mut share = share(LeasedLimitSpec::Permits { cap: 10 }, FailMode::Open);
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 2, 5);
    let _two = share.take(2, at(1)).unwrap();
    let request = share.poll(at(3_400)).unwrap();
    share.on_no_answer(request.seq, at(3_500));
    assert!(share.take(1, at(9_799)).is_none());
    assert!(share.take(1, at(9_800)).is_some());
}

#[test]
fn budget_reports_its_accounted_spending() {
    let spec = LeasedLimitSpec::Budget {
        amount: 500,
        window: 7,
        accounted: 0,
    };
    let mut share = share(spec, FailMode::Closed);
    share.set_accounted(123);
    assert!(share.take(1, at(0)).is_none());
    let request = share.poll(at(0)).unwrap();
    assert_eq!(request.key(), "q0/team-a@7");
    let LeasedLimitSpec::Budget { accounted, .. } = request.spec else {
        panic!("{request:?}");
    };
    assert_eq!(accounted, 123);
}

/// A share can be dropped once nothing is in use, and not while a request waits for it.
#[test]
fn a_holding_for_which_a_request_waits_is_not_dormant() {
    let spec = LeasedLimitSpec::Permits { cap: 1 };
    let lease = Duration::from_secs(10);
    let mut share = LeasedShare::new("a".into(), spec, FailMode::Closed, lease);
    assert!(share.is_unused());
    assert_eq!(share.take(1, Duration::ZERO), None);
    assert!(!share.is_unused());
}

/// The store is asked once for all waiting requests, and again a while later.
#[test]
fn a_store_that_has_nothing_is_asked_again_a_while_later() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 0, 0);
    assert!(share.take(1, at(1)).is_none());
    assert_eq!(share.poll(at(19)), None);
    assert_eq!(share.poll(at(20)).unwrap().waiting, 1);
}

/// The store has noted that requests wait, and as long as it has, the other replicas return idle
/// amounts at once.
#[test]
fn unmet_need_is_withdrawn_at_the_next_renewal() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 0, 0);
    assert_eq!(
        share.next_deadline(),
        Some(at(3_333) + Duration::from_micros(333))
    );
    assert_eq!(share.poll(at(3_333)), None);
    assert_eq!(lend(&mut share, 3_334, 0, 0).waiting, 0);
    assert_eq!(share.poll(at(20_000)), None);
    assert!(share.is_unused());
}

#[test]
fn a_store_that_had_something_is_asked_again_at_once() {
    let mut share = permits(10);
    assert!(share.take(2, at(0)).is_none());
    lend(&mut share, 0, 1, 0);
    assert!(share.take(2, at(1)).is_none());
    assert_eq!(share.poll(at(1)).unwrap().waiting, 2);
}

#[test]
fn a_notice_lets_a_replica_that_waits_ask_at_once() {
    let mut share = permits(10);
    assert!(share.take(1, at(0)).is_none());
    lend(&mut share, 0, 0, 0);
    assert!(share.take(1, at(1)).is_none());
    share.on_notice();
    assert_eq!(share.poll(at(1)).unwrap().waiting, 1);
}

/// A notice that arrives while a request is in flight does not take its grant from the requests
/// that wait for it: the grant is not returned before they have had the time to take it.
#[test]
fn a_notice_in_flight_leaves_the_grant_to_waiting_requests() {
    let mut share = permits(10);
    assert!(share.take(2, at(0)).is_none());
    let request = share.poll(at(0)).unwrap();
    share.on_notice();
    share.on_grant(&grant(request.seq, 2, 0), at(1));
    assert_eq!(share.poll(at(2)), None);
    assert!(share.needs_retry() && share.take(2, at(3)).is_some());
}

/// If such a grant is empty, the store is asked again at once: it may have something by now.
#[test]
fn a_notice_in_flight_lets_a_replica_that_got_nothing_ask_at_once() {
    for is_noticed in [false, true] {
        let mut share = permits(10);
        assert!(share.take(1, at(0)).is_none());
        let request = share.poll(at(0)).unwrap();
        if is_noticed {
            share.on_notice();
        }
        share.on_grant(&grant(request.seq, 0, 0), at(1));
        assert!(share.take(1, at(2)).is_none());
        assert_eq!(share.poll(at(2)).is_some(), is_noticed);
    }
}

#[test]
fn notice_returns_idle_permits() {
    let mut share = permits(10);
    assert!(share.take(6, at(0)).is_none());
    lend(&mut share, 0, 6, 4);
    let taken = share.take(2, at(1)).unwrap();
    assert_eq!(share.poll(at(1)), None);
    share.on_notice();
    let request = share.poll(at(20)).unwrap();
    assert_eq!((request.retained, request.wanted), (2, 0));
    share.on_grant(&grant(request.seq, 2, 8), at(21));
    // The share goes on as before once enough is available.
    share.release(taken);
    assert_eq!(share.poll(at(22)), None);
}

#[test]
fn a_key_names_its_limit_in_any_window() {
    let share = permits(10);
    assert!(share.matches_key("q0/team-a") && share.matches_key("q0/team-a@1793491200"));
    assert!(
        !share.matches_key("q0/team-ab") && !share.matches_key("q0/team") && !share.matches_key("")
    );
}

/// A store in quarantine is asked again, so that the end of the quarantine is found, but requests
/// do not wait for each of these lease requests.
#[test]
fn quarantine_is_probed_once_per_interval() {
    let mut share = permits(10);
    assert!(share.may_wait_for_grant(at(0)));
    assert!(share.take(1, at(0)).is_none());
    let request = share.poll(at(0)).unwrap();
    let quarantined = LeaseGrant {
        quarantined: true,
        ..grant(request.seq, 0, 0)
    };
    share.on_grant(&quarantined, at(1));
    assert!(!share.may_wait_for_grant(at(199)));
    assert!(share.may_wait_for_grant(at(200)));
    assert!(share.take(1, at(200)).is_none());
    let request = share.poll(at(200)).unwrap();
    share.on_no_answer(request.seq, at(300));
    assert!(!share.may_wait_for_grant(at(1_000)), "it does not answer");
}

/// If requests come one after another, only the first few wait for the store.
#[test]
fn bucket_tokens_are_borrowed_in_advance() {
    let mut share = bucket();
    let mut requested_at = Vec::new();
    let mut waited_at = Vec::new();
    for millis in 0..10_000 {
        let mut taken = share.take(1, at(millis));
        if taken.is_none() {
            waited_at.push(millis);
        }
        if let Some(request) = share.poll(at(millis)) {
            let held = request.retained + request.wanted;
            share.on_grant(&grant(request.seq, held, 500), at(millis));
            requested_at.push(millis);
            taken = taken.or_else(|| share.take(1, at(millis)));
        }
        assert!(taken.is_some(), "{millis}");
    }
    assert!(waited_at.len() <= 3, "{waited_at:?}");
    assert!(waited_at.iter().all(|millis| *millis < 10), "{waited_at:?}");
    // The amount of 500 ms and a quarter more is requested in advance, and three quarters of it are
    // spent until the next request.
    let later = requested_at
        .iter()
        .filter(|millis| **millis >= 1_000)
        .count();
    assert!((18..=20).contains(&later), "{requested_at:?}");
}
