//! `cargo xtask shared`: the tests of state that gateways share, with real servers: Valkey, and
//! Redis, PostgreSQL and libfaketime where they are installed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::beside::Beside;
use crate::listed;
use crate::outcome::{At as _, Outcome};
use crate::times::{Times, now};
use crate::{fetch_valkey, needs, process, seed, suite, workspace};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run the programs of the last test run, without a build
    #[arg(long)]
    built: bool,
}

/// Starts the tests with real servers, which mostly wait, in a process beside other steps. The
/// programs are built before: a build would replace the gateway that the other steps run.
pub(crate) fn beside() -> Outcome<Beside> {
    suite::product()?;
    let task = std::env::current_exe().at("the path of this task")?;
    Beside::start("shared", Command::new(task).args(["shared", "--built"]))
}

/// Builds everything and runs the tests. The last lines name the tests that were left out because
/// something is not installed; in CI, all but Redis has to be.
pub(crate) fn run(Args { built }: &Args) -> Outcome {
    let times = &mut Times::of("shared");
    if !built {
        times.step("build the tests", suite::build)?;
        times.step("build the gateway", suite::product)?;
        listed::binaries_metadata()?;
    }
    let redis = needs::configured("SLUICEGATE_REDIS")?.or_else(|| installed(REDIS_PATHS));
    let faketime = installed(FAKETIME_PATHS);
    let has_postgres = process::captured(postgres().stderr(Stdio::null())).is_ok();
    let missing = [
        redis.is_none().then_some(REDIS),
        faketime.is_none().then_some(FAKETIME),
        (!has_postgres).then_some(POSTGRES),
    ];
    let missing: Vec<_> = missing.into_iter().flatten().collect();
    if is_ci(std::env::var_os("CI").as_deref()) {
        required(&missing)?;
    }
    let programs = listed::built()?;
    let valkey = times.step("Valkey", fetch_valkey::server)?;
    let mut left = LIMIT;
    times.step("leases", || {
        let mut tests = listed::find(&programs, "sluicegate-lease")?.command();
        let redis = ("SLUICEGATE_REDIS", redis.as_deref(), IN_REDIS);
        within(with_servers(&mut tests, &valkey, redis), &mut left)
    })?;
    times.step("gateways that share limits", || {
        let mut tests = listed::find(&programs, "sluicegate-server::shared")?.command();
        let clock = ("SLUICEGATE_FAKETIME", faketime.as_deref(), WITH_FAKETIME);
        within(with_servers(&mut tests, &valkey, clock), &mut left)
    })?;
    if has_postgres {
        times.step("keys and usage in PostgreSQL", || {
            // The store, and gateways that share it, each beside a new PostgreSQL.
            for id in ["sluicegate-accounting::it", "sluicegate-server::state"] {
                let mut tests = listed::find(&programs, id)?.run_by(postgres());
                // The others need no server.
                within(tests.arg("--ignored"), &mut left)?;
            }
            Ok(())
        })?;
    }
    print!("{}", left_out(&missing));
    Ok(())
}

/// A server or library beside Valkey: the variable that names it, its path, and the part of their
/// names that the tests have which are skipped without it.
type Other<'a> = (&'a str, Option<&'a Path>, &'a str);

