//! Gateways whose connection to the store becomes a black hole.

use std::time::Duration;

use testkit::await_that;

use crate::black_hole::Path;
use crate::faults::{CAP, QUOTA, await_full, fill};
use crate::fleet::{self, LEASE, status};
use crate::judge::{Judge, now};
use crate::load::Load;
use crate::store::Store;

/// Behind a black hole, gateways go on with the shares that they hold, then refuse with 503 without
/// waiting for the store. Once the black hole is gone, all is as before.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_black_hole_holds_up_no_request() {
    let (store, judge) = (Store::start(), Judge::start());
    let path = Path::to(&store);
    let fleet = fleet::start_at(
        &[path.address(), path.address(), path.address()],
        LEASE,
        &judge,
        QUOTA,
    );
    await_that("the store lends", || status(&fleet[0]) == 200);
    let from = now();
    let all: Vec<_> = fleet.iter().collect();
    assert_eq!(fill(&all, &judge, from), CAP);
    path.close();
    await_that("the lease is over", || status(&fleet[0]) == 503);
    let asked = now();
    for _ in 0..20 {
        assert_eq!(status(&fleet[0]), 503);
    }
    // Each would wait for 100 ms if it waited for the store.
    let each = asked.elapsed() / 20;
    assert!(each < Duration::from_millis(100), "{each:?} for a refusal");
    path.open();
    assert_eq!(fill(&all, &judge, from), CAP);
}

/// A gateway that is cut off while it uses all of the quota goes on for half of its lease. The others
/// wait for it all the time, and get all of the quota once the lease is over.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_gateway_that_is_cut_off_keeps_nothing_from_the_others() {
    let judge = Judge::taking(Duration::from_millis(100));
    let store = Store::start();
    let path = Path::to(&store);
    let addresses = [store.address(), store.address(), path.address()];
    let fleet = fleet::start_at(&addresses, LEASE, &judge, QUOTA);
    await_that("the store lends", || status(&fleet[0]) == 200);
    let from = now();
    let (others, cut_off) = (&[&fleet[0], &fleet[1]], &fleet[2]);
    Load::run(&[cut_off], 8, |_| {
        await_full(&judge, from);
        let closed = now();
        path.close();
        Load::run(others, 8, |_| {
            // The lease is over by then, and its share is lent to the others.
            await_full(&judge, closed + 2 * LEASE);
            assert_eq!(status(cut_off), 503);
            path.open();
            await_that("it is back", || status(cut_off) == 200);
            await_full(&judge, now());
        });
    });
    assert_eq!(judge.most_at_once(from), CAP);
}
