//! `cargo xtask t`: runs format, clippy and tests of one crate, for quick iterations.

use std::process::Command;

use cargo_metadata::{Metadata, Package};

use crate::outcome::{Outcome, unknown};
use crate::times::Times;
use crate::{fetch_model, process, workspace};

/// The command line.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub(crate) struct Args {
    /// The folder of a crate: `wire`
    #[arg(value_name = "CRATE")]
    name: String,
    /// A part of the names of tests, a test program, or both: `data_url`, `upstreams`, `upstreams::u07`
    #[arg(value_name = "TESTS")]
    filter: Option<String>,
    /// Accept snapshots that differ
    #[arg(long)]
    accept: bool,
}

/// Formats, lints and tests the crate.
pub(crate) fn run(args: &Args) -> Outcome {
    let chosen = Chosen::of(&workspace::metadata()?, args)?;
    let mut times = Times::of("t");
    if chosen.asks_the_model() {
        fetch_model::run()?;
    }
    let mut format = workspace::cargo("fmt --package");
    format.arg(&chosen.package);
    times.step("format", || process::echoed(&mut format))?;
    times.step("clippy", || process::echoed(&mut chosen.clippy()))?;
    times.step("tests", || process::echoed(&mut chosen.tests(args.accept)))
}

/// A package, one or all of its test programs, and the tests within.
#[derive(Debug, PartialEq)]
struct Chosen {
    package: String,
    /// The test program; all of the package's if absent.
    program: Option<String>,
    /// A part of the names of the tests.
    filter: Option<String>,
}

impl Chosen {
    fn of(metadata: &Metadata, args: &Args) -> Outcome<Self> {
        let Args { name, filter, .. } = args;
        let short = |package: &Package| package.name.trim_start_matches("sluicegate-").to_owned();
        let mut packages = metadata.packages.iter();
        let package = packages.find(|package| short(package) == *name);
        let package = package.ok_or_else(|| {
            let names: Vec<_> = metadata.packages.iter().map(short).collect();
            unknown("crate", name, &names)
        })?;
        let filter = filter.as_deref().unwrap_or_default();
        let (program, rest) = filter.split_once("::").unwrap_or((filter, ""));
        let mut targets = package.targets.iter();
        let is_program = targets.any(|target| target.is_test() && target.name == program);
        let filter = if is_program { rest } else { filter };
        Ok(Self {
            package: package.name.to_string(),
            program: is_program.then(|| program.to_owned()),
            filter: (!filter.is_empty()).then(|| filter.to_owned()),
        })
    }

    fn clippy(&self) -> Command {
        let mut clippy = self.cargo(match self.program {
            Some(_) => "clippy --lib --bins",
            None => "clippy --all-targets",
        });
        clippy.args(["--", "-D", "warnings"]);
        clippy
    }

    fn tests(&self, accept: bool) -> Command {
        let mut tests = self.cargo("test");
        tests.args(["--quiet", "--"]).args(&self.filter);
        if self.package == SERVER {
            // They mostly wait for a gateway that runs as another process.
            tests.arg("--test-threads=8");
        }
        if accept {
            tests.env("INSTA_UPDATE", "always");
        }
        tests
    }

    fn cargo(&self, line: &str) -> Command {
        let mut command = workspace::cargo(line);
        command.args(["--locked", "--package", &self.package]);
        if self.package == SERVER && !self.asks_the_model() {
            // Without the embedded engines it builds in a fraction of the time.
            command.arg("--no-default-features");
        }
        if let Some(program) = &self.program {
            command.args(features(program)).args(["--test", program]);
        }
        command
    }

    /// Returns true if some of these tests need the embedded engines.
    fn asks_the_model(&self) -> bool {
        match (&*self.package, self.program.as_deref()) {
            (SERVER, program) => program.is_none_or(|program| program == "black_box"),
            (package, _) => package == "sluicegate-text-engine",
        }
    }
}

/// The arguments that enable the features that a test program of the server needs.
fn features(program: &str) -> &'static [&'static str] {
    match program {
        "book" | "shared" => &["--features=postgres,sqlite,valkey"],
        "state" => &["--features=sqlite"],
        _ => &[],
    }
}

const SERVER: &str = "sluicegate-server";

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(line: &str) -> Outcome<Chosen> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let args = Args {
            name: words.next().unwrap(),
            filter: words.next(),
            accept: false,
        };
        Chosen::of(&workspace::metadata().unwrap(), &args)
    }

    #[test]
    fn a_crate_is_chosen_by_its_folder_and_a_program_by_its_name() {
        let expected = |package: &str, program: Option<&str>, filter: Option<&str>| Chosen {
            package: package.to_owned(),
            program: program.map(str::to_owned),
            filter: filter.map(str::to_owned),
        };
        assert_eq!(chosen("wire"), Ok(expected("sluicegate-wire", None, None)));
        assert_eq!(
            chosen("wire read::depth"),
            Ok(expected("sluicegate-wire", None, Some("read::depth")))
        );
        assert_eq!(
            chosen("server upstreams"),
            Ok(expected(SERVER, Some("upstreams"), None))
        );
        assert_eq!(
            chosen("server upstreams::u07"),
            Ok(expected(SERVER, Some("upstreams"), Some("u07")))
        );
        assert_eq!(
            chosen("xtask times"),
            Ok(expected("xtask", None, Some("times")))
        );
        assert!(
            chosen("cellar")
                .unwrap_err()
                .starts_with("there is no crate \"cellar\": there are ")
        );
    }

    #[test]
    fn features_are_built_for_tests_that_need_them_alone() {
        let shown = |line: &str| process::shown(&chosen(line).unwrap().tests(false));
        assert_eq!(
            shown("server upstreams::u07"),
            "cargo test --locked --package sluicegate-server --no-default-features --test upstreams --quiet -- u07 --test-threads=8"
        );
        assert_eq!(
            shown("server black_box"),
            "cargo test --locked --package sluicegate-server --test black_box --quiet -- --test-threads=8"
        );
        assert_eq!(
            shown("server state"),
            "cargo test --locked --package sluicegate-server --no-default-features --features=sqlite --test state --quiet -- --test-threads=8"
        );
        assert_eq!(
            shown("wire"),
            "cargo test --locked --package sluicegate-wire --quiet --"
        );
    }
}
