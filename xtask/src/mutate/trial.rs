//! Runs one mutation: build, test, verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use std::{fmt, thread};

use super::built::Built;
use super::copy::Copy;
use super::list::Mutation;
use crate::libtest::TestResults;
use crate::outcome::{At as _, Outcome};
use crate::times::now;
use crate::{process, rows};

/// The result of a mutation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// A test failed: one of every row, if the mutation names rows.
    Caught,
    /// The tests did not end, which is noticed as well.
    Hung,
    /// Tests failed, but none of a row that the mutation names.
    Elsewhere,
    /// Every test passed.
    Survived,
    /// It did not compile.
    Unbuilt,
}

impl Verdict {
    /// The verdict for tests with this exit status, or that did not end.
    fn of(mutation: &Mutation, status: Option<ExitStatus>, results: &TestResults) -> Self {
        let catching = catching(status, results);
        let is_caught = |row: &String| catching.iter().any(|test| rows::is_of(test, row));
        match status {
            Some(status) if status.success() => Self::Survived,
            _ if !mutation.rows.iter().all(is_caught) => Self::Elsewhere,
            Some(_) => Self::Caught,
            None => Self::Hung,
        }
    }

    pub(super) fn is_caught(self) -> bool {
        matches!(self, Self::Caught | Self::Hung)
    }

    /// The problem that has to be fixed, if there is one.
    pub(super) fn wrong(self, mutation: &Mutation) -> Option<String> {
        let what = match (self, mutation.survives.is_some()) {
            (Self::Unbuilt, _) => "does not build",
            (Self::Elsewhere, _) => "was caught by other tests than those of its rows",
            (Self::Survived, false) => "survived, and the list has no reason for it (`survives`)",
            (Self::Caught | Self::Hung, true) => "was caught: remove its `survives`",
            (Self::Survived, true) | (Self::Caught | Self::Hung, false) => return None,
        };
        Some(format!("{} {what}", mutation.name))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caught => "caught",
            Self::Hung => "caught (the tests did not end)",
            Self::Elsewhere => "missed by the tests of its rows",
            Self::Survived => "survived",
            Self::Unbuilt => "does not build",
        })
    }
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    /// The tests that caught it, those of its rows first.
    pub(super) by: Vec<String>,
}

impl Finding {
    fn unbuilt() -> Self {
        Self {
            verdict: Verdict::Unbuilt,
            by: Vec::new(),
        }
    }
}

/// The tests that caught a fault: those that failed, or in a run that did not end those that ran
/// for over a minute.
fn catching(status: Option<ExitStatus>, results: &TestResults) -> BTreeSet<&String> {
    let running = results.running.iter().filter(|_| status.is_none());
    results.failed.iter().chain(running).collect()
}

/// Runs trials in a copy.
pub(super) struct Trials {
    copy: Copy,
    /// The number of compilers that may run at once.
    jobs: Option<u16>,
    /// The results of tests without a mutation, by their arguments.
    unchanged: BTreeMap<String, Outcome<Unchanged>>,
}

/// A test run without a mutation.
#[derive(Clone)]
struct Unchanged {
    took: Duration,
    passed: BTreeSet<String>,
}

impl Trials {
    pub(super) fn new(copy: Copy, jobs: Option<u16>) -> Self {
        Self {
            copy,
            jobs,
            unchanged: BTreeMap::new(),
        }
    }

    /// Builds what a trial needs, and keeps it for when it is run. Returns a finding if it does not
    /// build.
    pub(super) fn build(&mut self, mutation: &Mutation) -> Outcome<Option<Finding>> {
        self.built(mutation, State::Unchanged)?;
        let built = self.built(mutation, State::Mutated)?;
        Ok(built.is_none().then(Finding::unbuilt))
    }

    /// Returns true if everything that a trial needs is built.
    pub(super) fn is_built(&self, mutation: &Mutation) -> bool {
        [State::Unchanged, State::Mutated]
            .iter()
            .all(|state| Built::open(&self.folder(mutation, *state)).is_some())
    }

    /// Runs the tests of some mutations without a mutation: all at once, since each change needs a
    /// build.
    pub(super) fn prepare(&mut self, mutations: &[&Mutation]) -> Outcome {
        for mutation in mutations {
            if !self.unchanged.contains_key(&mutation.tests) {
                let unchanged = self.run_unchanged(mutation);
                self.unchanged.insert(mutation.tests.clone(), unchanged);
            }
        }
        Ok(())
    }

