//! `cargo xtask shared`: the tests of what several gateways share, with real servers: Valkey, and
//! Redis, PostgreSQL and libfaketime where they are installed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::listed::{self, Program};
use crate::outcome::{At as _, Outcome};
use crate::times::{Times, now};
use crate::{fetch_valkey, needs, process, seed, suite, workspace};

/// Builds everything and runs the tests as a task of their own.
pub(crate) fn run() -> Outcome {
    let mut times = Times::of("shared");
    let outcome = times
        .step("build the tests", suite::binaries)
        .and_then(|()| everything(&mut times));
    times.finish();
    outcome
}

/// Runs the tests of programs that are built. The last lines name the tests that were left out
/// because something is not installed; in CI, all but Redis has to be.
pub(crate) fn everything(times: &mut Times) -> Outcome {
    let redis = needs::configured("SLUICEGATE_REDIS")?.or_else(|| installed(&REDIS));
    let faketime = installed(&FAKETIME);
    let has_postgres = process::captured(postgres().stderr(Stdio::null())).is_ok();
    let missing = [
        redis.is_none().then_some(Missing::REDIS),
        faketime.is_none().then_some(Missing::FAKETIME),
        (!has_postgres).then_some(Missing::POSTGRES),
    ];
    let missing: Vec<_> = missing.into_iter().flatten().collect();
    if is_ci(std::env::var_os("CI").as_deref()) {
        required(&missing)?;
    }
    let programs = listed::programs()?;
    let valkey = times.step("Valkey", fetch_valkey::server)?;
    let mut left = LIMIT;
    times.step("leases", || {
        lending(&valkey, redis.as_deref()).run(&programs, &mut left)
    })?;
    times.step("gateways that share limits", || {
        gateways(&valkey, faketime.as_deref()).run(&programs, &mut left)
    })?;
    if has_postgres {
        times.step("keys and usage in PostgreSQL", || {
            accounting(&programs, &mut left)
        })?;
    }
    print!("{}", left_out(&missing));
    Ok(())
}

/// The tests of the script that lends, and of its client. Those in Redis are not run without it.
fn lending(valkey: &Path, redis: Option<&Path>) -> Tests {
    let tests = Tests::of("sluicegate-lease")
        .with("SLUICEGATE_VALKEY", valkey)
        .args(&["--include-ignored"]);
    match redis {
        Some(redis) => tests.with("SLUICEGATE_REDIS", redis),
        None => tests.args(&["--skip", IN_REDIS]),
    }
}

/// The tests of several gateways. Those of a clock that is set are not run without libfaketime.
fn gateways(valkey: &Path, faketime: Option<&Path>) -> Tests {
    let tests = Tests::of("sluicegate-server::shared")
        .with("SLUICEGATE_VALKEY", valkey)
        .args(&["--include-ignored"]);
    match faketime {
        Some(library) => tests.with("SLUICEGATE_FAKETIME", library),
        None => tests.args(&["--skip", WITH_FAKETIME]),
    }
}

