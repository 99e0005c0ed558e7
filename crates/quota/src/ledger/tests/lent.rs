//! Tests of leased limits.

use super::*;

const LEASE: Duration = Duration::from_secs(10);

fn lending_in(mode: FailMode, lost_lease: LostLease) -> LeaseSettings {
    LeaseSettings {
        mode,
        lease: LEASE,
        lost_lease,
    }
}

fn leased(caps: Caps) -> Terms {
    Terms {
        caps,
        lending: Some(lending_in(FailMode::Closed, LostLease::Finish)),
    }
}

fn lending(limits: &[(&str, Caps)]) -> (Ledger, Vec<LimitId>) {
    let mut ledger = Ledger::new();
    let limits = limits.iter();
    let ids =
        ledger.set_limits(limits.map(|(name, caps)| (Arc::from(*name), leased(caps.clone()))));
    (ledger, ids)
}

fn grant(request: &LeaseRequest, held: u64, available: u64) -> LeaseGrant {
    LeaseGrant {
        seq: request.seq,
        held,
        available,
        level: 0,
        replicas: 1,
        waiting_replicas: 0,
        quarantined: false,
        duration: LEASE,
    }
}

/// Grants the wanted amounts, and returns the keys of the lease requests.
fn exchange(ledger: &mut Ledger, all: bool, at: Now) -> Vec<String> {
    let asked = ledger.poll(at, all);
    for leased in &asked {
        let grant = grant(
            &leased.request,
            leased.request.retained + leased.request.wanted,
            100,
        );
        ledger.on_grant(leased, Some(&grant), at);
    }
    asked.iter().map(|leased| leased.request.key()).collect()
}

fn now() -> Now {
    at_second(1_000)
}

#[test]
fn waiting_request_is_admitted_after_the_stores_reply() {
    let (mut ledger, ids) = lending(&[("leased", Caps::concurrency(2))]);
    let claims = [claim(ids[0], "a")];
    assert!(!ledger.is_due());
    let refused = ledger.admit(&claims, place, now()).unwrap_err();
    assert_eq!(
        (&*refused.limit, refused.dimension, refused.cap),
        ("leased", Dimension::Concurrency, 2)
    );
    assert_eq!(
        (refused.may_wait, refused.is_degraded, refused.retry_after),
        (true, false, None)
    );
    assert!(ledger.is_due());
    assert_eq!(
        exchange(&mut ledger, false, now()),
        ["leased/a/concurrency"]
    );
    assert!(ledger.is_due(), "what was leased may be given back");
    let admitted = ledger.admit(&claims, place, now()).unwrap();
    assert!(!admitted.is_degraded());
    assert_eq!(ledger.in_use(claims[0]), 1);
    assert_eq!(ledger.poll(now(), false).len(), 0);
    assert!(!ledger.is_due());
    ledger.end(admitted, Used::default(), now());
    assert_eq!(ledger.in_use(claims[0]), 0);
}

#[test]
fn a_refusal_of_a_lent_rate_states_the_time_to_wait() {
    let (mut ledger, ids) = lending(&[("leased", requests(6))]);
    let refused = ledger
        .admit(&[claim(ids[0], "a")], place, now())
        .unwrap_err();
    assert_eq!((refused.cap, refused.retry_after), (6, Some(10_000_000)));
}

/// Amounts taken from one limit are released if another limit has too little.
#[test]
fn request_refused_by_a_lent_limit_takes_nothing_elsewhere() {
    let (mut ledger, ids) = lending(&[
        ("first", Caps::concurrency(1)),
        ("second", Caps::concurrency(1)),
    ]);
    let (first, second) = (claim(ids[0], "a"), claim(ids[1], "a"));
    assert!(ledger.admit(&[first], place, now()).is_err());
    exchange(&mut ledger, false, now());
    for _ in 0..3 {
        let refused = ledger.admit(&[first, second], place, now()).unwrap_err();
        assert_eq!(&*refused.limit, "second");
    }
    let admitted = ledger.admit(&[first], place, now()).unwrap();
    assert_eq!(ledger.in_use(first), 1);
    let _ = ledger.end(admitted, Used::default(), now());
}

