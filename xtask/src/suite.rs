//! Runs the Rust tests: one build, cargo-nextest for all programs but two, and libtest for these,
//! whose tests share a gateway or a loaded model in one process.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::beside::Beside;
use crate::listed::{self, Program};
use crate::outcome::{At as _, Outcome, no_problems};
use crate::process::Killed;
use crate::times::Times;
use crate::tools::NEXTEST;
use crate::workspace::TEST_FEATURES;
use crate::{fetch_model, needs, process, seed, workspace};

/// Builds everything and runs the tests whose path contains one of `filters`, or all of them, and
/// then also the examples in the documentation.
pub(crate) fn run(times: &mut Times, filters: &[String], seed: u64) -> Outcome {
    times.step("build the tests", build)?;
    let programs = listed::programs()?;
    let is_unknown = |name: &&String| !programs.iter().any(|program| program.has(name));
    if let Some(name) = filters.iter().find(is_unknown) {
        return Err(format!("there is no test whose path contains {name:?}"));
    }
    times.step("build the gateway", product)?;
    let variable = seed::VARIABLE;
    println!("seed {seed}: set {variable}={seed} to repeat this run");
    times.step("Rust tests", || all(&programs, filters, seed))?;
    if !filters.is_empty() {
        return Ok(());
    }
    times.step("examples in the documentation", || {
        let line = "test --workspace --exclude xtask --locked --doc --quiet";
        process::run(&mut workspace::cargo(&[line, TEST_FEATURES].concat()))
    })
}

/// Builds every program and test program of the workspace but xtask's, whose dependencies would
/// enable features for the tests of the product.
pub(crate) fn build() -> Outcome {
    needs::compiler()?;
    process::run(&mut workspace::cargo(&[BUILD, TEST_FEATURES].concat()))
}

/// Builds the gateway with its release features but jemalloc, in place of the one that the build of
/// the tests has left, which has the features that tests enable.
pub(crate) fn product() -> Outcome {
    needs::compiler()?;
    let line = "build --locked --package sluicegate-server --bins";
    process::run(&mut workspace::cargo(&[line, TEST_FEATURES].concat()))
}

/// Downloads the model if it is absent, and builds the gateway and the simulator.
pub(crate) fn ready() -> Outcome {
    fetch_model::run()?;
    build()?;
    product()
}

/// Runs the tests of the embedded model's replies, which a second gateway relays.
pub(crate) fn chained() -> Outcome {
    ready()?;
    let mut tests = listed::find(&listed::programs()?, BLACK_BOX)?.command();
    tests.args(["--test-threads=8", "--skip=understanding::"]);
    tests.args(CHAINED).env("SLUICEGATE_CHAINED", "1");
    process::run(prepared(&mut tests, seed::current()?))
}

/// Runs all Rust tests ten times in a row, each time with a new seed, while fuzz targets run beside
/// them: the tests need a busy neighbour, and fuzzing needs hours of CPU time anyway.
pub(crate) fn ten_runs() -> Outcome {
    let seed = seed::fresh();
    ready()?;
    let programs = listed::programs()?;
    let task = std::env::current_exe().at("the path of this program")?;
    let mut neighbour = Command::new(task);
    neighbour.args(["fuzz", "--minutes", FUZZED]);
    let mut fuzzing = Killed(process::start(neighbour.process_group(0))?);
    (1..=RUNS).try_for_each(|run| {
        println!("\n-- run {run} of {RUNS}");
        all(&programs, &[], seed.wrapping_add(run))?;
        match fuzzing.0.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(format!("run {run} had no neighbour: fuzzing has ended")),
        }
    })
}

/// Runs the existing test programs, those that share a process beside nextest.
fn all(programs: &[Program], filters: &[String], seed: u64) -> Outcome {
    let mut beside = Vec::new();
    for (id, threads) in SHARED {
        let program = listed::find(programs, id)?;
        if filters.is_empty() || filters.iter().any(|name| program.has(name)) {
            let mut tests = program.command();
            tests.arg(threads).args(filters);
            beside.push((id, Beside::start(id, prepared(&mut tests, seed))?));
        }
    }
    let outcome = with_nextest(filters, seed);
    let mut failed = Vec::from_iter(outcome.err());
    for (id, tests) in beside {
        match tests.output() {
            Ok(output) => {
                let summary = output.lines().rfind(|line| line.starts_with("test result"));
                println!("{id}: {}", summary.unwrap_or(&output));
            }
            Err(error) => failed.push(error),
        }
    }
    no_problems("tests failed", &failed)
}

/// Runs the existing test programs with nextest, and afterwards the tests of xtask.
fn with_nextest(filters: &[String], seed: u64) -> Outcome {
    let mut tests = NEXTEST.command("run --profile ci --no-tests pass --binaries-metadata")?;
    tests.arg(listed::binaries_metadata()?).args(filters);
    process::run(prepared(&mut tests, seed))?;
    let mut tests = NEXTEST.command("run --locked --package xtask --no-tests pass")?;
    process::run(prepared(&mut tests, seed).args(filters))
}

/// Sets the environment variables that tests read.
pub(crate) fn prepared(tests: &mut Command, seed: u64) -> &mut Command {
    // A user who has just tried the gateway has its keys in the environment.
    for kind in ["ADMIN", "TEXT", "MESSAGES", "IMAGE"] {
        tests.env_remove(format!("SLUICEGATE_{kind}_KEY"));
    }
    seed::pass(seed, tests);
    tests.env("INSTA_WORKSPACE_ROOT", workspace::root());
    tests.env("CARGO", workspace::cargo_path())
}

/// The build of all tests.
const BUILD: &str = "build --workspace --exclude xtask --bins --tests --locked";
/// The programs whose tests `.config/nextest.toml` leaves out, and how many tests of each run at
/// once: tests of the gateway mostly wait, tests of the model compute.
const SHARED: [(&str, &str); 2] = [
    (BLACK_BOX, "--test-threads=8"),
    ("sluicegate-text-engine::it", "--test-threads=2"),
];
const BLACK_BOX: &str = "sluicegate-server::black_box";
/// The modules of `black_box` whose tests hold through two gateways in a row.
const CHAINED: [&str; 5] = ["chat::", "edits::", "images::", "messages::", "responses::"];
/// The number of test runs in a row, to find flaky tests.
const RUNS: u64 = 10;
/// The number of minutes for which each fuzz target runs beside them.
const FUZZED: &str = "5";