/// Runs the tests of the store, and of gateways that share it, each beside a new PostgreSQL.
fn accounting(programs: &[Program], left: &mut Duration) -> Outcome {
    for id in ["sluicegate-accounting::it", "sluicegate-server::state"] {
        // The others need no server.
        let tests = Tests::of(id).args(&["--ignored"]);
        let tests = tests.command(programs)?;
        let mut beside = postgres();
        beside.arg(tests.get_program()).args(tests.get_args());
        beside.envs(
            tests
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        beside.current_dir(tests.get_current_dir().unwrap_or(Path::new(".")));
        within(suite::prepared(&mut beside, seed::current()?), left)?;
    }
    Ok(())
}

/// A command that runs its further arguments beside a new PostgreSQL, or without any fails if it is
/// not installed.
fn postgres() -> Command {
    let mut python = Command::new("python3");
    python.arg(workspace::root().join("tests/shared/postgres.py"));
    python
}

/// Runs this task again beside a PostgreSQL and with the path of Valkey. Returns false if it runs so
/// already.
pub(crate) fn beside_servers() -> Outcome<bool> {
    if std::env::var_os("SLUICEGATE_TEST_POSTGRES").is_some() {
        return Ok(false);
    }
    let task = std::env::current_exe().at("the path of this task")?;
    let mut again = postgres();
    again.arg(task).args(std::env::args_os().skip(1));
    process::run(again.env("SLUICEGATE_VALKEY", fetch_valkey::server()?))?;
    Ok(true)
}

/// Tests of a program that need a server.
struct Tests {
    /// The program's name for nextest.
    id: &'static str,
    variables: Vec<(&'static str, OsString)>,
    args: Vec<&'static str>,
}

impl Tests {
    fn of(id: &'static str) -> Self {
        Self {
            id,
            variables: Vec::new(),
            args: Vec::new(),
        }
    }

    /// Sets the variable that names a server.
    fn with(mut self, variable: &'static str, server: impl Into<OsString>) -> Self {
        self.variables.push((variable, server.into()));
        self
    }

    /// Adds arguments of the program.
    fn args(mut self, args: &[&'static str]) -> Self {
        self.args.extend(args);
        self
    }

    fn command(self, programs: &[Program]) -> Outcome<Command> {
        let program = programs.iter().find(|program| program.id == self.id);
        let program = program.ok_or_else(|| format!("there is no test program {}", self.id))?;
        let mut tests = program.command();
        tests.envs(self.variables).args(self.args);
        Ok(tests)
    }

    /// Runs the program for at most the time that is `left`, which becomes shorter.
    fn run(self, programs: &[Program], left: &mut Duration) -> Outcome {
        let mut tests = self.command(programs)?;
        within(suite::prepared(&mut tests, seed::current()?), left)
    }
}

/// Runs a command for at most the time that is `left`, which becomes shorter.
fn within(command: &mut Command, left: &mut Duration) -> Outcome {
    let begun = now();
    let ended = process::bounded(command, *left)?;
    *left = left.saturating_sub(begun.elapsed());
    match ended {
        Some(status) => process::succeeded(command, status),
        None => Err(format!(
            "`{}` was killed: the tests with servers may run for {} s in all",
            process::shown(command),
            LIMIT.as_secs()
        )),
    }
}

/// Something that is not installed.
#[derive(Clone, Copy)]
struct Missing {
    /// The tests that need it, with its name at their end.
    tests: &'static str,
    install: &'static str,
    is_required: bool,
}

impl Missing {
    const REDIS: Self = Self {
        tests: "the tests of leases in Redis",
        install: "Debian and Ubuntu: `apt-get install redis-server`; macOS: `brew install redis`; or set \
                  SLUICEGATE_REDIS to the path of redis-server",
        is_required: false,
    };
    const FAKETIME: Self = Self {
        tests: "the tests of a store whose clock is set by libfaketime",
        install: "Debian and Ubuntu: `apt-get install libfaketime`",
        is_required: true,
    };
    const POSTGRES: Self = Self {
        tests: "the tests of keys and usage in PostgreSQL",
        install: "Debian and Ubuntu: `apt-get install postgresql`",
        is_required: true,
    };
}

/// Fails if something is missing without which CI would test too little.
fn required(missing: &[Missing]) -> Outcome {
    match missing.iter().find(|missing| missing.is_required) {
        None => Ok(()),
        Some(Missing { tests, install, .. }) => Err(format!(
            "CI is set, and {tests} cannot run: it is not installed. {install}"
        )),
    }
}

/// One line for each server that is not installed.
fn left_out(missing: &[Missing]) -> String {
    let line = |Missing { tests, install, .. }: &Missing| {
        format!("left out: {tests}, which is not installed. {install}\n")
    };
    missing.iter().map(line).collect()
}

/// Returns true if the variable CI says that this is a run of CI.
fn is_ci(variable: Option<&OsStr>) -> bool {
    variable.is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// The first of these files that exists.
fn installed(paths: &[&str]) -> Option<PathBuf> {
    paths.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// The part of their names that all tests of leases in Redis have.
const IN_REDIS: &str = "in_redis";
/// Where packages put redis-server.
const REDIS: [&str; 3] = [
    "/usr/bin/redis-server",
    "/usr/local/bin/redis-server",
    "/opt/homebrew/bin/redis-server",
];
/// The part of their names that all tests of a clock that is set have.
const WITH_FAKETIME: &str = "with_faketime";
/// Where packages put libfaketime.
const FAKETIME: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
];
/// The time for which all of the tests may run, without their builds.
const LIMIT: Duration = Duration::from_secs(180);

#[cfg(test)]
mod tests {
    use super::*;

    fn harness(tests: &Tests) -> String {
        tests.args.join(" ")
    }

    fn variables(tests: &Tests) -> String {
        let set = tests.variables.iter();
        set.map(|(name, value)| format!("{name}={}", value.display()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn tests_in_redis_are_skipped_without_it() {
        let tests = lending(Path::new("/v"), None);
        assert_eq!(harness(&tests), "--include-ignored --skip in_redis");
        assert_eq!(variables(&tests), "SLUICEGATE_VALKEY=/v");
        let tests = lending(Path::new("/v"), Some(Path::new("/r")));
        assert_eq!(harness(&tests), "--include-ignored");
        assert_eq!(
            variables(&tests),
            "SLUICEGATE_VALKEY=/v SLUICEGATE_REDIS=/r"
        );
    }

    /// A test whose name does not fit would be run without Redis, and fail.
    #[test]
    fn the_name_of_every_test_in_redis_fits() {
        let source = workspace::read("crates/lease/src/valkey/tests/differential.rs").unwrap();
        let needs_redis = source.split("#[ignore = \"needs a Redis server").skip(1);
        let names: Vec<_> = needs_redis
            .map(|rest| rest.split_once("fn ").unwrap().1)
            .map(|rest| rest.split_once('(').unwrap().0)
            .collect();
        assert!(!names.is_empty());
        assert!(
            names.iter().all(|name| name.contains(IN_REDIS)),
            "{names:?}"
        );
    }

    #[test]
    fn tests_with_faketime_are_skipped_without_it() {
        let tests = gateways(Path::new("/v"), None);
        assert_eq!(harness(&tests), "--include-ignored --skip with_faketime");
        let tests = gateways(Path::new("/v"), Some(Path::new("/f")));
        assert_eq!(harness(&tests), "--include-ignored");
        assert_eq!(
            variables(&tests),
            "SLUICEGATE_VALKEY=/v SLUICEGATE_FAKETIME=/f"
        );
        let source = workspace::read("tests/shared/clock.rs").unwrap();
        assert_eq!(source.matches("libfaketime: cargo").count(), 2);
        assert_eq!(source.matches("_with_faketime()").count(), 2);
    }

    #[test]
    fn skipped_tests_are_reported_with_their_package() {
        assert_eq!(left_out(&[]), "");
        assert_eq!(
            left_out(&[Missing::POSTGRES]),
            "left out: the tests of keys and usage in PostgreSQL, which is not installed. Debian and Ubuntu: `apt-get \
             install postgresql`\n"
        );
        let two = left_out(&[Missing::REDIS, Missing::FAKETIME]);
        assert_eq!(two.lines().count(), 2, "{two}");
    }

    #[test]
    fn ci_requires_all_but_redis() {
        assert_eq!(required(&[Missing::REDIS]), Ok(()));
        assert_eq!(
            required(&[Missing::REDIS, Missing::FAKETIME]),
            Err("CI is set, and the tests of a store whose clock is set by libfaketime cannot run: it is not installed. \
                 Debian and Ubuntu: `apt-get install libfaketime`"
                .to_owned())
        );
        assert!(required(&[Missing::POSTGRES]).is_err());
    }

    #[test]
    fn ci_is_recognized() {
        let is = |value: &str| is_ci(Some(OsStr::new(value)));
        assert!(is("true") && is("1") && is("woodpecker"));
        assert!(!is_ci(None) && !is("") && !is("false") && !is("0"));
    }

    #[test]
    fn a_program_that_takes_too_long_fails() {
        let mut left = Duration::from_millis(20);
        let error = within(Command::new("sleep").arg("60"), &mut left).unwrap_err();
        assert_eq!(
            error,
            "`sleep 60` was killed: the tests with servers may run for 180 s in all"
        );
        assert_eq!(left, Duration::ZERO);
    }
}