#[test]
fn store_without_grants_degrades_status_and_admissions() {
    let mode = FailMode::Open;
    let terms = Terms {
        caps: Caps::concurrency(2),
        lending: Some(lending_in(mode, LostLease::Finish)),
    };
    let mut ledger = Ledger::new();
    let ids = ledger.set_limits([("leased".into(), terms)]);
    let claims = [claim(ids[0], "a")];
    assert!(ledger.admit(&claims, place, now()).is_err());
    assert!(!ledger.status(now())[0].is_degraded);
    let asked = ledger.poll(now(), false);
    ledger.on_grant(&asked[0], None, now());
    assert!(ledger.status(now())[0].is_degraded);
    // The fail mode admits everything.
    let admitted = ledger.admit(&claims, place, now()).unwrap();
    assert!(admitted.is_degraded());
}

#[test]
fn the_status_has_the_parts_of_a_lent_limit() {
    let (mut ledger, ids) = lending(&[(
        "leased",
        Caps {
            concurrency: Some(4),
            ..budget("1.00", Window::Hour)
        },
    )]);
    let claims = [claim(ids[0], "a")];
    ledger.add_spent(claims[0], "0.25".parse().unwrap(), now());
    for _ in 0..2 {
        assert!(ledger.admit(&claims, money("0.10"), now()).is_err());
        let asked = ledger.poll(now(), false);
        let level = LeaseGrant {
            level: 250_000_000,
            ..grant(&asked[0].request, asked[0].request.wanted, 3)
        };
        ledger.on_grant(&asked[0], Some(&level), now());
    }
    let _admitted = ledger.admit(&claims, money("0.10"), now()).unwrap();
    let status = &ledger.status(now())[0];
    assert_eq!(
        (&*status.limit, &*status.scope, status.in_use),
        ("leased", "a", 1)
    );
    assert_eq!(
        (status.spent, status.reserved),
        (Some("0.25".parse().unwrap()), Money::ZERO)
    );
    let parts: Vec<_> = status
        .lent
        .iter()
        .map(|part| (&*part.key, part.held, part.free))
        .collect();
    // 1970-01-01T00:16:40Z is in the first hour.
    assert_eq!(
        parts,
        [("leased/a/concurrency", 1, 3), ("leased/a/budget@0", 0, 3)]
    );
}

#[test]
fn lent_rate_reports_held_and_free_amounts() {
    let (mut ledger, ids) = lending(&[("leased", requests(6))]);
    let claims = [claim(ids[0], "a")];
    assert!(ledger.admit(&claims, place, now()).is_err());
    let asked = ledger.poll(now(), false);
    ledger.on_grant(
        &asked[0],
        Some(&grant(&asked[0].request, 1_000_000, 3_000_000)),
        now(),
    );
    let admitted = ledger.admit(&claims, place, now()).unwrap();
    assert_eq!(
        admitted.remaining().requests,
        Some(Level {
            limit: 6,
            remaining: 3,
            reset: 30_000_000,
        })
    );
    assert_eq!(admitted.remaining().tokens, None);
}

/// A notice finds its share, even if the names of the limit and the scope have slashes.
#[test]
fn a_notice_finds_its_holding_by_its_key() {
    let (mut ledger, ids) = lending(&[("key a/* with b/c", Caps::concurrency(8))]);
    let claims = [claim(ids[0], "a/1")];
    assert!(ledger.admit(&claims, place, now()).is_err());
    exchange(&mut ledger, false, now());
    let admitted = ledger.admit(&claims, place, now()).unwrap();
    let _ = ledger.end(admitted, Used::default(), now());
    exchange(&mut ledger, false, now());
    assert!(!ledger.is_due());
    for other in [
        "",
        "a/1",
        "key a/* with b/c/a/2/concurrency",
        "key a/* with b/c/concurrency",
    ] {
        ledger.on_notice(other);
        assert!(!ledger.is_due(), "{other}");
    }
    ledger.on_notice("key a/* with b/c/a/1/concurrency");
    assert!(ledger.is_due());
    let asked = ledger.poll(now(), false);
    assert_eq!((asked.len(), asked[0].request.retained), (1, 0));
}