    /// # Errors
    ///
    /// If the tests do not pass without the mutation, or there are none, in all or of a row: then
    /// there can be no verdict.
    pub(super) fn run(&mut self, mutation: &Mutation) -> Outcome<Finding> {
        let Mutation {
            name, tests, rows, ..
        } = mutation;
        let unchanged = self.unchanged.get(tests).cloned();
        let unchanged = unchanged
            .ok_or_else(|| format!("{name}: its tests were not run without the mutation"))??;
        if let Some(row) = rows
            .iter()
            .find(|row| !unchanged.passed.iter().any(|test| rows::is_of(test, row)))
        {
            return Err(format!("{name}: `cargo test {tests}` has no test of {row}"));
        }
        let Some(built) = self.built(mutation, State::Mutated)? else {
            return Ok(Finding::unbuilt());
        };
        let log = self.copy.log(name);
        let status = test(
            &built,
            mutation,
            &log,
            unchanged.took * TIMES_USUAL + AT_LEAST,
        )?;
        built.discard()?;
        let results = TestResults::of(&read(&log));
        let mut by: Vec<_> = catching(status, &results).into_iter().cloned().collect();
        by.sort_by_key(|test| !rows.iter().any(|row| rows::is_of(test, row)));
        Ok(Finding {
            verdict: Verdict::of(mutation, status, &results),
            by,
        })
    }

    /// Runs the tests without a mutation.
    fn run_unchanged(&mut self, mutation: &Mutation) -> Outcome<Unchanged> {
        let log = self.copy.log("unchanged");
        if let Some(built) = self.built(mutation, State::Unchanged)? {
            let started = now();
            let passes =
                test(&built, mutation, &log, UNCHANGED)?.is_some_and(|status| status.success());
            let took = started.elapsed();
            let passed = TestResults::of(&read(&log)).passed;
            if passes && !passed.is_empty() {
                return Ok(Unchanged { took, passed });
            }
        }
        let kept = self.copy.log("unfit");
        fs::rename(&log, &kept).at(&log)?;
        let tests = &mutation.tests;
        let log = kept.display();
        Err(format!(
            "`cargo test {tests}` fails, or runs no tests, without a mutation: see {log}"
        ))
    }

    /// The programs of a mutation's tests, built now unless they are kept; `None` if they do not
    /// build.
    fn built(&mut self, mutation: &Mutation, state: State) -> Outcome<Option<Built>> {
        let args = mutation.arguments().0;
        let folder = self.folder(mutation, state);
        if let Some(built) = Built::open(&folder) {
            return Ok(Some(built));
        }
        let log = match state {
            State::Unchanged => self.copy.restore().map(|()| self.copy.log("unchanged"))?,
            State::Mutated => self
                .copy
                .mutate(mutation)
                .map(|()| self.copy.log(&mutation.name))?,
        };
        let mut command = self.copy.cargo("test");
        command
            .args([
                "--locked",
                "--no-run",
                "--message-format",
                "json-render-diagnostics",
            ])
            .args(args);
        command.args(
            self.jobs
                .iter()
                .flat_map(|jobs| ["--jobs".to_owned(), jobs.to_string()]),
        );
        match run(&mut command, &create(&log)?, BUILD)? {
            Some(status) if status.success() => Built::keep(folder, &read(&log)).map(Some),
            _ => Ok(None),
        }
    }

    /// The folder of the programs of a mutation's tests.
    fn folder(&self, mutation: &Mutation, state: State) -> PathBuf {
        self.copy.kept(&match state {
            State::Unchanged => mutation.arguments().0.join("").replace('/', "_"),
            State::Mutated => format!("{}-{}", mutation.name, mutation.mark()),
        })
    }
}

/// The sources that are built: with or without the mutation.
#[derive(Debug, Clone, Copy)]
enum State {
    Unchanged,
    Mutated,
}

/// The exit status of a mutation's tests; `None` if they do not end within `limit`.
fn test(
    built: &Built,
    mutation: &Mutation,
    log: &Path,
    limit: Duration,
) -> Outcome<Option<ExitStatus>> {
    let log = create(log)?;
    let started = now();
    let mut last = None;
    for mut command in built.tests(&mutation.arguments().1)? {
        last = run(&mut command, &log, limit.saturating_sub(started.elapsed()))?;
        if !last.is_some_and(|status| status.success()) {
            break;
        }
    }
    Ok(last)
}

fn create(log: &Path) -> Outcome<File> {
    File::create(log).at(log)
}

