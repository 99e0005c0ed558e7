//! The parts of the long tier, and the shares of them that the short tier runs.

use std::ffi::OsString;

use crate::outcome::Outcome;
use crate::tools::DENY;
use crate::{
    advisories, bench, campaign, clients, deps, fuzz, interop, mutate, process, schemathesis,
    suite, workspace,
};

/// A part of the long tier.
pub(super) struct Part {
    pub(super) name: &'static str,
    /// A one-line description.
    pub(super) about: &'static str,
    /// The files and folders whose changes make its result outdated.
    pub(super) area: &'static [&'static str],
    /// The number of commits that may have changed its area since it ran.
    pub(super) most: usize,
    /// Runs it, and sums up its result in a few words.
    pub(super) run: fn() -> Outcome<String>,
}

pub(super) const PARTS: [Part; 15] = [
    Part {
        name: "alone",
        about: "the tests and docs of each protocol crate with its own features only",
        area: &["crates"],
        most: MANY,
        run: || passed(alone()),
    },
    Part {
        name: "deny",
        about: "cargo-deny: licences, bans and sources of all targets",
        area: &["Cargo.lock", "deny.toml"],
        most: 10,
        run: || {
            passed(process::echoed(
                DENY.command()?
                    .args(["--locked", "check", "licenses", "bans", "sources"]),
            ))
        },
    },
    Part {
        name: "advisories",
        about: "the locked packages in the RustSec database",
        area: &["Cargo.lock", "fuzz/Cargo.lock"],
        most: 20,
        run: advisories::part,
    },
    Part {
        name: "chained",
        about: "the replies of the embedded model through two gateways in a row",
        area: &[
            "crates",
            "tests/chained",
            "tests/black_box",
            "tests/testkit",
        ],
        most: MANY,
        run: || passed(suite::chained()),
    },
    Part {
        name: "python",
        about: "all tests of the current and the previous Python SDKs",
        area: &["crates", "tests/clients"],
        most: MANY,
        run: || passed(clients::python_long()),
    },
    Part {
        name: "node",
        about: "the Node SDKs, current and previous",
        area: &["crates", "tests/clients/node"],
        most: MANY,
        run: || passed(clients::node(&[])),
    },
    Part {
        name: "interop",
        about: "the gateway in front of llama-cpp-python",
        area: &["crates", "tests/interop", "tests/testkit"],
        most: MANY,
        run: || passed(interop::run(&[])),
    },
    Part {
        name: "flakes",
        about: "all Rust tests ten times with new seeds, beside fuzz targets, whose runs count for `fuzz`",
        area: &["crates", "tests", "fuzz", "xtask/src/suite"],
        most: MANY,
        run: suite::ten_runs,
    },
    Part {
        name: "fuzz",
        about: "every fuzz target without a recent run for five minutes, to fuzz/LOG.md",
        area: &fuzz::AREA,
        // Together with the age of a recent run that is as many as elsewhere.
        most: MANY - fuzz::RECENT,
        run: fuzz::long,
    },
    Part {
        name: "cuts",
        about: "SSE streams split at every two positions; upstream streams reset after each byte",
        area: &["crates/sse", "crates/upstream", "crates/translate"],
        most: MANY,
        run: || passed(every_cut()),
    },
    Part {
        name: "schemathesis",
        about: "100 random requests an operation, with a new seed",
        area: &["crates", "tests/schemathesis"],
        most: MANY,
        run: schemathesis::long,
    },
    Part {
        name: "campaign",
        about: "a million seeded faults, with a new seed",
        area: &["crates", "tests/campaign", "tests/testkit"],
        most: MANY,
        run: campaign::long,
    },
    Part {
        name: "mutations",
        about: "the mutations that are new, or whose crate has changed often since, to tests/MUTATIONS.md",
        area: &["crates", "tests/mutations"],
        most: MANY,
        run: mutate::renew,
    },
    Part {
        name: "soak",
        about: "long soak tests of the release build, written to tests/benches/SOAK.md",
        area: &["crates", "tests/benches/soak"],
        most: MANY,
        run: || passed(bench::soak(&[OsString::from("--write")])),
    },
    Part {
        name: "cold",
        about: "everything built from an empty target folder",
        area: &["Cargo.lock", "Cargo.toml", "rust-toolchain.toml"],
        most: 20,
        run: || passed(suite::cold_build()),
    },
];

/// For each of these parts, a function that runs a share of it, which takes a few minutes and
/// follows from the seed.
pub(super) const SHARES: [(&str, Share); 4] = [
    ("python", |_| clients::python_previous(&[])),
    ("chained", |_| suite::chained()),
    ("node", |_| clients::node(&[])),
    ("mutations", mutate::share),
];

/// Runs a share of a part, which the seed chooses.
type Share = fn(u64) -> Outcome;

fn passed(outcome: Outcome) -> Outcome<String> {
    outcome.map(|()| "passed".to_owned())
}

/// Tests and documents the crates that are published separately.
fn alone() -> Outcome {
    for package in deps::published()? {
        process::echoed(workspace::cargo("test").args([
            "--locked",
            "--quiet",
            "--package",
            &package,
        ]))?;
        process::echoed(workspace::cargo("doc").args([
            "--locked",
            "--quiet",
            "--no-deps",
            "--package",
            &package,
        ]))?;
    }
    Ok(())
}

fn every_cut() -> Outcome {
    let mut test = workspace::cargo("test");
    test.args([
        "--locked",
        "--profile",
        "quick",
        "--package",
        "sluicegate-sse",
        "--",
        "--ignored",
        "--nocapture",
    ]);
    process::echoed(&mut test)?;
    let mut test = workspace::cargo("test");
    test.args([
        "--locked",
        "--package",
        "sluicegate-server",
        "--no-default-features",
        "--test",
        "upstreams",
    ]);
    process::echoed(test.args(["--", "--ignored", "a_reset_behind_each_byte"]))
}

/// The product gets dozens of commits a day.
const MANY: usize = 150;
