//! `cargo xtask ci`: every check that has to pass before a change lands, in the order that finds a
//! mistake soonest. Each step fails only for a fault in the product, its tests or its pages.

use std::process::Command;

use crate::beside::Beside;
use crate::outcome::Outcome;
use crate::steps::{Selection, Step};
use crate::tools::MDBOOK;
use crate::{bench, campaign, deny, dist, faults, layers, listed, process, schemathesis, seed};
use crate::{servers, suite, test, tidy, workflows, workspace};

/// The steps.
pub(crate) const STEPS: &[Step] = &[
    ("format", "rustfmt", format),
    ("tidy", "the text of every file", tidy::run),
    ("workflows", "actionlint", workflows::run),
    ("layers", "dependencies, imports and features", layers::run),
    ("deny", "licences, packages and sources", || {
        deny::check(&["licenses", "bans", "sources"])
    }),
    ("clippy", "clippy and compiler warnings", clippy),
    ("docs", "rustdoc and the book, without warnings", docs),
    ("tests", "`cargo xtask test`", || {
        test::run(&test::Args::default())
    }),
    ("pages", "lists of tests: FAULTS.md and SERVERS.md", pages),
    ("schemathesis", "random requests against OpenAPI", || {
        schemathesis::examples(10, seed::current()?, &[])
    }),
    ("campaign", "10,000 seeded faults", campaign::short),
    ("instructions", "instruction counts", || {
        bench::instructions(&[])
    }),
];

/// Runs the selected steps. With all of them, the build whose instructions the last one counts runs
/// beside the others at the lowest priority: the tests with real servers leave the processors idle.
pub(crate) fn run(selection: &Selection) -> Outcome {
    if !selection.is_all() {
        return selection.run("ci", STEPS);
    }
    let mut cargo = Command::new("nice");
    cargo.arg("-n19").arg(workspace::cargo_path());
    let _build = Beside::start("counted-build", &mut dist::counted(cargo))?;
    selection.run("ci", STEPS)
}

/// All features but jemalloc.
const FEATURES: &str = " --no-default-features --features candle,client,decode,image-engine,\
                        interop,others,postgres,sqlite,test-util,sluicegate-server/text-engine,valkey";

fn format() -> Outcome {
    process::echoed(&mut workspace::cargo("fmt --all --check"))
}

fn clippy() -> Outcome {
    let line = "clippy --workspace --all-targets --locked";
    process::echoed(workspace::cargo(&[line, FEATURES].concat()).args(["--", "-Dwarnings"]))
}

/// Builds the documentation of the crates and the book, and checks the links of the book. Examples
/// have the dependencies of tests, so with them the dependencies are the ones that clippy has checked.
fn docs() -> Outcome {
    let line = "doc --workspace --no-deps --lib --bins --examples --locked";
    let mut doc = workspace::cargo(&[line, FEATURES].concat());
    process::echoed(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    let mdbook = MDBOOK.command("")?;
    let mut check = Command::new("python3");
    check.arg(workspace::root().join("tests/book/check.py"));
    process::echoed(check.arg(mdbook.get_program()))
}

/// Checks `tests/FAULTS.md` and `tests/SERVERS.md` against the list of tests.
fn pages() -> Outcome {
    suite::build()?;
    let programs = listed::programs()?;
    faults::check(&programs)?;
    servers::check(&programs)
}