#[test]
fn leases_are_renewed_if_all_are_polled() {
    let (mut ledger, ids) = lending(&[("leased", Caps::concurrency(8))]);
    for scope in ["a", "b"] {
        assert!(ledger.admit(&[claim(ids[0], scope)], place, now()).is_err());
        exchange(&mut ledger, false, now());
    }
    let _a = ledger.admit(&[claim(ids[0], "a")], place, now()).unwrap();
    let _b = ledger.admit(&[claim(ids[0], "b")], place, now()).unwrap();
    assert!(exchange(&mut ledger, false, now()).is_empty());
    assert!(exchange(&mut ledger, true, at_second(1_003)).is_empty());
    assert!(exchange(&mut ledger, false, at_second(1_004)).is_empty());
    let renewed = exchange(&mut ledger, true, at_second(1_004));
    assert_eq!(renewed, ["leased/a/concurrency", "leased/b/concurrency"]);
}

#[test]
fn a_request_that_was_asked_for_in_vain_keeps_the_ledger_due() {
    let (mut ledger, ids) = lending(&[("leased", Caps::concurrency(1))]);
    let claims = [claim(ids[0], "a")];
    assert!(ledger.admit(&claims, place, now()).is_err());
    let asked = ledger.poll(now(), false);
    ledger.on_grant(&asked[0], Some(&grant(&asked[0].request, 0, 0)), now());
    assert!(ledger.admit(&claims, place, now()).is_err());
    assert!(
        ledger.poll(now(), false).is_empty(),
        "it was asked just now"
    );
    assert!(ledger.is_due());
    assert_eq!(ledger.poll(at_second(1_001), false).len(), 1);
}

/// Idle amounts are returned at once if the store has little left.
#[test]
fn an_end_in_tight_times_is_due() {
    let (mut ledger, ids) = lending(&[("leased", Caps::concurrency(10))]);
    let claims = [claim(ids[0], "a")];
    assert!(ledger.admit(&claims, place, now()).is_err());
    let asked = ledger.poll(now(), false);
    ledger.on_grant(&asked[0], Some(&grant(&asked[0].request, 1, 0)), now());
    let admitted = ledger.admit(&claims, place, now()).unwrap();
    assert!(ledger.poll(now(), false).is_empty() && !ledger.is_due());
    assert!(ledger.end(admitted, Used::default(), now()));
    assert_eq!(ledger.poll(now(), false)[0].request.retained, 0);
}

/// A ledger is due at once after an admission that leaves little of a rate.
#[test]
fn an_admission_that_leaves_little_is_due() {
    let (mut ledger, ids) = lending(&[("leased", tokens_per_minute(1_000))]);
    let claims = [claim(ids[0], "a")];
    assert!(ledger.admit(&claims, tokens(100), now()).is_err());
    let asked = ledger.poll(now(), false);
    ledger.on_grant(
        &asked[0],
        Some(&grant(&asked[0].request, 240_000_000, 700_000_000)),
        now(),
    );
    let first = ledger.admit(&claims, tokens(100), now()).unwrap();
    let later = at_second(1_001);
    assert!(ledger.poll(later, false).is_empty() && !ledger.is_due());
    let second = ledger.admit(&claims, tokens(100), later).unwrap();
    assert!(second.is_due() && ledger.is_due());
    drop((first, second));
}

#[test]
fn a_lent_scope_is_dropped_once_the_store_knows_everything() {
    let (mut ledger, ids) = lending(&[("leased", Caps::concurrency(8))]);
    let claims = [claim(ids[0], "a")];
    assert!(ledger.admit(&claims, place, now()).is_err());
    exchange(&mut ledger, false, now());
    let admitted = ledger.admit(&claims, place, now()).unwrap();
    ledger.drop_idle(now());
    assert_eq!(ledger.len(), 1);
    let _ = ledger.end(admitted, Used::default(), now());
    ledger.drop_idle(now());
    assert_eq!(ledger.len(), 1, "the store does not know yet");
    assert!(!ledger.is_empty());
    for second in [1_004, 1_008, 1_020] {
        exchange(&mut ledger, true, at_second(second));
    }
    ledger.drop_idle(at_second(1_020));
    assert!(ledger.is_empty());
}

