//! `cargo xtask t`: runs format, clippy and tests of one crate, for quick iterations.

use std::ffi::OsString;
use std::process::Command;

use cargo_metadata::{Metadata, Package};

use crate::outcome::Outcome;
use crate::times::Times;
use crate::{fetch_model, process, workspace};

/// Formats, lints and tests the crate that `args` name.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let plan = Plan::parse(args)?;
    let chosen = Chosen::of(&workspace::metadata()?, &plan)?;
    let mut times = Times::of("t");
    let outcome = chosen.run(&mut times, plan.accept);
    times.finish();
    outcome
}

/// The parsed command line.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    name: String,
    filter: Option<String>,
    /// True if snapshots that differ are accepted.
    accept: bool,
}

impl Plan {
    fn parse(args: &[OsString]) -> Outcome<Self> {
        let mut plan = Self::default();
        for arg in args.iter().map(|arg| arg.to_string_lossy()) {
            match &*arg {
                "--accept" => plan.accept = true,
                flag if flag.starts_with('-') => {
                    return Err(format!("unexpected {flag:?}: {USAGE}"));
                }
                word if plan.name.is_empty() => word.clone_into(&mut plan.name),
                word if plan.filter.is_none() => plan.filter = Some(word.to_owned()),
                word => return Err(format!("unexpected {word:?}: {USAGE}")),
            }
        }
        if plan.name.is_empty() {
            Err(USAGE.to_owned())
        } else {
            Ok(plan)
        }
    }
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
    fn of(metadata: &Metadata, plan: &Plan) -> Outcome<Self> {
        let full = format!("sluicegate-{}", plan.name);
        let find =
            |package: &&Package| [full.as_str(), &plan.name].contains(&package.name.as_str());
        let package = metadata.packages.iter().find(find).ok_or_else(|| {
            let names = metadata
                .packages
                .iter()
                .map(|package| package.name.trim_start_matches("sluicegate-"));
            format!(
                "there is no crate {:?}: there are {}",
                plan.name,
                names.collect::<Vec<_>>().join(", ")
            )
        })?;
        let mut parts = plan
            .filter
            .iter()
            .flat_map(|filter| filter.splitn(2, "::"))
            .map(str::to_owned);
        let is_program = |name: &String| {
            package
                .targets
                .iter()
                .any(|target| target.is_test() && target.name == *name)
        };
        let program = parts.next().filter(is_program);
        let filter = if program.is_some() {
            parts.next()
        } else {
            plan.filter.clone()
        };
        Ok(Self {
            package: package.name.to_string(),
            program,
            filter,
        })
    }

    fn run(&self, times: &mut Times, accept: bool) -> Outcome {
        if self.asks_the_model() {
            fetch_model::run()?;
        }
        times.step("format", || {
            process::echoed(workspace::cargo("fmt").args(["--package", &self.package]))
        })?;
        times.step("clippy", || process::echoed(&mut self.clippy()))?;
        times.step("tests", || process::echoed(&mut self.tests(accept)))
    }

    fn clippy(&self) -> Command {
        let targets = if self.program.is_some() {
            &["--lib", "--bins"][..]
        } else {
            &["--all-targets"]
        };
        let mut clippy = self.cargo("clippy");
        clippy.args(targets).args(["--", "-D", "warnings"]);
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

    fn cargo(&self, subcommand: &str) -> Command {
        let mut command = workspace::cargo(subcommand);
        command.args(["--locked", "--package", &self.package]);
        if self.package == SERVER && !self.asks_the_model() {
            // Without the embedded engines it builds in a fraction of the time.
            command.arg("--no-default-features");
            command.args(self.needed_features());
        }
        if let Some(program) = &self.program {
            command.args(["--test", program]);
        }
        command
    }

    /// The arguments that enable what a program cannot do without.
    fn needed_features(&self) -> &'static [&'static str] {
        match self.program.as_deref() {
            Some("shared") => &["--features", "postgres,sqlite,valkey"],
            Some("state") => &["--features", "sqlite"],
            _ => &[],
        }
    }

    /// Returns true if some of these tests need the embedded engines.
    fn asks_the_model(&self) -> bool {
        match self.package.as_str() {
            SERVER => self
                .program
                .as_deref()
                .is_none_or(|program| program == "black_box"),
            package => package == "sluicegate-text-engine",
        }
    }
}

const SERVER: &str = "sluicegate-server";
const USAGE: &str =
    "expected CRATE [TESTS] [--accept], such as `wire`, `wire data_url` or `server upstreams::u07`";

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(line: &str) -> Outcome<Chosen> {
        let plan = Plan::parse(
            &line
                .split_whitespace()
                .map(OsString::from)
                .collect::<Vec<_>>(),
        )?;
        Chosen::of(&workspace::metadata().unwrap(), &plan)
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
        assert!(chosen("").unwrap_err().contains("expected CRATE"));
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
            "cargo test --locked --package sluicegate-server --no-default-features --features sqlite --test state --quiet -- --test-threads=8"
        );
        assert_eq!(
            shown("wire"),
            "cargo test --locked --package sluicegate-wire --quiet --"
        );
    }
}
