//! Runs test programs in parallel: those that compute share the CPUs, and those that mostly wait
//! for a gateway run beside them, many tests at once.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::programs::Program;
use crate::libtest::{self, TestResults};
use crate::outcome::{At as _, Outcome};
use crate::passed::Passed;
use crate::process::{self, Killed};
use crate::times::{now, shown};
use crate::{gateway, seed, workspace};

/// A test program that has ended, or was killed.
pub(super) struct Ran {
    pub(super) program: Program,
    pub(super) took: Duration,
    /// The tests that passed.
    pub(super) passed: BTreeSet<Passed>,
    /// The reason why the program counts as failed, if it does.
    pub(super) failure: Option<String>,
}

/// Runs every program, or the tests in them whose path contains one of `filters`.
pub(super) fn run(programs: Vec<Program>, filters: &[String], seed: u64) -> Outcome<Vec<Ran>> {
    let logs = workspace::target()?.join("tests");
    fs::create_dir_all(&logs).at(&logs)?;
    let pool = &Pool {
        queue: Mutex::new(Queue::of(programs)),
        filters,
        seed,
        logs,
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let kinds = iter::once(Kind::Waiting).chain(iter::repeat_n(Kind::Computing, cores));
    Ok(thread::scope(|scope| {
        let workers: Vec<_> = kinds
            .map(|kind| scope.spawn(move || pool.work(kind)))
            .collect();
        // A worker that panics is a bug of xtask, and ends it.
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_default())
            .collect()
    }))
}

/// The state that the workers share.
struct Pool<'a> {
    queue: Mutex<Queue>,
    filters: &'a [String],
    seed: u64,
    logs: PathBuf,
}

/// The way a program spends its time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Using the CPU.
    Computing,
    /// Waiting for a gateway that runs as another process.
    Waiting,
}

impl Kind {
    fn of(program: &Program) -> Self {
        if program.root.starts_with("tests/") {
            Self::Waiting
        } else {
            Self::Computing
        }
    }

    /// The number of tests of one program that run at once. With a single one, the harness would
    /// print names and results apart.
    fn threads(self) -> usize {
        match self {
            Self::Computing => 2,
            Self::Waiting => 8,
        }
    }
}

/// The programs that have not been started yet.
struct Queue {
    programs: VecDeque<Program>,
    taken: usize,
}

impl Queue {
    fn of(mut programs: Vec<Program>) -> Self {
        // The longest first, so that none of them runs alone at the end.
        programs.sort_by_key(|program| {
            let place = LONG
                .iter()
                .position(|folder| program.root.starts_with(folder));
            (place.unwrap_or(LONG.len()), program.root.clone())
        });
        Self {
            programs: programs.into(),
            taken: 0,
        }
    }

    /// The next program of this kind, or of the other if there is none left, and its place among
    /// all.
    fn take(&mut self, kind: Kind) -> Option<(Program, String)> {
        let count = self.taken + self.programs.len();
        let next = self
            .programs
            .iter()
            .position(|program| Kind::of(program) == kind);
        let program = self.programs.remove(next.unwrap_or(0))?;
        self.taken += 1;
        Some((program, format!("{}/{count}", self.taken)))
    }
}

impl Pool<'_> {
    fn work(&self, kind: Kind) -> Vec<Ran> {
        let next = || {
            self.queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(kind)
        };
        let mut all = Vec::new();
        while let Some((program, place)) = next() {
            println!("[{place}] {} …", program.root);
            all.push(self.one(program, &place));
        }
        all
    }

    /// Runs one program to its end.
    fn one(&self, program: Program, place: &str) -> Ran {
        let root = &program.root;
        let log = self.logs.join(format!(
            "{}.log",
            root.trim_end_matches(".rs").replace('/', "-")
        ));
        let begun = now();
        let status = self
            .start(&program, &log)
            .and_then(|mut child| wait(&mut child.0, &log, root));
        let took = begun.elapsed();
        let output = read(&log);
        let results = TestResults::of(&output);
        let failure = failure(status, &results, &log).map(|why| format!("{root}{why}"));
        if failure.is_some() {
            // In one piece, so that output of other programs does not interleave.
            eprintln!("---- {root} ----\n{}", libtest::failures(&output));
        }
        let failed = match results.failed.len() {
            0 => String::new(),
            failed => format!(", {failed} FAILED"),
        };
        println!(
            "[{place}] {root}: {} passed{failed} in {}",
            results.passed.len(),
            shown(took)
        );
        let passed = results
            .passed
            .iter()
            .map(|path| Passed::new(root, path))
            .collect();
        Ran {
            program,
            took,
            passed,
            failure,
        }
    }

    fn start(&self, program: &Program, log: &Path) -> Outcome<Killed> {
        let file = File::create(log).at(log)?;
        let mut command = Command::new(&program.executable);
        command
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder);
        command
            .env("CARGO", workspace::cargo_path())
            .env("INSTA_WORKSPACE_ROOT", workspace::root());
        // A user who has just tried the gateway has its keys in the environment.
        for (name, _) in gateway::KEYS {
            command.env_remove(name);
        }
        command
            .arg(format!("--test-threads={}", Kind::of(program).threads()))
            .args(self.filters);
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().at(log)?)
            .stderr(file);
        seed::pass(self.seed, &mut command);
        process::start(&mut command).map(Killed)
    }
}

