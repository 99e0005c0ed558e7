//! `cargo xtask ci`: everything that has to pass, in the order in which a mistake is found soonest.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::tools::DENY;
use crate::{Outcome, campaign, deps, faults, fuzz, process, schemathesis, test, tidy, workspace};

/// Runs every step and stops at the first that fails.
pub(crate) fn run() -> Outcome {
    let start = now();
    for (number, (name, step)) in (1..).zip(STEPS) {
        println!("\n== {number}/{}: {name}", STEPS.len());
        let begun = now();
        let outcome = step();
        let time = told(begun.elapsed());
        outcome.map_err(|error| format!("ci failed at '{name}' after {time}: {error}"))?;
        println!("== {name}: passed in {time}");
    }
    println!("\n== all {} steps passed in {}", STEPS.len(), told(start.elapsed()));
    Ok(())
}

/// What a step is called, and what it does.
type Step = (&'static str, fn() -> Outcome);

const STEPS: &[Step] = &[
    ("format", || step(process::cargo("fmt").args(["--all", "--check"]))),
    ("tidy", tidy::run),
    ("layer table", deps::run),
    ("clippy", || {
        step(process::cargo("clippy").args(["--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))
    }),
    ("docs", || {
        step(process::cargo("doc").args(["--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings"))
    }),
    ("each crate alone", each_alone),
    ("licences, bans and sources", || step(DENY.command()?.args(["--locked", "check", "licenses", "bans", "sources"]))),
    ("fuzz targets", fuzz::smoke),
    ("schemathesis", schemathesis::smoke),
    ("campaign", campaign::usual),
    ("tests", || test::run(&[])),
    ("faults", faults::check),
];

/// The crates that people use without the rest: each is built, tested and documented with its own features only.
fn each_alone() -> Outcome {
    for room in deps::present(&workspace::metadata()?).filter(|room| room.stands_alone()) {
        let package = format!("sluicegate-{}", room.name);
        step(process::cargo("test").args(["--locked", "--quiet", "--package", &package]))?;
        step(process::cargo("doc").args(["--locked", "--quiet", "--no-deps", "--package", &package]))?;
    }
    Ok(())
}

fn step(command: &mut Command) -> Outcome {
    println!("$ {}", process::shown(command));
    process::run(command)
}

#[allow(clippy::disallowed_methods, reason = "how long a step takes is what a person waits for")]
fn now() -> Instant {
    Instant::now()
}

fn told(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