/// Adds the tests that need servers.
fn with_servers<'a>(tests: &'a mut Command, valkey: &Path, other: Other<'_>) -> &'a mut Command {
    tests.env("SLUICEGATE_VALKEY", valkey);
    tests.arg("--include-ignored");
    let (variable, path, skipped) = other;
    match path {
        Some(path) => tests.env(variable, path),
        None => tests.args(["--skip", skipped]),
    }
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

/// Runs tests for at most the time that is `left`, which becomes shorter.
fn within(tests: &mut Command, left: &mut Duration) -> Outcome {
    let begun = now();
    let ended = process::bounded(suite::prepared(tests, seed::current()?), *left)?;
    *left = left.saturating_sub(begun.elapsed());
    let Some(status) = ended else {
        let (shown, limit) = (process::shown(tests), LIMIT.as_secs());
        return Err(format!(
            "`{shown}` was killed: the tests with servers may run for {limit} s in all"
        ));
    };
    process::succeeded(tests, status)
}

/// Something that is not installed: the tests that need it, with its name at their end, and how to
/// install it.
type Missing = (&'static str, &'static str);

const REDIS: Missing = (
    "the tests of leases in Redis",
    "Debian and Ubuntu: `apt-get install redis-server`; macOS: `brew install redis`; or set \
     SLUICEGATE_REDIS to the path of redis-server",
);
const FAKETIME: Missing = (
    "the tests of a store whose clock is set by libfaketime",
    "Debian and Ubuntu: `apt-get install libfaketime`",
);
const POSTGRES: Missing = (
    "the tests of keys and usage in PostgreSQL",
    "Debian and Ubuntu: `apt-get install postgresql`",
);

/// Fails if something is missing without which CI would test too little.
fn required(missing: &[Missing]) -> Outcome {
    match missing.iter().find(|missing| **missing != REDIS) {
        None => Ok(()),
        Some((tests, install)) => Err(format!(
            "CI is set, and {tests} cannot run: it is not installed. {install}"
        )),
    }
}

/// One line for each server that is not installed.
fn left_out(missing: &[Missing]) -> String {
    let line = |(tests, install): &Missing| {
        format!("left out: {tests}, which is not installed. {install}\n")
    };
    missing.iter().map(line).collect()
}

/// Returns true if the variable CI says that this is a run of CI.
fn is_ci(variable: Option<&OsStr>) -> bool {
    variable.is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// The first of these files that exists.
fn installed(paths: &str) -> Option<PathBuf> {
    let mut paths = paths.split(' ').map(PathBuf::from);
    paths.find(|path| path.is_file())
}

/// The part of their names that all tests of leases in Redis have.
const IN_REDIS: &str = "in_redis";
/// Where packages put redis-server.
const REDIS_PATHS: &str =
    "/usr/bin/redis-server /usr/local/bin/redis-server /opt/homebrew/bin/redis-server";
/// The part of their names that all tests of a clock that is set have.
const WITH_FAKETIME: &str = "with_faketime";
/// Where packages put libfaketime.
const FAKETIME_PATHS: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 \
    /usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1 /usr/lib64/faketime/libfaketime.so.1";
/// The time for which all of the tests may run, without their builds.
const LIMIT: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments and variables of the tests, with another server at this path.
    fn tests(variable: &str, path: Option<&str>, skipped: &str) -> (String, String) {
        let mut tests = Command::new("a");
        let other = (variable, path.map(Path::new), skipped);
        with_servers(&mut tests, Path::new("/v"), other);
        let set = tests
            .get_envs()
            .map(|(name, value)| format!("{}={}", name.display(), value.unwrap().display()));
        (process::shown(&tests), set.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn tests_in_redis_are_skipped_without_it() {
        let (line, variables) = tests("SLUICEGATE_REDIS", None, IN_REDIS);
        assert_eq!(line, "a --include-ignored --skip in_redis");
        assert_eq!(variables, "SLUICEGATE_VALKEY=/v");
        let (line, variables) = tests("SLUICEGATE_REDIS", Some("/r"), IN_REDIS);
        assert_eq!(line, "a --include-ignored");
        assert_eq!(variables, "SLUICEGATE_REDIS=/r SLUICEGATE_VALKEY=/v");
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
        let (line, _) = tests("SLUICEGATE_FAKETIME", None, WITH_FAKETIME);
        assert_eq!(line, "a --include-ignored --skip with_faketime");
        let (line, variables) = tests("SLUICEGATE_FAKETIME", Some("/f"), WITH_FAKETIME);
        assert_eq!(line, "a --include-ignored");
        assert_eq!(variables, "SLUICEGATE_FAKETIME=/f SLUICEGATE_VALKEY=/v");
        let source = workspace::read("tests/shared/clock.rs").unwrap();
        assert_eq!(source.matches("libfaketime: cargo").count(), 2);
        assert_eq!(source.matches("_with_faketime()").count(), 2);
    }

    #[test]
    fn skipped_tests_are_reported_with_their_package() {
        assert_eq!(left_out(&[]), "");
        assert_eq!(
            left_out(&[POSTGRES]),
            "left out: the tests of keys and usage in PostgreSQL, which is not installed. Debian and Ubuntu: `apt-get \
             install postgresql`\n"
        );
        let two = left_out(&[REDIS, FAKETIME]);
        assert_eq!(two.lines().count(), 2, "{two}");
    }

    #[test]
    fn ci_requires_all_but_redis() {
        assert_eq!(required(&[REDIS]), Ok(()));
        assert_eq!(
            required(&[REDIS, FAKETIME]),
            Err("CI is set, and the tests of a store whose clock is set by libfaketime cannot run: it is not installed. \
                 Debian and Ubuntu: `apt-get install libfaketime`"
                .to_owned())
        );
        assert!(required(&[POSTGRES]).is_err());
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
            "`sleep 60` was killed: the tests with servers may run for 600 s in all"
        );
        assert_eq!(left, Duration::ZERO);
    }
}
