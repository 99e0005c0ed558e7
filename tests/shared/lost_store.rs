//! Gateways whose store is away for longer than their lease, in each mode of `on_lost_store`.

use testkit::{Gateway, await_that};

use crate::black_hole::Path;
use crate::fleet::{self, LEASE, answer, burst, status};
use crate::judge::{Judge, now};
use crate::store::Store;

/// Nothing is admitted, and the response has the header.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_closed_quota_refuses_everything() {
    let (_judge, gateway) = without_store("concurrency = 6");
    await_that("the lease is over", || status(&gateway) == 503);
    let refused = answer(&gateway).unwrap();
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("x-sluicegate-limits"), Some("degraded"));
}

/// Everything is admitted, and the responses have the header.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn an_open_quota_admits_everything() {
    let (_judge, gateway) = without_store("concurrency = 6\non_lost_store = \"open\"");
    await_that("the lease is over", || burst(&gateway, 12) == 12);
    let admitted = answer(&gateway).unwrap();
    assert_eq!(admitted.status, 200);
    assert_eq!(admitted.header("x-sluicegate-limits"), Some("degraded"));
}

/// A fifth of the concurrency is never lent: each of two gateways goes on with half of it.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_quota_with_a_floor_admits_the_part_of_each_gateway() {
    let quota = "concurrency = 20\non_lost_store = \"floor\"\nreplicas = 2";
    let (judge, gateway) = without_store(quota);
    await_that("the lease is over", || burst(&gateway, 6) == 2);
    let from = now();
    assert_eq!(burst(&gateway, 6), 2);
    assert_eq!(judge.most_at_once(from), 2);
    let admitted = answer(&gateway).unwrap();
    assert_eq!(admitted.status, 200);
    assert_eq!(admitted.header("x-sluicegate-limits"), Some("degraded"));
}

/// Starts a gateway with this quota, whose store has lent something and is away then.
fn without_store(quota: &str) -> (Judge, Gateway) {
    let (store, judge) = (Store::start(), Judge::start());
    let path = Path::to(&store);
    let mut fleet = fleet::start_at(&[path.address()], LEASE, &judge, quota);
    let gateway = fleet.remove(0);
    await_that("the store lends", || {
        answer(&gateway)
            .is_some_and(|head| head.status == 200 && head.header("x-sluicegate-limits").is_none())
    });
    path.close();
    (judge, gateway)
}
