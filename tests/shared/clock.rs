//! A store whose clock is set.

use testkit::await_that;

use crate::faults::{CAP, QUOTA, fill};
use crate::fleet::{self, status};
use crate::judge::{Judge, now};
use crate::store::Store;

/// The clock of the store jumps on by an hour, and back by two.
#[test]
#[ignore = "needs a Valkey and libfaketime: cargo xtask shared"]
fn a_clock_that_jumps_frees_no_permit_with_faketime() {
    let library = std::env::var("SLUICEGATE_FAKETIME");
    let library = library.expect("SLUICEGATE_FAKETIME is the path of libfaketime.so.1");
    let offset = crate::GATEWAY.file("offset", "+0");
    let store = Store::start_with(
        "",
        &[
            ("LD_PRELOAD", library),
            ("FAKETIME_TIMESTAMP_FILE", offset.0.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            // Only what tells the time of day.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ],
    );
    let judge = Judge::start();
    let fleet = fleet::start(3, &store, &judge, QUOTA);
    await_that("the store lends", || status(&fleet[0]) == 200);
    let from = now();
    let all: Vec<_> = fleet.iter().collect();
    let seconds = || -> i64 {
        let mut lines = store.run("EVAL \"return redis.call('TIME')[1]\" 0");
        lines.retain(|c| c.is_ascii_digit());
        lines.parse().unwrap()
    };
    let began = seconds();
    for jump in ["+3600", "-3600"] {
        assert_eq!(fill(&all, &judge, from), CAP, "before {jump}");
        std::fs::write(&offset.0, jump).unwrap();
        let hour: i64 = jump.parse().unwrap();
        await_that("the clock has jumped", || {
            (seconds() - began - hour).abs() < 600
        });
        assert_eq!(fill(&all, &judge, from), CAP, "after {jump}");
    }
}
