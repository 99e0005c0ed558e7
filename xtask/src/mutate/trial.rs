//! One mutation: built, tested, judged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use super::copy::Copy;
use super::heard::Heard;
use super::list::Mutation;
use crate::{Outcome, faults, process};

/// What came of a mutation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// A test failed: one of every row, where the mutation names rows.
    Caught,
    /// The tests did not end, which nobody overlooks either.
    Hung,
    /// Tests failed, but none of a row that the mutation names.
    Elsewhere,
    /// Every test passed.
    Survived,
    /// It was no mutation.
    Unbuilt,
}

impl Verdict {
    /// The verdict on tests that ended so, or that did not end.
    fn of(mutation: &Mutation, status: Option<ExitStatus>, heard: &Heard) -> Self {
        let catching = catching(status, heard);
        let is_caught = |row: &String| catching.iter().any(|test| faults::is_of(test, row));
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

    /// What has to be done about it, if anything has.
    pub(super) fn wrong(self, mutation: &Mutation) -> Option<String> {
        let what = match (self, mutation.survives.is_some()) {
            (Self::Unbuilt, _) => "does not build",
            (Self::Elsewhere, _) => "was caught by other tests than those of its rows",
            (Self::Survived, false) => "survived, and the list has no reason for it (`survives`)",
            (Self::Caught | Self::Hung, true) => "was caught: take its `survives` away",
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

/// What a trial came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    /// The tests that caught it, those of its rows first.
    pub(super) by: Vec<String>,
}

/// The tests that show a fault: those that failed, or in a run that did not end those that were at it for a minute.
fn catching(status: Option<ExitStatus>, heard: &Heard) -> BTreeSet<&String> {
    let running = heard.running.iter().filter(|_| status.is_none());
    heard.failed.iter().chain(running).collect()
}

/// The trials on a copy.
pub(super) struct Trials {
    copy: Copy,
    /// How many compilers may run at once.
    jobs: Option<u16>,
    /// What tests come to when nothing is changed, by their arguments.
    unchanged: BTreeMap<String, Outcome<Unchanged>>,
}

/// Tests that nothing was changed for.
#[derive(Clone)]
struct Unchanged {
    took: Duration,
    passed: BTreeSet<String>,
}

impl Trials {
    pub(super) fn new(copy: Copy, jobs: Option<u16>) -> Self {
        Self { copy, jobs, unchanged: BTreeMap::new() }
    }

    /// Runs the tests of some mutations while nothing is changed: at once, since each change means a build.
    pub(super) fn prepare(&mut self, mutations: &[&Mutation]) -> Outcome {
        self.copy.restore()?;
        for tests in mutations.iter().map(|mutation| &mutation.tests) {
            if !self.unchanged.contains_key(tests) {
                let unchanged = self.run_unchanged(tests);
                self.unchanged.insert(tests.clone(), unchanged);
            }
        }
        Ok(())
    }

    /// # Errors
    /// When the tests do not pass without the mutation, or there are none, in all or of a row: then nothing could be
    /// said.
    pub(super) fn run(&mut self, mutation: &Mutation) -> Outcome<Finding> {
        let Mutation { name, tests, rows, .. } = mutation;
        let unchanged = self.unchanged.get(tests).cloned();
        let unchanged = unchanged.ok_or_else(|| format!("{name}: its tests were not run before"))??;
        if let Some(row) = rows.iter().find(|row| !unchanged.passed.iter().any(|test| faults::is_of(test, row))) {
            return Err(format!("{name}: `cargo test {tests}` has no test of {row}"));
        }
        self.copy.mutate(mutation)?;
        let log = self.copy.log(name);
        if !self.build(tests, &log)? {
            return Ok(Finding { verdict: Verdict::Unbuilt, by: Vec::new() });
        }
        let status = self.test(tests, &log, unchanged.took * TIMES_USUAL + AT_LEAST)?;
        let heard = Heard::of(&fs::read_to_string(&log).unwrap_or_default());
        let mut by: Vec<_> = catching(status, &heard).into_iter().cloned().collect();
        by.sort_by_key(|test| !rows.iter().any(|row| faults::is_of(test, row)));
        Ok(Finding { verdict: Verdict::of(mutation, status, &heard), by })
    }

    /// How the tests do without a mutation.
    fn run_unchanged(&self, tests: &str) -> Outcome<Unchanged> {
        let log = self.copy.log("unchanged");
        let passes = self.build(tests, &log)?;
        let begun = now();
        let passes = passes && self.test(tests, &log, UNCHANGED)?.is_some_and(|status| status.success());
        let took = begun.elapsed();
        let passed = Heard::of(&fs::read_to_string(&log).unwrap_or_default()).passed;
        if passes && !passed.is_empty() {
            return Ok(Unchanged { took, passed });
        }
        let kept = self.copy.log("unfit");
        fs::rename(&log, &kept).map_err(|error| format!("{}: {error}", log.display()))?;
        Err(format!(
            "`cargo test {tests}` does not pass, or is nothing, before anything is changed: see {}",
            kept.display()
        ))
    }

    /// Whether the copy builds.
    fn build(&self, tests: &str, log: &Path) -> Outcome<bool> {
        let mut command = self.command(&["--no-run"], tests);
        Ok(run(&mut command, log, BUILD)?.is_some_and(|status| status.success()))
    }

    /// How the tests end; `None` when they do not within `limit`.
    fn test(&self, tests: &str, log: &Path, limit: Duration) -> Outcome<Option<ExitStatus>> {
        run(&mut self.command(&[], tests), log, limit)
    }

    fn command(&self, first: &[&str], tests: &str) -> Command {
        let mut command = self.copy.cargo("test");
        command.arg("--locked").args(first);
        if let Some(jobs) = self.jobs {
            command.arg("--jobs").arg(jobs.to_string());
        }
        command.args(tests.split_whitespace());
        command
    }
}

/// Runs a command, its output in a file, for at most `limit`.
fn run(command: &mut Command, log: &Path, limit: Duration) -> Outcome<Option<ExitStatus>> {
    let told = |error| format!("{}: {error}", log.display());
    let file = File::create(log).map_err(told)?;
    command.stdin(Stdio::null()).stdout(file.try_clone().map_err(told)?).stderr(file);
    // A group of its own: what the tests have started ends with them.
    let child = command.process_group(0).spawn();
    let mut child = child.map_err(|error| process::not_started(command, &error))?;
    let begun = now();
    while begun.elapsed() < limit {
        match child.try_wait().map_err(|error| format!("cargo cannot be waited for: {error}"))? {
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
    child.wait().map_err(|error| format!("cargo cannot be waited for: {error}"))?;
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "tests that do not end have to be given up")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// A build from nothing, on a slow machine.
const BUILD: Duration = Duration::from_mins(60);
const UNCHANGED: Duration = Duration::from_mins(10);
/// How much longer than usual tests may take, since a failing one may have to wait for what never comes. It is more than
/// the minute after which libtest names a test that has not ended.
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
            survives: survives.then(|| "Nobody can tell.".into()),
        }
    }

    #[test]
    fn only_what_the_list_does_not_expect_is_wrong() {
        let wrong = |verdict: Verdict, survives| verdict.wrong(&mutation(survives)).is_some();
        assert!(!wrong(Verdict::Caught, false) && !wrong(Verdict::Hung, false) && !wrong(Verdict::Survived, true));
        assert!(wrong(Verdict::Survived, false) && wrong(Verdict::Caught, true) && wrong(Verdict::Unbuilt, true));
        assert!(wrong(Verdict::Elsewhere, false) && wrong(Verdict::Elsewhere, true));
    }

    #[test]
    fn a_mutation_of_rows_is_caught_by_a_test_of_each() {
        let of = |rows: &[&str], status: Option<i32>, log: &str| {
            let rows = rows.iter().map(ToString::to_string).collect();
            Verdict::of(&Mutation { rows, ..mutation(false) }, status.map(ExitStatus::from_raw), &Heard::of(log))
        };
        let failed = "test a::c03_u19_one ... FAILED\ntest a::h01_two ... ok\n";
        assert_eq!(of(&[], Some(1), failed), Verdict::Caught);
        assert_eq!(of(&["U19"], Some(1), failed), Verdict::Caught);
        assert_eq!(of(&["U19", "H1"], Some(1), failed), Verdict::Elsewhere);
        assert_eq!(of(&["H1"], Some(0), "test a::h01_two ... ok\n"), Verdict::Survived);
        let hung = "test a::h01_two has been running for over 60 seconds\n";
        assert_eq!(of(&["H1"], None, hung), Verdict::Hung);
        assert_eq!(of(&["H1"], Some(1), hung), Verdict::Elsewhere);
        assert_eq!(of(&["H2"], None, hung), Verdict::Elsewhere);
        assert_eq!(of(&[], None, ""), Verdict::Hung);
    }

    #[test]
    fn what_does_not_end_is_ended_with_all_that_it_started() {
        let log = std::env::temp_dir().join(format!("xtask-trial-{}.log", std::process::id()));
        let ended = run(Command::new("sh").args(["-c", "sleep 60 & sleep 60"]), &log, Duration::from_millis(100));
        assert_eq!(ended, Ok(None));
        let ended = run(Command::new("sh").args(["-c", "echo said; exit 3"]), &log, Duration::from_secs(60));
        assert_eq!(ended.map(|status| status.and_then(|status| status.code())), Ok(Some(3)));
        assert_eq!(fs::read_to_string(&log).unwrap(), "said\n");
        fs::remove_file(log).unwrap();
    }
}
