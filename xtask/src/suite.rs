//! Runs the Rust tests: one build, cargo-nextest for all programs but two, and libtest for these,
//! whose tests share a gateway or a loaded model in one process.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::listed::{self, Program};
use crate::outcome::{At as _, Outcome, no_problems};
use crate::process::Killed;
use crate::times::Times;
use crate::tools::NEXTEST;
use crate::{fetch_model, needs, process, seed, workspace};

/// Builds everything and runs the tests whose path contains one of `filters`, or all of them, and
/// then also the examples in the documentation.
pub(crate) fn run(times: &mut Times, filters: &[String], seed: u64) -> Outcome {
    times.step("build the tests", build)?;
    let programs = listed::programs()?;
    if let Some(name) = filters.iter().find(|name| !is_in(&programs, name)) {
        return Err(format!("there is no test whose path contains {name:?}"));
    }
    times.step("build the gateway", product)?;
    println!(
        "seed {seed}: set {}={seed} to repeat this run",
        seed::VARIABLE
    );
    times.step("Rust tests", || all(&programs, filters, seed))?;
    if !filters.is_empty() {
        return Ok(());
    }
    times.step("examples in the documentation", || {
        let mut examples = workspace::cargo("test");
        examples.args(["--workspace", "--exclude", "xtask", "--locked"]);
        process::run(examples.args(["--doc", "--quiet"]))
    })
}

/// Builds every program and test program of the workspace but xtask's, whose dependencies would
/// enable features for the tests of the product.
pub(crate) fn build() -> Outcome {
    needs::compiler()?;
    let mut build = workspace::cargo("build");
    build.args(["--workspace", "--exclude", "xtask", "--bins", "--tests"]);
    process::run(build.arg("--locked"))
}

/// Builds the gateway with its release features.
///
/// The tests run it from the target folder, where the build of the tests has left one with the
/// features that tests enable.
pub(crate) fn product() -> Outcome {
    needs::compiler()?;
    let mut build = workspace::cargo("build");
    process::run(build.args(["--locked", "--package", "sluicegate-server", "--bins"]))
}

/// Builds the gateway with its release features, and the simulator as the test build has it.
pub(crate) fn binaries() -> Outcome {
    build()?;
    product()
}

/// Runs the tests of the embedded model's replies, which a second gateway relays.
pub(crate) fn chained() -> Outcome {
    fetch_model::run()?;
    binaries()?;
    let programs = listed::programs()?;
    let program = programs.iter().find(|program| program.id == BLACK_BOX);
    let mut tests = program.ok_or("there is no program black_box")?.command();
    tests.args(["--test-threads=8", "--skip=understanding::"]);
    tests.args(CHAINED).env("SLUICEGATE_CHAINED", "1");
    process::run(prepared(&mut tests, seed::current()?))
}

/// Runs all Rust tests ten times in a row, each time with a new seed, while fuzz targets run beside
/// them: the tests need a busy neighbour, and fuzzing needs hours of CPU time anyway.
pub(crate) fn ten_runs() -> Outcome {
    let seed = seed::fresh();
    fetch_model::run()?;
    binaries()?;
    let programs = listed::programs()?;
    let program =
        std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let mut neighbour = Command::new(program);
    neighbour
        .args(["fuzz", "--minutes", FUZZED])
        .process_group(0);
    let mut fuzzing = process::start(&mut neighbour)?;
    let tests = (1..=RUNS).try_for_each(|run| {
        println!("\n-- run {run} of {RUNS}");
        all(&programs, &[], seed.wrapping_add(run))?;
        match fuzzing.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(format!("run {run} had no neighbour: fuzzing has ended")),
        }
    });
    process::end_group(&mut fuzzing)?;
    tests
}

