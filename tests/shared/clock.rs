//! A store whose clock is set.

use testkit::{Scratch, await_that};

use crate::faults::{CAP, QUOTA, await_full};
use crate::fleet::{self, LEASE, status};
use crate::judge::{Judge, now};
use crate::load::Load;
use crate::store::Store;

/// A store, and the file from which it reads how far its clock is off.
struct Clock {
    store: Store,
    offset: Scratch,
    /// The time of the store when its clock was right.
    began: i64,
}

impl Clock {
    fn start() -> Self {
        let library = std::env::var("SLUICEGATE_FAKETIME");
        let library = library.expect("SLUICEGATE_FAKETIME is the path of libfaketime.so.1");
        let offset = crate::GATEWAY.file("offset", "+0");
        let store = Store::start_with(
            "",
            &[
                ("LD_PRELOAD", library),
                ("FAKETIME_TIMESTAMP_FILE", offset.0.display().to_string()),
                ("FAKETIME_NO_CACHE", "1".to_owned()),
                // Changes only the time of day.
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ],
        );
        let began = seconds(&store);
        Self {
            store,
            offset,
            began,
        }
    }

    /// Sets the clock to the right time and so many seconds, and waits until the store has it.
    fn set(&self, offset: i64) {
        std::fs::write(&self.offset.0, format!("{offset:+}")).unwrap();
        await_that("the clock has jumped", || {
            (seconds(&self.store) - self.began - offset).abs() < 600
        });
    }
}

/// The time of a store.
fn seconds(store: &Store) -> i64 {
    let mut text = store.run("EVAL \"return redis.call('TIME')[1]\" 0");
    text.retain(|c| c.is_ascii_digit());
    text.parse().unwrap()
}

/// The times to which the clock is set: on by an hour, back by two, and right again.
const JUMPS: [i64; 3] = [3600, -3600, 0];

/// A jump while requests are in progress ends none of the leases.
#[test]
#[ignore = "needs a Valkey and libfaketime: cargo xtask shared"]
fn a_clock_that_jumps_frees_no_permit_with_faketime() {
    let (clock, judge) = (Clock::start(), Judge::start());
    let fleet = fleet::start(3, &clock.store, &judge, QUOTA);
    await_that("the store lends", || status(&fleet[0]) == 200);
    let from = now();
    let all: Vec<_> = fleet.iter().collect();
    Load::run(&all, 8, |_| {
        await_full(&judge, from);
        for offset in JUMPS {
            clock.set(offset);
            // By then, every lease has been renewed since the jump.
            await_full(&judge, now() + LEASE);
        }
    });
    assert_eq!(judge.most_at_once(from), CAP);
}

/// A jump neither fills a bucket nor stops what flows off. In an hour, an empty bucket of 600 would have
/// filled.
#[test]
#[ignore = "needs a Valkey and libfaketime: cargo xtask shared"]
fn a_clock_that_jumps_fills_no_bucket_with_faketime() {
    let (clock, judge) = (Clock::start(), Judge::start());
    let began = now();
    let fleet = fleet::start(3, &clock.store, &judge, "requests_per_minute = 600");
    let all: Vec<_> = fleet.iter().collect();
    Load::run(&all, 16, |_| {
        await_that("the bucket is empty", || judge.asked() >= 600);
        for offset in JUMPS {
            clock.set(offset);
            let asked = judge.asked();
            await_that("the rate goes on", || judge.asked() >= asked + 50);
            judge.check_rate(began, 600);
        }
    });
}