/// A ledger with a limit that ends requests with their lease, and one request.
fn ending(mode: FailMode) -> (Ledger, LimitId, Admission) {
    let terms = Terms {
        caps: Caps::concurrency(20),
        lending: Some(lending_in(mode, LostLease::End)),
    };
    let mut ledger = Ledger::new();
    let id = ledger.set_limits([("leased".into(), terms)])[0];
    let _ = ledger.admit(&[claim(id, "a")], place, now());
    exchange(&mut ledger, false, now());
    let admitted = ledger.admit(&[claim(id, "a")], place, now()).unwrap();
    (ledger, id, admitted)
}

/// Sends the due lease requests to a store that does not answer.
fn ask_in_vain(ledger: &mut Ledger, at: Now) {
    for asked in ledger.poll(at, true) {
        ledger.on_grant(&asked, None, at);
    }
}

fn after(millis: u64) -> Now {
    let mut now = now();
    now.monotonic += millis * 1_000;
    now
}

/// Shares are checked every thirtieth of the lease, 333 ms. The lease is over after 9,800 ms, and
/// its requests are ended as much earlier.
#[test]
fn requests_are_ended_before_their_lease_is_over() {
    let (mut ledger, id, admitted) = ending(FailMode::Closed);
    let [loss] = admitted.losses() else {
        panic!("{admitted:?}")
    };
    ask_in_vain(&mut ledger, after(9_466));
    assert!(!loss.has_happened() && !ledger.has_lost_leases());
    ask_in_vain(&mut ledger, after(9_467));
    assert!(loss.has_happened());
    assert!(ledger.has_lost_leases() && !ledger.has_lost_leases());
    // The next lease has a loss of its own.
    let _ = ledger.end(admitted, Used::default(), after(9_468));
    assert!(
        ledger
            .admit(&[claim(id, "a")], place, after(10_000))
            .is_err()
    );
    exchange(&mut ledger, true, after(10_000));
    let next = ledger
        .admit(&[claim(id, "a")], place, after(10_000))
        .unwrap();
    assert!(!next.losses()[0].has_happened());
}

#[test]
fn renewed_lease_ends_no_request() {
    let (mut ledger, _, admitted) = ending(FailMode::Closed);
    for second in [4, 8, 12, 16] {
        exchange(&mut ledger, true, after(second * 1_000));
    }
    assert!(!ledger.has_lost_leases() && !admitted.losses()[0].has_happened());
}

/// After the loss, new requests use the floor of this replica, and are not ended.
#[test]
fn request_of_a_floor_is_not_ended_with_an_earlier_lease() {
    let mode = FailMode::Floor {
        percent: 10,
        replicas: 2,
    };
    let terms = Terms {
        caps: Caps::concurrency(20),
        lending: Some(lending_in(mode, LostLease::End)),
    };
    let mut ledger = Ledger::new();
    let claims = [claim(ledger.set_limits([("leased".into(), terms)])[0], "a")];
    let first = ledger.admit(&claims, place, now()).unwrap();
    assert!(ledger.admit(&claims, place, now()).is_err());
    exchange(&mut ledger, false, now());
    let second = ledger.admit(&claims, place, now()).unwrap();
    assert!(ledger.admit(&claims, place, after(9_500)).is_err());
    for admission in [first, second] {
        assert!(admission.losses()[0].has_happened());
        let _ = ledger.end(admission, Used::default(), after(9_501));
    }
    let own = ledger.admit(&claims, place, after(9_502)).unwrap();
    let _ = ledger.poll(after(9_900), true);
    assert!(!own.losses()[0].has_happened());
}

#[test]
fn open_limit_ends_no_request() {
    let (_, _, admitted) = ending(FailMode::Open);
    assert!(admitted.losses().is_empty());
}
