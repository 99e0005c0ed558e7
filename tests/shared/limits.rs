//! Limits over several gateways, without faults.

use std::sync::atomic::Ordering;

use testkit::await_that;

use crate::fleet::{self, burst, status};
use crate::judge::{Judge, now};
use crate::load::Load;
use crate::store::Store;

/// Three gateways together never have more requests in progress than the quota, they use all of it,
/// and afterwards each of them can use all of it alone.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn concurrency_is_exact_over_three_gateways() {
    let (store, judge) = (Store::start(), Judge::start());
    let fleet = fleet::start(3, &store, &judge, "key = \"*\"\nconcurrency = 6");
    await_that("the store lends", || status(&fleet[0]) == 200);
    let from = now();
    let all: Vec<_> = fleet.iter().collect();
    let load = Load::run(&all, 8, |load| {
        await_that("many requests have ended", || load.ok() >= 60);
    });
    assert_eq!(judge.most_at_once(from), 6, "{load:?}");
    for gateway in &fleet {
        let from = now();
        Load::run(&[gateway], 12, |load| {
            await_that("one gateway uses all of it", || {
                load.ok() >= 12 && judge.most_at_once(from) == 6
            });
        });
        assert_eq!(judge.most_at_once(from), 6);
    }
}

/// Three gateways together admit no more requests in a minute than the quota, however many ask.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_rate_is_exact_over_three_gateways() {
    let (store, judge) = (Store::start(), Judge::start());
    let began = now();
    let fleet = fleet::start(3, &store, &judge, "requests_per_minute = 200");
    let all: Vec<_> = fleet.iter().collect();
    Load::run(&all, 8, |_| {
        await_that("more than a full bucket is admitted", || {
            judge.asked() >= 220
        });
    });
    judge.check_rate(began, 200);
}

/// A rate refuses no first request: not at a new store, and not after it has lost its data.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn rates_begin_full_at_each_gateway() {
    let (mut store, judge) = (Store::start(), Judge::start());
    let rates = "key = \"*\"\nrequests_per_minute = 60\ntokens_per_minute = 60000";
    let fleet = fleet::start(3, &store, &judge, rates);
    let statuses = || fleet.iter().map(status).collect::<Vec<_>>();
    assert_eq!(statuses(), [200; 3], "a new store");
    store.flush();
    assert_eq!(statuses(), [200; 3], "a flushed store");
    store.kill();
    store.restart();
    await_that("the gateways are connected", || statuses() == [200; 3]);
}

/// With a queue, requests of three gateways wait for each other instead of being refused, and never
/// more of them are in progress than the quota.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn requests_of_three_gateways_wait_in_queues() {
    let (store, judge) = (Store::start(), Judge::start());
    let quota = "concurrency = 4\nqueue = { wait = \"60s\" }";
    let fleet = fleet::start(3, &store, &judge, quota);
    await_that("the store lends", || status(&fleet[0]) == 200);
    let from = now();
    let all: Vec<_> = fleet.iter().collect();
    let load = Load::run(&all, 4, |load| {
        await_that("many requests have ended", || load.ok() >= 60);
    });
    assert_eq!(judge.most_at_once(from), 4, "{load:?}");
    let refused = [&load.limited, &load.unavailable, &load.other];
    assert_eq!(refused.map(|count| count.load(Ordering::Relaxed)), [0; 3]);
}

/// Permits that one gateway holds idle go to another one within the time for which its requests wait,
/// long before the next renewal.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn idle_permits_go_where_requests_wait() {
    let (store, judge) = (Store::start(), Judge::start());
    let fleet = fleet::start(2, &store, &judge, "key = \"*\"\nconcurrency = 20");
    await_that("the store lends", || status(&fleet[0]) == 200);
    // On a busy machine the time can be too short, but not always.
    await_that("one gateway gets all of the quota at once", || {
        burst(&fleet[0], 10) == 10 && burst(&fleet[1], 20) == 20
    });
}
