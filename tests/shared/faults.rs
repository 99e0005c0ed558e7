//! Gateways and stores that die, pause and forget while quotas are shared.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use testkit::{Gateway, await_that};

use crate::GATEWAY;
use crate::fleet::{self, LEASE, status};
use crate::judge::{Judge, now};
use crate::load::Load;
use crate::store::Store;

pub(crate) const QUOTA: &str = "key = \"*\"\nconcurrency = 6";
pub(crate) const CAP: usize = 6;

/// A fleet whose store has begun to lend.
fn ready(count: usize) -> (Store, Judge, Vec<Gateway>) {
    let (store, judge) = (Store::start(), Judge::start());
    let fleet = fleet::start(count, &store, &judge, QUOTA);
    await_that("the store lends", || status(&fleet[0]) == 200);
    (store, judge, fleet)
}

/// Sends load to gateways until they have used all of the quota, and returns the most requests that
/// were in progress since `from`.
pub(crate) fn fill(gateways: &[&Gateway], judge: &Judge, from: Instant) -> usize {
    let now = now();
    Load::run(gateways, 8, |_| await_full(judge, now));
    judge.most_at_once(from)
}

/// Waits until requests that came at `from` or later have used all of the quota at the same time.
#[track_caller]
pub(crate) fn await_full(judge: &Judge, from: Instant) {
    await_that("all of the quota is used", || {
        judge.most_at_once(from) >= CAP
    });
}

/// The permits of a gateway that is killed come back, and not before its requests could have ended.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn permits_of_a_killed_gateway_come_back() {
    let (_store, judge, mut fleet) = ready(3);
    let from = now();
    let killed = fleet.pop().unwrap();
    let all: Vec<_> = fleet.iter().chain([&killed]).collect();
    Load::run(&all, 8, |load| {
        await_that("requests have ended", || load.ok() >= 24);
        killed.signal("KILL");
        let after = now();
        await_that("the others use all of the quota", || {
            judge.most_at_once(after) >= CAP
        });
    });
    assert_eq!(judge.most_at_once(from), CAP);
}

/// A gateway that was stopped for longer than a lease admits nothing with the share that it held
/// before: the others have it by then.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_gateway_that_slept_past_its_lease_claims_nothing() {
    let (_store, judge, fleet) = ready(2);
    let from = now();
    let (awake, sleeper) = (&fleet[0], &fleet[1]);
    assert_eq!(fill(&[sleeper], &judge, from), CAP);
    sleeper.signal("STOP");
    // The other one gets all of the quota once the lease of the sleeper is over.
    let woken = now();
    Load::run(&[awake], 8, |_| {
        await_that("the quota has changed hands", || {
            judge.most_at_once(woken) >= CAP
        });
        sleeper.signal("CONT");
        Load::run(&[sleeper], 8, |load| {
            await_that("the sleeper has asked", || {
                load.ok() + load.limited.load(Ordering::Relaxed) >= 40
            });
        });
    });
    assert_eq!(judge.most_at_once(from), CAP);
}

/// A store that is killed and starts empty, or whose data is removed, lends no more than there is,
/// and lends again.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_store_that_forgets_lends_no_more_than_there_is() {
    let (mut store, judge, fleet) = ready(2);
    let from = now();
    let all: Vec<_> = fleet.iter().collect();
    assert_eq!(fill(&all, &judge, from), CAP);
    store.flush();
    assert_eq!(fill(&all, &judge, from), CAP, "after FLUSHALL");
    store.kill();
    store.restart();
    assert_eq!(fill(&all, &judge, from), CAP, "after a restart");
}

/// A store that has lost its data does not lend a spent budget again: the gateways know from their
/// store of usage what was spent.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_store_that_forgets_renews_no_budget() {
    let (store, judge) = (Store::start(), Judge::start());
    let usage = GATEWAY.file("usage.db", "");
    let settings = format!(
        "accounting = \"sqlite:{}\"\n[[prices]]\nmodel = \"*\"\ninput = \"1000\"\noutput = \"1000\"\n",
        usage.0.display()
    );
    let budget =
        "key = \"*\"\nbudget = { amount = \"0.001\", currency = \"USD\", window = \"month\" }";
    let addresses = vec![store.address(); 2];
    let fleet = fleet::start_with(&addresses, LEASE, &settings, &judge.simulator, budget);
    await_that("the store lends", || status(&fleet[0]) == 200);
    await_that("the budget is spent", || status(&fleet[0]) == 429);
    // The other one has not spent anything itself.
    for gateway in fleet.iter().rev() {
        store.flush();
        await_that("the store is in quarantine", || status(gateway) == 503);
        await_that("the quarantine is over", || status(gateway) != 503);
        assert_eq!(status(gateway), 429);
    }
    assert_eq!(judge.asked(), 1);
}

/// While the store is stopped, requests go on with the shares that gateways hold, then they are
/// refused with 503 without waiting for the store. Once it is back, all is as before.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn a_store_that_falls_silent_holds_up_no_request() {
    let (store, judge, fleet) = ready(2);
    let from = now();
    let all: Vec<_> = fleet.iter().collect();
    assert_eq!(fill(&all, &judge, from), CAP);
    store.signal("STOP");
    await_that("the lease is over", || status(&fleet[0]) == 503);
    let asked = now();
    for _ in 0..20 {
        assert_eq!(status(&fleet[0]), 503);
    }
    // Each would wait for 100 ms if it waited for the store.
    let each = asked.elapsed() / 20;
    assert!(each < Duration::from_millis(100), "{each:?} for a refusal");
    store.signal("CONT");
    assert_eq!(fill(&all, &judge, from), CAP);
}