fn read(log: &Path) -> String {
    fs::read(log).map_or_else(
        |_| String::new(),
        |text| String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Runs a command for at most `limit`, with its output in a file.
fn run(command: &mut Command, log: &File, limit: Duration) -> Outcome<Option<ExitStatus>> {
    let output = || {
        log.try_clone()
            .map_err(|error| format!("the log of a trial: {error}"))
    };
    command
        .stdin(Stdio::null())
        .stdout(output()?)
        .stderr(output()?);
    // A separate process group, so that processes started by the tests can be ended with them.
    let child = command.process_group(0).spawn();
    let mut child = child.map_err(|error| process::not_started(command, &error))?;
    let started = now();
    while started.elapsed() < limit {
        match child
            .try_wait()
            .map_err(|error| format!("cargo cannot be waited for: {error}"))?
        {
            Some(status) => return Ok(Some(status)),
            None => thread::sleep(PAUSE),
        }
    }
    end(&mut child)?;
    Ok(None)
}

/// Ends a process and all of its group.
fn end(child: &mut Child) -> Outcome {
    process::run(Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]))?;
    child
        .wait()
        .map_err(|error| format!("cargo cannot be waited for: {error}"))?;
    Ok(())
}

/// For a clean build on a slow machine.
const BUILD: Duration = Duration::from_mins(60);
const UNCHANGED: Duration = Duration::from_mins(10);
/// The factor by which tests may take longer than usual, since a failing one may have to wait for
/// something that never happens. It amounts to more than the minute after which libtest names a
/// test that has not ended.
const TIMES_USUAL: u32 = 3;
const AT_LEAST: Duration = Duration::from_secs(62);
const PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn mutation(survives: bool) -> Mutation {
        Mutation {
            name: "one".into(),
            file: "a.rs".into(),
            find: "a".into(),
            replace: String::new(),
            why: "A guard.".into(),
            rows: Vec::new(),
            tests: String::new(),
            slow: false,
            survives: survives.then(|| "No test can catch it.".into()),
        }
    }

    #[test]
    fn only_unexpected_verdicts_are_problems() {
        let wrong = |verdict: Verdict, survives| verdict.wrong(&mutation(survives)).is_some();
        assert!(
            !wrong(Verdict::Caught, false)
                && !wrong(Verdict::Hung, false)
                && !wrong(Verdict::Survived, true)
        );
        assert!(
            wrong(Verdict::Survived, false)
                && wrong(Verdict::Caught, true)
                && wrong(Verdict::Unbuilt, true)
        );
        assert!(wrong(Verdict::Elsewhere, false) && wrong(Verdict::Elsewhere, true));
    }

    #[test]
    fn a_mutation_of_rows_is_caught_by_a_test_of_each() {
        let of = |rows: &[&str], status: Option<i32>, log: &str| {
            let rows = rows.iter().map(ToString::to_string).collect();
            Verdict::of(
                &Mutation {
                    rows,
                    ..mutation(false)
                },
                status.map(ExitStatus::from_raw),
                &TestResults::of(log),
            )
        };
        let failed = "test a::c03_u19_one ... FAILED\ntest a::h01_two ... ok\n";
        assert_eq!(of(&[], Some(1), failed), Verdict::Caught);
        assert_eq!(of(&["U19"], Some(1), failed), Verdict::Caught);
        assert_eq!(of(&["U19", "H1"], Some(1), failed), Verdict::Elsewhere);
        assert_eq!(
            of(&["H1"], Some(0), "test a::h01_two ... ok\n"),
            Verdict::Survived
        );
        let hung = "test a::h01_two has been running for over 60 seconds\n";
        assert_eq!(of(&["H1"], None, hung), Verdict::Hung);
        assert_eq!(of(&["H1"], Some(1), hung), Verdict::Elsewhere);
        assert_eq!(of(&["H2"], None, hung), Verdict::Elsewhere);
        assert_eq!(of(&[], None, ""), Verdict::Hung);
    }

    #[test]
    fn a_run_over_its_limit_is_killed_with_its_children() {
        let log = std::env::temp_dir().join(format!("xtask-trial-{}.log", std::process::id()));
        let file = create(&log).unwrap();
        let ended = run(
            Command::new("sh").args(["-c", "sleep 60 & sleep 60"]),
            &file,
            Duration::from_millis(100),
        );
        assert_eq!(ended, Ok(None));
        let ended = run(
            Command::new("sh").args(["-c", "echo said; exit 3"]),
            &file,
            Duration::from_secs(60),
        );
        assert_eq!(
            ended.map(|status| status.and_then(|status| status.code())),
            Ok(Some(3))
        );
        assert_eq!(fs::read_to_string(&log).unwrap(), "said\n");
        fs::remove_file(log).unwrap();
    }
}
