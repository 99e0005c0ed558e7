//! Tests of a ledger that many threads share, on one thread: other tests try its interleavings.

use super::*;
use crate::Limiter;

fn limiter(caps: Caps, lending: Option<LeaseSettings>) -> (Limiter, LimitId) {
    let limiter = Limiter::new();
    let ids = limiter.set_limits([("limit".into(), Terms { caps, lending })]);
    (limiter, ids[0])
}

fn used(money: &str) -> Used {
    Used {
        money: money.parse().unwrap(),
        ..Used::default()
    }
}

#[test]
fn ended_permit_counts_its_usage() {
    let (limiter, id) = limiter(budget("1.00", Window::Day), None);
    let claims = [claim(id, "a")];
    limiter.add_spent(claims[0], "0.25".parse().unwrap(), Now::default());
    let permit = limiter
        .admit(&claims, money("0.50"), Now::default())
        .unwrap();
    let status = &limiter.status(Now::default())[0];
    assert_eq!(
        (status.in_use, status.reserved),
        (1, "0.50".parse().unwrap())
    );
    assert!(!permit.end(used("0.10"), Now::default()));
    let status = &limiter.status(Now::default())[0];
    assert_eq!((status.in_use, status.reserved), (0, Money::ZERO));
    assert_eq!(status.spent, Some("0.35".parse().unwrap()));
}

#[test]
fn a_permit_that_is_dropped_gives_everything_back() {
    let (limiter, id) = limiter(budget("1.00", Window::Day), None);
    let claims = [claim(id, "a")];
    drop(
        limiter
            .admit(&claims, money("0.50"), Now::default())
            .unwrap(),
    );
    let status = &limiter.status(Now::default())[0];
    assert_eq!((status.in_use, status.reserved), (0, Money::ZERO));
    assert_eq!(status.spent, Some(Money::ZERO));
    assert_eq!(limiter.drop_idle(Now::default()), 0);
}

#[test]
fn a_permit_has_the_rest_of_the_rates() {
    let (limiter, id) = limiter(requests(6), None);
    let permit = limiter
        .admit(&[claim(id, "a")], place, Now::default())
        .unwrap();
    assert_eq!(permit.remaining().requests.unwrap().remaining, 5);
    assert!(!permit.is_due() && !permit.is_degraded());
    assert_eq!(limiter.in_use(claim(id, "a")), 1);
    assert_eq!(limiter.drop_idle(Now::default()), 1);
}

#[test]
fn a_limiter_exchanges_with_the_store_as_its_ledger_does() {
    let lease = Duration::from_secs(10);
    let mode = FailMode::Open;
    let (limiter, id) = limiter(
        Caps::concurrency(10),
        Some(LeaseSettings {
            mode,
            lease,
            lost_lease: LostLease::Finish,
        }),
    );
    let claims = [claim(id, "a")];
    assert!(!limiter.is_due());
    assert!(limiter.admit(&claims, place, Now::default()).is_err());
    assert!(limiter.is_due());
    let asked = limiter.poll(Now::default(), false);
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
    limiter.on_grant(&asked, &[Some(grant)], Now::default());
    let permit = limiter.admit(&claims, place, Now::default()).unwrap();
    assert!(limiter.poll(at_second(1), false).is_empty() && !limiter.is_due());
    limiter.on_notice("limit/a/concurrency");
    assert!(limiter.is_due(), "one of two permits is idle");
    assert!(permit.end(Used::default(), at_second(1)));

    let asked = limiter.poll(at_second(1), false);
    limiter.on_grant(&asked, &[None], at_second(1));
    // Its lease is over, and the store does not answer.
    let permit = limiter.admit(&claims, place, at_second(20)).unwrap();
    assert!(permit.is_degraded());
    assert_eq!(limiter.poll(at_second(20), true).len(), 1);
}
