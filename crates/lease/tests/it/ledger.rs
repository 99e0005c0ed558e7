//! Tests of a ledger whose limits are leased from a store.

use std::time::Duration;

use quota::{
    Admission, Caps, Claim, Demand, Dimension, FailMode, LeaseSettings, Ledger, LimitId, LostLease,
    Now, Refused, Terms, Used,
};
use sluicegate_lease::{InProcessStore, LeaseStore as _, boottime};

const LEASE: Duration = Duration::from_secs(1_000);

fn now() -> Now {
    Now {
        monotonic: u64::try_from(boottime().as_micros()).expect("a time that fits"),
        unix_ms: 0,
    }
}

fn leased(caps: Caps) -> Terms {
    Terms {
        caps,
        lending: Some(LeaseSettings {
            mode: FailMode::Closed,
            lease: LEASE,
            lost_lease: LostLease::Finish,
        }),
    }
}

/// Sends the lease requests of the ledger, applies the grants, and returns the number of requests.
async fn exchange(ledger: &mut Ledger, store: &InProcessStore) -> usize {
    let pending = ledger.poll(now(), false);
    let requests: Vec<_> = pending
        .iter()
        .map(|pending| pending.request.clone())
        .collect();
    let replies = store.exchange(&requests).await;
    for (request, reply) in pending.iter().zip(replies) {
        ledger.on_grant(request, reply.ok().as_ref(), now());
    }
    pending.len()
}

fn claims(ids: &[LimitId]) -> Vec<Claim<'static>> {
    let retained = |limit: &LimitId| Claim {
        limit: *limit,
        scope: "a",
    };
    ids.iter().map(retained).collect()
}

/// Admits a request, after as many exchanges with the store as it may have to wait for.
async fn admit(
    ledger: &mut Ledger,
    store: &InProcessStore,
    claims: &[Claim<'_>],
    tokens: u64,
) -> Result<Admission, Refused> {
    let demand = |_| Demand {
        tokens,
        ..Demand::default()
    };
    let mut refused = None;
    // One exchange for each limit, and one more for amounts that others have returned by then.
    for _ in 0..=claims.len() + 1 {
        match ledger.admit(claims, demand, now()) {
            Ok(admission) => return Ok(admission),
            Err(found) => refused = Some(found),
        }
        exchange(ledger, store).await;
    }
    Err(refused.expect("at least one attempt"))
}

/// A request that finds an empty share has to wait for the store, and is admitted after the grant,
/// as long as the store has permits.
#[tokio::test]
async fn a_request_is_admitted_once_the_store_has_lent() {
    let (store, mut ledger) = (InProcessStore::new(LEASE), Ledger::new());
    let ids = ledger.set_limits([("shared".into(), leased(Caps::concurrency(2)))]);
    let claims = claims(&ids);
    let refused = ledger
        .admit(&claims, |_| Demand::default(), now())
        .unwrap_err();
    assert_eq!((refused.may_wait, refused.is_degraded), (true, false));
    assert_eq!(
        (refused.dimension, refused.cap),
        (Dimension::Concurrency, 2)
    );
    assert_eq!(exchange(&mut ledger, &store).await, 1, "one request");

    let one = admit(&mut ledger, &store, &claims, 0).await.unwrap();
    let two = admit(&mut ledger, &store, &claims, 0).await.unwrap();
    let refused = admit(&mut ledger, &store, &claims, 0).await.unwrap_err();
    assert_eq!(refused.dimension, Dimension::Concurrency);
    assert_eq!(ledger.status(now())[0].in_use, 2);
    for admission in [one, two] {
        ledger.end(admission, Used::default(), now());
    }
    assert!(admit(&mut ledger, &store, &claims, 0).await.is_ok());
}

/// A request that one limit refuses holds nothing of the other limits.
#[tokio::test]
async fn a_request_takes_from_all_limits_or_from_none() {
    let (store, mut ledger) = (InProcessStore::new(LEASE), Ledger::new());
    let ids = ledger.set_limits([
        ("first".into(), leased(Caps::concurrency(1))),
        ("second".into(), leased(Caps::concurrency(1))),
    ]);
    let (both, first, second) = (claims(&ids), claims(&ids[..1]), claims(&ids[1..]));
    let occupied = admit(&mut ledger, &store, &second, 0).await.unwrap();
    for _ in 0..3 {
        assert!(admit(&mut ledger, &store, &both, 0).await.is_err());
    }
    let alone = admit(&mut ledger, &store, &first, 0).await.unwrap();
    for admission in [occupied, alone] {
        ledger.end(admission, Used::default(), now());
    }
    assert!(admit(&mut ledger, &store, &both, 0).await.is_ok());
}

/// Tokens above the reservation are a debt at the store.
#[tokio::test]
async fn tokens_are_settled_with_the_store() {
    let (store, mut ledger) = (InProcessStore::new(LEASE), Ledger::new());
    let caps = Caps {
        tokens_per_minute: Some(1_000),
        ..Caps::default()
    };
    let ids = ledger.set_limits([("tokens".into(), leased(caps))]);
    let claims = claims(&ids);
    let admission = admit(&mut ledger, &store, &claims, 100).await.unwrap();
    let used = Used {
        tokens: 1_500,
        ..Used::default()
    };
    ledger.end(admission, used, now());
    // 500 more than the bucket holds: even a small request has to wait until they have drained.
    let refused = admit(&mut ledger, &store, &claims, 1).await.unwrap_err();
    assert_eq!(refused.dimension, Dimension::Tokens);
}

/// A notice finds its share, even if the names of the limit and of the scope have slashes, and
/// makes it return its idle amount.
#[tokio::test]
async fn notice_reclaims_idle_permits() {
    let (store, mut ledger) = (InProcessStore::new(LEASE), Ledger::new());
    let ids = ledger.set_limits([("key a/* with b/c".into(), leased(Caps::concurrency(8)))]);
    let claims = [Claim {
        limit: ids[0],
        scope: "a/1",
    }];
    let mut admissions = Vec::new();
    for _ in 0..4 {
        admissions.push(admit(&mut ledger, &store, &claims, 0).await.unwrap());
    }
    for admission in admissions {
        ledger.end(admission, Used::default(), now());
    }
    exchange(&mut ledger, &store).await;
    for other in ["", "a/1", "key a/* with b/c/a/2/concurrency"] {
        ledger.on_notice(other);
        assert!(!ledger.is_due(), "{other}");
    }
    ledger.on_notice("key a/* with b/c/a/1/concurrency");
    let requests = ledger.poll(now(), false);
    assert_eq!(requests.len(), 1);
    assert_eq!(
        (requests[0].request.retained, requests[0].request.wanted),
        (0, 0)
    );
}

/// The ledger has to be polled again while requests wait and the store grants nothing.
#[tokio::test]
async fn a_ledger_is_due_while_requests_wait() {
    let (store, mut ledger) = (InProcessStore::new(LEASE), Ledger::new());
    let ids = ledger.set_limits([("shared".into(), leased(Caps::concurrency(1)))]);
    let claims = claims(&ids);
    let first = admit(&mut ledger, &store, &claims, 0).await.unwrap();
    exchange(&mut ledger, &store).await;
    assert!(!ledger.is_due());
    let refused = admit(&mut ledger, &store, &claims, 0).await.unwrap_err();
    assert!(refused.may_wait);
    assert!(ledger.admit(&claims, |_| Demand::default(), now()).is_err());
    assert_eq!(
        exchange(&mut ledger, &store).await,
        0,
        "it was asked just now"
    );
    assert!(ledger.is_due());
    ledger.end(first, Used::default(), now());
}
