//! Runs one mutation: build, test, verdict.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::list::Mutation;
use crate::copy::Copy;
use crate::outcome::{At as _, Outcome};
use crate::times::now;
use crate::{process, rows, workspace};

/// Runs trials in a copy.
pub(super) struct Trials {
    copy: Copy,
    /// The tests that passed without a mutation, and the time that they took, by their arguments.
    unchanged: BTreeMap<String, Outcome<(Vec<String>, Duration)>>,
}

impl Trials {
    pub(super) fn open() -> Outcome<Self> {
        Ok(Self {
            copy: Copy::open("mutate")?,
            unchanged: BTreeMap::new(),
        })
    }

    /// Tries a mutation, the first of `left`. Returns a test that caught it, or the problem.
    pub(super) fn run(&mut self, mutation: &Mutation, left: &[&Mutation]) -> Outcome<String> {
        if !self.unchanged.contains_key(&mutation.tests) {
            self.run_unchanged(mutation, left)?;
        }
        let (passed, took) = self.unchanged[&mutation.tests].clone()?;
        if let Some(row) = without_test(mutation, &passed) {
            let tests = &mutation.tests;
            return Err(format!("`cargo test {tests}` has no test of {row}"));
        }
        self.copy.restore()?;
        let path = self.copy.sources().join(&mutation.file);
        let text = fs::read_to_string(&path).at(&mutation.file)?;
        fs::write(&path, mutation.applied(&text)?).at(&path)?;
        let log = self.log(&mutation.name);
        if !self.test(mutation, BUILD, &log, BUILD_LIMIT)? {
            return Err("does not build".to_owned());
        }
        if self.test(mutation, TEST, &log, took * TIMES_USUAL + AT_LEAST)? {
            return Err("survived".to_owned());
        }
        catching(mutation, &read(&log))
    }

    /// Runs the tests without a mutation: of this mutation, and of all that are `left` whose tests
    /// are in the same programs, since each change of the sources needs a build.
    fn run_unchanged(&mut self, mutation: &Mutation, left: &[&Mutation]) -> Outcome {
        self.copy.restore()?;
        let programs = mutation.arguments().0;
        for other in left.iter().filter(|other| other.arguments().0 == programs) {
            if !self.unchanged.contains_key(&other.tests) {
                let log = self.log(&format!("unchanged-{}", self.unchanged.len()));
                let passed = self.passed(other, &log);
                self.unchanged.insert(other.tests.clone(), passed);
            }
        }
        Ok(())
    }

    /// The file in which the output of a trial is kept for people.
    fn log(&self, name: &str) -> PathBuf {
        self.copy.folder.join(format!("{name}.log"))
    }

    fn passed(&self, mutation: &Mutation, log: &Path) -> Outcome<(Vec<String>, Duration)> {
        let builds = self.test(mutation, BUILD, log, BUILD_LIMIT)?;
        let started = now();
        let passes = builds && self.test(mutation, TEST, log, UNCHANGED)?;
        let passed = named(&read(log), " ... ok");
        if passes && !passed.is_empty() {
            return Ok((passed, started.elapsed()));
        }
        let (tests, log) = (&mutation.tests, log.display());
        Err(format!(
            "`cargo test {tests}` fails, or runs no tests, without a mutation: see {log}"
        ))
    }

    /// Runs the tests of a mutation by the command `line` of cargo, with the output in `log`.
    /// Returns false if one fails, or they do not end within `limit`.
    fn test(&self, mutation: &Mutation, line: &str, log: &Path, limit: Duration) -> Outcome<bool> {
        let (cargo, programs) = mutation.arguments();
        let mut command = workspace::cargo(line);
        self.copy.enter(&mut command);
        command.args(cargo).arg("--").args(programs);
        // A snapshot that differs is a failure, and no new snapshot is proposed.
        command.env("INSTA_UPDATE", "no").stdin(Stdio::null());
        let status = process::bounded(process::logged(&mut command, log)?, limit)?;
        Ok(status.is_some_and(|status| status.success()))
    }
}

/// A test that caught a mutation, by the output of tests that did not all pass.
fn catching(mutation: &Mutation, output: &str) -> Outcome<String> {
    let mut failed = named(output, " ... FAILED");
    // A test that does not end fails as well.
    let ended = named(output, " ... ok");
    let late = named(output, " has been running for over 60 seconds");
    failed.extend(late.into_iter().filter(|test| !ended.contains(test)));
    if let Some(row) = without_test(mutation, &failed) {
        return Err(format!("caught by no test of {row}"));
    }
    let is_of_row = |test: &&String| mutation.rows.iter().any(|row| rows::is_of(test, row));
    let first = failed.iter().find(is_of_row).or(failed.first()).cloned();
    Ok(first.unwrap_or_else(|| "a program that ended early".to_owned()))
}

/// The first row of a mutation that none of these tests is about.
fn without_test<'a>(mutation: &'a Mutation, tests: &[String]) -> Option<&'a str> {
    let mut rows = mutation.rows.iter();
    let row = rows.find(|row| !tests.iter().any(|test| rows::is_of(test, row)));
    row.map(String::as_str)
}

/// The paths of the tests that have this result in the output of Rust's test harness.
fn named(output: &str, result: &str) -> Vec<String> {
    let name = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(result)?;
        Some(name.trim_end_matches(" - should panic").to_owned())
    };
    output.lines().filter_map(name).collect()
}

fn read(log: &Path) -> String {
    String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()
}

/// Builds the tests, and runs them.
const BUILD: &str = "test --locked --no-run";
const TEST: &str = "test --locked";
/// For a clean build on a slow machine.
const BUILD_LIMIT: Duration = Duration::from_mins(60);
const UNCHANGED: Duration = Duration::from_mins(10);
/// Failing tests may take longer, at least the minute after which libtest names those that run.
const TIMES_USUAL: u32 = 3;
const AT_LEAST: Duration = Duration::from_secs(62);

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[&str], output: &str) -> Outcome<String> {
        let mutation = Mutation {
            rows: rows.iter().map(ToString::to_string).collect(),
            ..Mutation::default()
        };
        catching(&mutation, output)
    }

    #[test]
    fn a_test_of_each_row_must_fail() {
        let failed =
            "test a::one ... FAILED\ntest a::c03_u19_one ... FAILED\ntest a::h01_two ... ok\n";
        assert_eq!(of(&[], failed).unwrap(), "a::one");
        assert_eq!(of(&["U19"], failed).unwrap(), "a::c03_u19_one");
        let missed = "caught by no test of H1".to_owned();
        assert_eq!(of(&["U19", "H1"], failed), Err(missed));
    }

    #[test]
    fn tests_that_do_not_end_catch_a_mutation() {
        let hung = "test a::h01_two has been running for over 60 seconds\n";
        assert_eq!(of(&["H1"], hung).unwrap(), "a::h01_two");
        assert!(of(&["H2"], hung).is_err());
        let late = format!("{hung}test a::h01_two ... ok\n");
        assert!(of(&["H1"], &late).is_err());
        assert_eq!(of(&[], &late).unwrap(), "a program that ended early");
    }

    #[test]
    fn results_are_read_by_test() {
        let output = "\
running 4 tests
test a::one ... ok
test a::two - should panic ... ok
test b::three ... FAILED
test b::four ... ignored, slow
";
        assert_eq!(named(output, " ... ok"), ["a::one", "a::two"]);
        assert_eq!(named(output, " ... FAILED"), ["b::three"]);
    }
}