/// Runs the existing test programs, those that share a process beside nextest.
fn all(programs: &[Program], filters: &[String], seed: u64) -> Outcome {
    let mut shared = Vec::new();
    for (id, threads) in SHARED {
        let is_chosen = |program: &&Program| {
            program.id == *id
                && (filters.is_empty() || filters.iter().any(|name| program.has(name)))
        };
        if let Some(program) = programs.iter().find(is_chosen) {
            shared.push(Shared::start(program, *threads, filters, seed)?);
        }
    }
    let outcome = with_nextest(filters, seed);
    let failed: Vec<_> = shared
        .into_iter()
        .filter_map(|shared| shared.finish().err())
        .collect();
    outcome.and(no_problems("tests failed", &failed))
}

/// Runs the existing test programs with nextest, and afterwards the tests of xtask.
fn with_nextest(filters: &[String], seed: u64) -> Outcome {
    let mut tests = NEXTEST.command()?;
    tests.args(["run", "--profile", "ci", "--no-tests", "pass"]);
    tests
        .arg("--binaries-metadata")
        .arg(listed::binaries_metadata()?);
    process::run(prepared(&mut tests, seed).args(filters))?;
    let mut tests = NEXTEST.command()?;
    tests.args(["run", "--locked", "--package", "xtask"]);
    tests.args(["--no-tests", "pass"]).args(filters);
    process::run(prepared(&mut tests, seed))
}

/// A running program whose tests share a process.
struct Shared {
    id: String,
    log: PathBuf,
    child: Killed,
}

impl Shared {
    fn start(program: &Program, threads: usize, filters: &[String], seed: u64) -> Outcome<Self> {
        let name = program.id.replace("::", "-");
        let log = workspace::target()?.join("nextest").join(name + ".log");
        let file = File::create(&log).at(&log)?;
        let mut tests = program.command();
        tests
            .arg(format!("--test-threads={threads}"))
            .args(filters)
            .stdin(Stdio::null())
            .stdout(file.try_clone().at(&log)?)
            .stderr(file);
        let child = Killed(process::start(prepared(&mut tests, seed))?);
        println!("{} runs beside nextest: {}", program.id, log.display());
        Ok(Self {
            id: program.id.clone(),
            log,
            child,
        })
    }

    /// Waits for the end, and prints the summary, or all of the output if a test failed.
    fn finish(mut self) -> Outcome {
        let status = self.child.0.wait().at(&self.id)?;
        let output = fs::read_to_string(&self.log).at(&self.log)?;
        let summary = output.lines().rfind(|line| line.starts_with("test result"));
        println!("{}: {}", self.id, summary.unwrap_or(&output));
        if status.success() {
            return Ok(());
        }
        print!("{output}");
        Err(format!("{} ended with {status}", self.id))
    }
}

/// Sets what tests read from the environment.
pub(crate) fn prepared(tests: &mut Command, seed: u64) -> &mut Command {
    // A user who has just tried the gateway has its keys in the environment.
    for name in KEYS {
        tests.env_remove(name);
    }
    seed::pass(seed, tests);
    tests
        .env("CARGO", workspace::cargo_path())
        .env("INSTA_WORKSPACE_ROOT", workspace::root())
}

fn is_in(programs: &[Program], name: &str) -> bool {
    programs.iter().any(|program| program.has(name))
}

/// The programs of which `.config/nextest.toml` leaves out the tests, and how many tests of each
/// run at once: those of the gateway mostly wait, those of the model compute.
const SHARED: &[(&str, usize)] = &[(BLACK_BOX, 8), ("sluicegate-text-engine::it", 2)];
const BLACK_BOX: &str = "sluicegate-server::black_box";
/// The modules of `black_box` whose tests hold through two gateways in a row.
const CHAINED: [&str; 5] = ["chat::", "edits::", "images::", "messages::", "responses::"];
/// The variables with the keys of a gateway that was started by hand.
const KEYS: [&str; 3] = [
    "SLUICEGATE_TEXT_KEY",
    "SLUICEGATE_MESSAGES_KEY",
    "SLUICEGATE_IMAGE_KEY",
];
/// The number of test runs in a row, to find flaky tests.
const RUNS: u64 = 10;
/// The number of minutes for which each fuzz target runs beside them.
const FUZZED: &str = "5";
