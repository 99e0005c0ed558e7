//! One mutation: built, tested, judged.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use super::copy::Copy;
use super::list::Mutation;
use crate::{Outcome, process};

/// What came of a mutation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// A test failed.
    Caught,
    /// The tests did not end, which nobody overlooks either.
    Hung,
    /// Every test passed.
    Survived,
    /// It was no mutation.
    Unbuilt,
}

impl Verdict {
    pub(super) fn is_caught(self) -> bool {
        matches!(self, Self::Caught | Self::Hung)
    }

    /// What has to be done about it, if anything has.
    pub(super) fn wrong(self, mutation: &Mutation) -> Option<String> {
        let what = match (self, mutation.survives.is_some()) {
            (Self::Unbuilt, _) => "does not build",
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
            Self::Survived => "survived",
            Self::Unbuilt => "does not build",
        })
    }
}

/// The trials on a copy.
pub(super) struct Trials {
    copy: Copy,
    /// How many compilers may run at once.
    jobs: Option<u16>,
    /// How long tests take when nothing is changed, by their arguments.
    unchanged: BTreeMap<String, Duration>,
}

impl Trials {
    pub(super) fn new(copy: Copy, jobs: Option<u16>) -> Self {
        Self { copy, jobs, unchanged: BTreeMap::new() }
    }

    /// # Errors
    /// When the tests do not pass without the mutation, or there are none: then nothing could be said.
    pub(super) fn run(&mut self, mutation: &Mutation) -> Outcome<Verdict> {
        let usual = match self.unchanged.get(&mutation.tests) {
            Some(usual) => *usual,
            None => self.run_unchanged(&mutation.tests)?,
        };
        self.copy.mutate(mutation)?;
        let log = self.copy.log(&mutation.name);
        if !self.build(&mutation.tests, &log)? {
            return Ok(Verdict::Unbuilt);
        }
        Ok(match self.test(&mutation.tests, &log, usual * TIMES_USUAL + AT_LEAST)? {
            None => Verdict::Hung,
            Some(status) if status.success() => Verdict::Survived,
            Some(_) => Verdict::Caught,
        })
    }

    /// How long the tests take without a mutation.
    fn run_unchanged(&mut self, tests: &str) -> Outcome<Duration> {
        self.copy.restore()?;
        let log = self.copy.log("unchanged");
        let passes = self.build(tests, &log)?;
        let begun = now();
        let passes = passes && self.test(tests, &log, UNCHANGED)?.is_some_and(|status| status.success());
        let took = begun.elapsed();
        if !passes || count(&fs::read_to_string(&log).unwrap_or_default()) == 0 {
            return Err(format!(
                "`cargo test {tests}` does not pass, or is nothing, before anything is changed: see {}",
                log.display()
            ));
        }
        self.unchanged.insert(tests.to_owned(), took);
        Ok(took)
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

/// How many tests passed, by what libtest printed.
fn count(log: &str) -> u64 {
    let results = log.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    results.filter_map(|result| result.split(' ').next()?.parse::<u64>().ok()).sum()
}

#[allow(clippy::disallowed_methods, reason = "tests that do not end have to be given up")]
fn now() -> Instant {
    Instant::now()
}

/// A build from nothing, on a slow machine.
const BUILD: Duration = Duration::from_mins(60);
const UNCHANGED: Duration = Duration::from_mins(10);
/// How much longer than usual tests may take, since a failing one may have to wait for what never comes.
const TIMES_USUAL: u32 = 3;
const AT_LEAST: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn mutation(survives: bool) -> Mutation {
        Mutation {
            name: "one".into(),
            file: "a.rs".into(),
            find: "a".into(),
            replace: String::new(),
            why: "A guard.".into(),
            tests: String::new(),
            survives: survives.then(|| "Nobody can tell.".into()),
        }
    }

    #[test]
    fn only_what_the_list_does_not_expect_is_wrong() {
        let wrong = |verdict: Verdict, survives| verdict.wrong(&mutation(survives)).is_some();
        assert!(!wrong(Verdict::Caught, false) && !wrong(Verdict::Hung, false) && !wrong(Verdict::Survived, true));
        assert!(wrong(Verdict::Survived, false) && wrong(Verdict::Caught, true) && wrong(Verdict::Unbuilt, true));
    }

    #[test]
    fn passed_tests_are_counted() {
        let log =
            "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored\n\ntest result: ok. 3 passed; 0 failed\n";
        assert_eq!(count(log), 5);
        assert_eq!(count("test result: FAILED. 1 passed"), 0);
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
