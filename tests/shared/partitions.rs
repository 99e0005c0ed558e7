//! Gateways whose connection to the store becomes a black hole.

use std::time::Duration;

use testkit::await_that;

use crate::black_hole::Path;
use crate::faults::{CAP, QUOTA, fill};
use crate::fleet::{self, status};
use crate::judge::{Judge, now};
use crate::load::Load;
use crate::store::Store;

/// Behind a black hole, gateways go on with what they hold, then refuse with 503 without waiting for
/// the store. Once it is gone, all is as before.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_black_hole_holds_up_no_request() {
    let (store, judge) = (Store::start(), Judge::start());
    let path = Path::to(&store);
    let fleet = fleet::start_at(
        &[path.address(), path.address(), path.address()],
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

/// While one of three gateways is cut off, the others get all of the quota, once its lease is over.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_gateway_that_is_cut_off_keeps_nothing_from_the_others() {
    let (store, judge) = (Store::start(), Judge::start());
    let path = Path::to(&store);
    let addresses = [store.address(), store.address(), path.address()];
    let fleet = fleet::start_at(&addresses, &judge, QUOTA);
    await_that("the store lends", || status(&fleet[0]) == 200);
    let from = now();
    let (others, cut_off) = (&[&fleet[0], &fleet[1]], &fleet[2]);
    assert_eq!(fill(&[cut_off], &judge, from), CAP);
    // It uses what it holds as long as it may.
    Load::run(&[cut_off], 8, |_| {
        path.close();
        await_that("its lease is over", || status(cut_off) == 503);
        assert_eq!(fill(others, &judge, from), CAP);
        path.open();
        assert_eq!(fill(others, &judge, from), CAP);
        await_that("it is back", || status(cut_off) != 503);
    });
    assert_eq!(judge.most_at_once(from), CAP);
}