/// Waits for a program, and reports its progress now and then. There is no status if no test ends
/// for too long.
fn wait(child: &mut Child, log: &Path, root: &str) -> Outcome<Option<ExitStatus>> {
    let mut count = 0;
    let mut moved = now();
    let mut reported = now();
    loop {
        match child
            .try_wait()
            .map_err(|error| format!("it cannot be waited for: {error}"))?
        {
            Some(status) => return Ok(Some(status)),
            None => thread::sleep(LOOK),
        }
        if reported.elapsed() < REPORT {
            continue;
        }
        reported = now();
        let results = TestResults::of(&read(log));
        if results.count() > count {
            count = results.count();
            moved = now();
        } else if moved.elapsed() > STUCK {
            return Ok(None);
        }
        println!("    {root}: {count} tests so far");
    }
}

/// The reason why a program with this end failed, to be put behind its name.
fn failure(
    status: Outcome<Option<ExitStatus>>,
    results: &TestResults,
    log: &Path,
) -> Option<String> {
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    match status {
        Err(why) => Some(format!(": {why}")),
        Ok(None) => Some(format!(
            ": no test ended for {}: {}",
            shown(STUCK),
            list(&results.running)
        )),
        Ok(Some(status)) if status.success() => None,
        Ok(Some(status)) if results.failed.is_empty() => {
            Some(format!(" ended with {status}; see {}", log.display()))
        }
        Ok(Some(_)) => Some(format!(
            ": {}; see {}",
            list(&results.failed),
            log.display()
        )),
    }
}

/// The output of a program so far.
fn read(log: &Path) -> String {
    fs::read(log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

/// The root files of the programs that take longest, the longest first.
const LONG: &[&str] = &[
    "tests/upstreams",
    "tests/faults",
    "crates/text-engine",
    "crates/image-engine",
    "crates/translate",
];
/// The interval at which programs are checked for their end.
const LOOK: Duration = Duration::from_millis(20);
/// The interval of progress reports.
const REPORT: Duration = Duration::from_secs(20);
/// The time without a finished test after which a program counts as stuck.
const STUCK: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn program(root: &str) -> Program {
        Program {
            root: root.to_owned(),
            folder: "/".into(),
            executable: "/bin/sh".into(),
        }
    }

    fn pool(filters: &[String]) -> Pool<'_> {
        let logs = std::env::temp_dir().join(format!(
            "xtask-pool-{}-{}",
            std::process::id(),
            filters.len()
        ));
        fs::create_dir_all(&logs).unwrap();
        Pool {
            queue: Mutex::new(Queue::of(Vec::new())),
            filters,
            seed: 7,
            logs,
        }
    }

    #[test]
    fn the_longest_of_each_kind_come_first() {
        let programs = [
            "crates/auth/src/lib.rs",
            "tests/faults/main.rs",
            "crates/text-engine/src/lib.rs",
            "tests/upstreams/main.rs",
        ];
        let mut queue = Queue::of(programs.map(program).to_vec());
        let mut next = |kind| {
            queue
                .take(kind)
                .map(|(program, place)| format!("{place} {}", program.root))
        };
        assert_eq!(
            next(Kind::Computing).as_deref(),
            Some("1/4 crates/text-engine/src/lib.rs")
        );
        assert_eq!(
            next(Kind::Waiting).as_deref(),
            Some("2/4 tests/upstreams/main.rs")
        );
        assert_eq!(
            next(Kind::Computing).as_deref(),
            Some("3/4 crates/auth/src/lib.rs")
        );
        assert_eq!(
            next(Kind::Computing).as_deref(),
            Some("4/4 tests/faults/main.rs")
        );
        assert_eq!(next(Kind::Waiting), None);
    }

    #[test]
    fn a_program_that_fails_is_a_failure_and_one_that_succeeds_is_none() {
        // A shell rejects the flag of the harness as an unknown option, and fails.
        let filters = [];
        let pool = pool(&filters);
        let failed = pool.one(program("crates/a/src/lib.rs"), "1/3");
        assert!(
            failed
                .failure
                .unwrap()
                .starts_with("crates/a/src/lib.rs ended with exit status: 2")
        );
        let passed = pool.one(
            Program {
                executable: "/bin/true".into(),
                ..program("crates/b/src/lib.rs")
            },
            "2/3",
        );
        assert_eq!(passed.failure, None);
        let absent = pool.one(
            Program {
                executable: "/nowhere".into(),
                ..program("crates/c/src/lib.rs")
            },
            "3/3",
        );
        assert!(absent.failure.unwrap().contains("is not installed"));
        fs::remove_dir_all(&pool.logs).unwrap();
    }
}
