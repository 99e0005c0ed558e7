//! Tests of a ledger that many threads share, on one thread: other tests try its interleavings.

use super::*;
use crate::SharedLedger;

fn shared(caps: Caps, lending: Option<LeaseSettings>) -> (SharedLedger, LimitId) {
    let ledger = SharedLedger::new();
    let ids = ledger
        .lock()
        .set_limits([("limit".into(), Terms { caps, lending })]);
    (ledger, ids[0])
}

fn used(money: &str) -> Used {
    Used {
        money: money.parse().unwrap(),
        ..Used::default()
    }
}

#[test]
fn ended_permit_counts_its_usage() {
    let (ledger, id) = shared(budget("1.00", Window::Day), None);
    let claims = [claim(id, "a")];
    ledger
        .lock()
        .add_spent(claims[0], "0.25".parse().unwrap(), Now::default());
    let permit = ledger
        .admit(&claims, money("0.50"), Now::default())
        .unwrap();
    let status = &ledger.lock().status(Now::default())[0];
    assert_eq!(
        (status.in_use, status.reserved),
        (1, "0.50".parse().unwrap())
    );
    assert!(!permit.end(used("0.10"), Now::default()));
    let status = &ledger.lock().status(Now::default())[0];
    assert_eq!((status.in_use, status.reserved), (0, Money::ZERO));
    assert_eq!(status.spent, Some("0.35".parse().unwrap()));
}

#[test]
fn a_permit_that_is_dropped_gives_everything_back() {
    let (ledger, id) = shared(budget("1.00", Window::Day), None);
    let claims = [claim(id, "a")];
    drop(
        ledger
            .admit(&claims, money("0.50"), Now::default())
            .unwrap(),
    );
    let status = &ledger.lock().status(Now::default())[0];
    assert_eq!((status.in_use, status.reserved), (0, Money::ZERO));
    assert_eq!(status.spent, Some(Money::ZERO));
    ledger.lock().drop_idle(Now::default());
    assert_eq!(ledger.lock().len(), 0);
}

#[test]
fn a_permit_has_the_rest_of_the_rates() {
    let (ledger, id) = shared(requests(6), None);
    let permit = ledger
        .admit(&[claim(id, "a")], place, Now::default())
        .unwrap();
    assert_eq!(permit.remaining().requests.unwrap().remaining, 5);
    assert!(!permit.is_due() && !permit.is_degraded());
    assert_eq!(ledger.lock().in_use(claim(id, "a")), 1);
    ledger.lock().drop_idle(Now::default());
    assert_eq!(ledger.lock().len(), 1);
}

#[test]
fn a_limiter_exchanges_with_the_store_as_its_ledger_does() {
    let lease = Duration::from_secs(10);
    let mode = FailMode::Open;
    let (ledger, id) = shared(
        Caps::concurrency(10),
        Some(LeaseSettings {
            mode,
            lease,
            lost_lease: LostLease::Finish,
        }),
    );
    let claims = [claim(id, "a")];
    assert!(!ledger.lock().is_due());
    assert!(ledger.admit(&claims, place, Now::default()).is_err());
    assert!(ledger.lock().is_due());
    let asked = ledger.lock().poll(Now::default(), false);
    let grant = LeaseGrant {
        seq: 1,
        held: 2,
        available: 8,
        level: 0,
        replicas: 1,
        waiting_replicas: 0,
        quarantined: false,
        duration: lease,
    };
    ledger
        .lock()
        .on_grant(&asked[0], Some(&grant), Now::default());
    let permit = ledger.admit(&claims, place, Now::default()).unwrap();
    assert!(ledger.lock().poll(at_second(1), false).is_empty() && !ledger.lock().is_due());
    ledger.lock().on_notice("limit/a/concurrency");
    assert!(ledger.lock().is_due(), "one of two permits is idle");
    assert!(permit.end(Used::default(), at_second(1)));

    let asked = ledger.lock().poll(at_second(1), false);
    ledger.lock().on_grant(&asked[0], None, at_second(1));
    // Its lease is over, and the store does not answer.
    let permit = ledger.admit(&claims, place, at_second(20)).unwrap();
    assert!(permit.is_degraded());
    assert_eq!(ledger.lock().poll(at_second(20), true).len(), 1);
}
