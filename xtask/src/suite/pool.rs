//! Runs test programs in parallel: those that compute share the CPUs, and those that mostly wait for a gateway run
//! beside them, many tests at once.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::programs::Program;
use crate::libtest::{self, TestResults};
use crate::outcome::{At as _, Outcome};
use crate::passed::Passed;
use crate::times::{now, shown};
use crate::{process, seed, workspace};

/// A test program that has ended, or was killed.
pub(super) struct Ran {
    pub(super) program: Program,
    pub(super) took: Duration,
    results: TestResults,
    end: End,
    log: PathBuf,
}

/// The end of a program.
enum End {
    Exit(ExitStatus),
    /// No test ended for [`STUCK`], so the program was killed.
    Stuck,
    /// It could not be run.
    Broken(String),
}

impl Ran {
    /// The tests that passed.
    pub(super) fn passed(&self) -> impl Iterator<Item = Passed> {
        self.results.passed.iter().map(|path| Passed::new(&self.program.root, path))
    }

    /// The reason why the program counts as failed, if it does.
    pub(super) fn failure(&self) -> Option<String> {
        let root = &self.program.root;
        let list = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        match &self.end {
            End::Exit(status) if status.success() => None,
            End::Exit(_) if !self.results.failed.is_empty() => {
                Some(format!("{root}: {}; see {}", list(&self.results.failed), self.log.display()))
            }
            End::Exit(status) => Some(format!("{root} ended with {status}; see {}", self.log.display())),
            End::Stuck => Some(format!("{root}: no test ended for {}: {}", shown(STUCK), list(&self.results.running))),
            End::Broken(why) => Some(format!("{root}: {why}")),
        }
    }
}

/// Runs every program, or the tests in them whose path contains one of `filters`.
pub(super) fn run(programs: Vec<Program>, filters: &[String], seed: u64) -> Outcome<Vec<Ran>> {
    let logs = workspace::target()?.join("tests");
    fs::create_dir_all(&logs).at(&logs)?;
    let pool = Pool { queues: Mutex::new(Queues::of(programs)), filters, seed, logs };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut ran = Vec::new();
    thread::scope(|scope| {
        let first = [Kind::Waiting].into_iter().chain(std::iter::repeat_n(Kind::Computing, cores));
        let pool = &pool;
        let workers: Vec<_> = first.map(|kind| scope.spawn(move || pool.work(kind))).collect();
        // A worker that panics is a bug of xtask, and ends it.
        ran.extend(workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()));
    });
    Ok(ran)
}

/// The state that the workers share.
struct Pool<'a> {
    queues: Mutex<Queues>,
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
        if program.root.starts_with("tests/") { Self::Waiting } else { Self::Computing }
    }

    /// The number of tests of one program that run at once. With a single one, the harness would print names and
    /// results apart.
    fn threads(self) -> usize {
        match self {
            Self::Computing => 2,
            Self::Waiting => 8,
        }
    }
}

/// The programs that have not been started yet.
struct Queues {
    computing: VecDeque<Program>,
    waiting: VecDeque<Program>,
    count: usize,
    taken: usize,
}

impl Queues {
    fn of(mut programs: Vec<Program>) -> Self {
        let count = programs.len();
        // The longest first, so that none of them runs alone at the end.
        programs.sort_by_key(|program| {
            let place = LONG.iter().position(|folder| program.root.starts_with(folder));
            (place.unwrap_or(LONG.len()), program.root.clone())
        });
        let (waiting, computing): (Vec<_>, Vec<_>) =
            programs.into_iter().partition(|program| Kind::of(program) == Kind::Waiting);
        Self { computing: computing.into(), waiting: waiting.into(), count, taken: 0 }
    }

    /// The next program of this kind, or of the other if there is none left.
    fn take(&mut self, kind: Kind) -> Option<(Program, String)> {
        let (first, second) = match kind {
            Kind::Computing => (&mut self.computing, &mut self.waiting),
            Kind::Waiting => (&mut self.waiting, &mut self.computing),
        };
        let program = first.pop_front().or_else(|| second.pop_front())?;
        self.taken += 1;
        Some((program, format!("{}/{}", self.taken, self.count)))
    }
}

