//! Runs the Rust tests: one build, whose test programs run in parallel.

mod pool;
mod programs;

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use self::pool::Ran;
use self::programs::Program;
pub(crate) use self::programs::{build, product};
use crate::outcome::{Outcome, no_problems};
use crate::times::{Times, shown};
use crate::{fetch_model, passed, process, seed, workspace};

/// Builds everything and runs the tests whose path contains one of `filters`, or all of them.
///
/// A complete run saves the list of passed tests for `cargo xtask faults --check`.
pub(crate) fn run(times: &mut Times, filters: &[String], seed: u64) -> Outcome {
    let mut programs = times.step("build the tests", build)?;
    programs.retain(|program| !program.root.starts_with(LATER));
    times.step("build the gateway", product)?;
    let ran = times.step("Rust tests", || {
        println!(
            "seed {seed}: set {}={seed} to repeat this run",
            seed::VARIABLE
        );
        let ran = pool::run(programs, filters, seed)?;
        print!("{}", slowest(&ran));
        judge(&ran)?;
        Ok(ran)
    })?;
    if !filters.is_empty() {
        return Ok(());
    }
    let passed: BTreeSet<_> = ran.into_iter().flat_map(|ran| ran.passed).collect();
    println!("{} tests passed", passed.len());
    passed::keep(&passed)?;
    let mut examples = workspace::cargo("test");
    examples.args([
        "--workspace",
        "--exclude",
        "xtask",
        "--locked",
        "--doc",
        "--quiet",
    ]);
    times.step("examples in the documentation", || {
        process::run(&mut examples)
    })
}

/// Builds the gateway with its release features, and the simulator as the test build has it.
pub(crate) fn binaries() -> Outcome {
    build()?;
    product()
}

/// Runs the programs that only the long tier runs: the replies of the embedded model, relayed by a
/// second gateway.
pub(crate) fn chained() -> Outcome {
    once(seed::current()?, |program| program.root.starts_with(LATER))
}

fn once(seed: u64, is_chosen: impl Fn(&Program) -> bool) -> Outcome {
    fetch_model::run()?;
    let programs = build()?.into_iter().filter(is_chosen).collect();
    product()?;
    println!("seed {seed}");
    judge(&pool::run(programs, &[], seed)?)
}

/// Runs all Rust tests ten times in a row, each time with a new seed, while fuzz targets run beside
/// them for [`FUZZED`] minutes each: the tests need a busy neighbour, and fuzzing needs hours of CPU
/// time anyway. A failure that a seed finds becomes a test case.
pub(crate) fn ten_runs() -> Outcome<String> {
    let seed = seed::fresh();
    let program =
        std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let mut neighbour = Command::new(program);
    neighbour.args(["fuzz", "--minutes", FUZZED, "--log"]);
    neighbour.process_group(0);
    // A process of its own, because the log counts the CPU time of all children of a process.
    let mut fuzzing = process::start(&mut neighbour)?;
    let tests = (1..=RUNS).try_for_each(|run| {
        println!("\n-- run {run} of {RUNS}");
        once(seed.wrapping_add(run), |program| {
            !program.root.starts_with(LATER)
        })?;
        let is_running = fuzzing.try_wait().is_ok_and(|status| status.is_none());
        if is_running {
            Ok(())
        } else {
            Err(format!("run {run} had no neighbour: fuzzing has ended"))
        }
    });
    // A finding of it is in its log, by which the short tier fails.
    process::end_group(&mut fuzzing)?;
    tests?;
    Ok(format!(
        "passed {RUNS} times, seeds {} to {}",
        seed.wrapping_add(1),
        seed.wrapping_add(RUNS)
    ))
}

/// Builds everything in a separate target folder that is empty before, and removes it.
pub(crate) fn cold_build() -> Outcome {
    let folder = workspace::target()?.join("cold");
    let clear = || match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    };
    clear()?;
    let mut build = workspace::cargo("build");
    build
        .args([
            "--workspace",
            "--exclude",
            "xtask",
            "--bins",
            "--tests",
            "--locked",
            "--target-dir",
        ])
        .arg(&folder);
    process::run(&mut build)?;
    clear()
}

/// Reports every program that failed, in one message.
fn judge(ran: &[Ran]) -> Outcome {
    let failed: Vec<_> = ran.iter().filter_map(|ran| ran.failure.clone()).collect();
    no_problems("tests failed", &failed)
}

/// The slowest programs, as a table.
fn slowest(ran: &[Ran]) -> String {
    let mut ran: Vec<_> = ran.iter().collect();
    ran.sort_by_key(|ran| std::cmp::Reverse(ran.took));
    ran.iter()
        .take(SHOWN)
        .map(|ran| format!("{:>12}  {}\n", shown(ran.took), ran.program.root))
        .collect()
}

/// The folder of the programs that only the long tier runs.
const LATER: &str = "tests/chained";
/// The number of test runs in a row, to find flaky tests.
const RUNS: u64 = 10;
/// The number of minutes for which each fuzz target runs beside them.
const FUZZED: &str = "5";
/// The number of programs in the table of the slowest.
const SHOWN: usize = 12;