impl Pool<'_> {
    fn work(&self, kind: Kind) -> Vec<Ran> {
        let next = || self.queues.lock().unwrap_or_else(PoisonError::into_inner).take(kind);
        let mut all = Vec::new();
        while let Some((program, place)) = next() {
            println!("[{place}] {} …", program.root);
            let ran = self.one(program);
            println!("[{place}] {}", summary(&ran));
            all.push(ran);
        }
        all
    }

    /// Runs one program to its end.
    fn one(&self, program: Program) -> Ran {
        let log = self.logs.join(format!("{}.log", program.root.trim_end_matches(".rs").replace('/', "-")));
        let begun = now();
        let end = match self.start(&program, &log) {
            Ok(mut child) => wait(&mut child, &log, &program),
            Err(why) => End::Broken(why),
        };
        let output = read(&log);
        let ran = Ran { results: TestResults::of(&output), took: begun.elapsed(), program, end, log };
        if ran.failure().is_some() {
            // In one piece, so that output of other programs does not interleave.
            eprintln!("---- {} ----\n{}", ran.program.root, libtest::failures(&output));
        }
        ran
    }

    fn start(&self, program: &Program, log: &PathBuf) -> Outcome<Child> {
        let file = File::create(log).at(log)?;
        let mut command = Command::new(&program.executable);
        command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
        command.env("CARGO", workspace::cargo_path()).env("INSTA_WORKSPACE_ROOT", workspace::root());
        command.arg(format!("--test-threads={}", Kind::of(program).threads())).args(self.filters);
        command.stdin(Stdio::null()).stdout(file.try_clone().at(log)?).stderr(file);
        seed::pass(self.seed, &mut command);
        command.spawn().map_err(|error| process::not_started(&command, &error))
    }
}

/// Waits for a program, reports its progress now and then, and kills it when no test ends for too long.
fn wait(child: &mut Child, log: &PathBuf, program: &Program) -> End {
    let mut count = 0;
    let mut moved = now();
    let mut reported = now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return End::Exit(status),
            Ok(None) => thread::sleep(LOOK),
            Err(error) => return End::Broken(format!("it cannot be waited for: {error}")),
        }
        if reported.elapsed() < REPORT {
            continue;
        }
        reported = now();
        let results = TestResults::of(&read(log));
        if results.count() > count {
            (count, moved) = (results.count(), now());
        } else if moved.elapsed() > STUCK {
            // It may have ended by itself just now.
            let _ = child.kill();
            let _ = child.wait();
            return End::Stuck;
        }
        println!("    {}: {count} tests so far", program.root);
    }
}

fn summary(ran: &Ran) -> String {
    let Ran { program, results, took, .. } = ran;
    let failed = match results.failed.len() {
        0 => String::new(),
        failed => format!(", {failed} FAILED"),
    };
    format!("{}: {} passed{failed} in {}", program.root, results.passed.len(), shown(*took))
}

/// The output of a program so far.
fn read(log: &PathBuf) -> String {
    fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The root files of the programs that take longest, the longest first.
const LONG: &[&str] =
    &["tests/upstreams", "tests/faults", "crates/text-engine", "crates/image-engine", "crates/translate"];
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
        Program { root: root.to_owned(), folder: "/".into(), executable: "/bin/sh".into() }
    }

    fn pool(filters: &[String]) -> Pool<'_> {
        let logs = std::env::temp_dir().join(format!("xtask-pool-{}-{}", std::process::id(), filters.len()));
        fs::create_dir_all(&logs).unwrap();
        Pool { queues: Mutex::new(Queues::of(Vec::new())), filters, seed: 7, logs }
    }

    #[test]
    fn the_longest_of_each_kind_come_first() {
        let programs = [
            "crates/auth/src/lib.rs",
            "tests/faults/main.rs",
            "crates/text-engine/src/lib.rs",
            "tests/upstreams/main.rs",
        ];
        let mut queues = Queues::of(programs.map(program).to_vec());
        let mut next = |kind| queues.take(kind).map(|(program, place)| format!("{place} {}", program.root));
        assert_eq!(next(Kind::Computing).as_deref(), Some("1/4 crates/text-engine/src/lib.rs"));
        assert_eq!(next(Kind::Waiting).as_deref(), Some("2/4 tests/upstreams/main.rs"));
        assert_eq!(next(Kind::Computing).as_deref(), Some("3/4 crates/auth/src/lib.rs"));
        assert_eq!(next(Kind::Computing).as_deref(), Some("4/4 tests/faults/main.rs"));
        assert_eq!(next(Kind::Waiting), None);
    }

    #[test]
    fn a_program_that_fails_is_a_failure_and_one_that_succeeds_is_none() {
        // A shell rejects the flag of the harness as an unknown option, and fails.
        let filters = [];
        let pool = pool(&filters);
        let failed = pool.one(program("crates/a/src/lib.rs"));
        assert!(failed.failure().unwrap().starts_with("crates/a/src/lib.rs ended with exit status: 2"));
        let passed = pool.one(Program { executable: "/bin/true".into(), ..program("crates/b/src/lib.rs") });
        assert_eq!(passed.failure(), None);
        let absent = pool.one(Program { executable: "/nowhere".into(), ..program("crates/c/src/lib.rs") });
        assert!(absent.failure().unwrap().contains("is not installed"));
        fs::remove_dir_all(&pool.logs).unwrap();
    }
}
