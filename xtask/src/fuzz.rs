//! `cargo xtask fuzz`: runs every fuzz target in turn, those with the oldest run first, and prints a
//! table of the results.
//!
//! Inputs that reach new code are written to a separate folder of the target in `target/fuzz`, from
//! which the next run continues; the committed corpus grows with `--keep` only, and the log in
//! `fuzz/LOG.md` with `--log` only.

mod log;

use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use self::log::Log;
use crate::outcome::{At as _, Outcome};
use crate::tools::FUZZ;
use crate::{history, process, workspace};

/// Runs the targets that `args` select.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    fuzzed(&Plan::parse(args)?).map(drop)
}

/// Runs the targets of a plan, and returns how many they were.
fn fuzzed(plan: &Plan) -> Outcome<usize> {
    let all = targets()?;
    let chosen = plan.chosen(&all)?;
    if chosen.is_empty() {
        println!("every target has a recent run");
        return Ok(0);
    }
    process::run(&mut fuzz("build", &[])?)?;
    let commit = workspace::commit()?;
    let mut rows = Vec::new();
    for target in &chosen {
        println!("-- {target} for {} s", plan.seconds);
        let stats = run_one(target, plan.seconds, plan.keep)?;
        if plan.log {
            // Written after each target, so that an interruption does not lose the others.
            let mut log = Log::read()?;
            let is_clean = stats.findings == 0 && plan.seconds >= FULL_RUN;
            log.add(target, stats, is_clean.then_some(&commit));
            log.write(&all)?;
        }
        rows.push((target.as_str(), stats));
    }
    print!("{}", table(&rows));
    let crashed: Vec<_> = rows
        .iter()
        .filter(|(_, stats)| stats.findings > 0)
        .map(|(target, _)| *target)
        .collect();
    if crashed.is_empty() {
        return Ok(chosen.len());
    }
    Err(format!(
        "crashes in {}: the inputs are in fuzz/artifacts",
        crashed.join(", ")
    ))
}

/// Runs the targets without a recent run for five minutes each, as a part of the long tier.
pub(crate) fn long() -> Outcome<String> {
    let plan = Plan {
        seconds: FULL_RUN,
        keep: false,
        log: true,
        due: true,
        target: None,
    };
    let ran = fuzzed(&plan)?;
    let recent = targets()?.len() - ran;
    Ok(format!(
        "passed, {ran} targets for five minutes each; {recent} had a recent run"
    ))
}

/// Returns a problem for each target whose last full run had a finding, or that never had one.
pub(crate) fn problems() -> Outcome<Vec<String>> {
    let log = Log::read()?;
    let files = workspace::files()?;
    let targets = files
        .iter()
        .filter_map(|file| file.strip_prefix("fuzz/fuzz_targets/")?.strip_suffix(".rs"));
    let unclean = targets.filter(|target| log.clean_run(target).is_none());
    let problem = |target| {
        format!(
            "fuzz/LOG.md: '{target}' has no clean run: run `cargo xtask ci --tier long --only fuzz`"
        )
    };
    Ok(unclean.map(problem).collect())
}

/// The parsed command line.
#[derive(Debug, PartialEq)]
struct Plan {
    seconds: u64,
    keep: bool,
    log: bool,
    due: bool,
    target: Option<String>,
}

impl Plan {
    /// Chooses of all targets, and sorts them by the age of their last run without a finding.
    fn chosen(&self, all: &[String]) -> Outcome<Vec<String>> {
        if let Some(name) = &self.target {
            return match all.contains(name) {
                true => Ok(vec![name.clone()]),
                false => Err(format!(
                    "there is no fuzz target {name:?}: there are {}",
                    all.join(", ")
                )),
            };
        }
        let log = Log::read()?;
        let age = |target: &String| match log.clean_run(target) {
            Some(commit) => history::changes_since(commit, &AREA),
            None => Ok(usize::MAX),
        };
        let ages = all.iter().map(|target| Ok((age(target)?, target.clone())));
        let mut ages = ages.collect::<Outcome<Vec<_>>>()?;
        ages.retain(|(age, _)| !self.due || *age > RECENT);
        ages.sort_by_key(|(age, _)| Reverse(*age));
        Ok(ages.into_iter().map(|(_, target)| target).collect())
    }

    fn parse(args: &[OsString]) -> Outcome<Self> {
        let mut plan = Self {
            seconds: 60,
            keep: false,
            log: false,
            due: false,
            target: None,
        };
        let mut args = args.iter().map(|arg| arg.to_string_lossy());
        while let Some(arg) = args.next() {
            match &*arg {
                "--keep" => plan.keep = true,
                "--log" => plan.log = true,
                "--due" => plan.due = true,
                "--minutes" => plan.seconds = seconds(args.next().as_deref())?,
                name if plan.target.is_none() && !name.starts_with('-') => {
                    plan.target = Some(name.to_owned());
                }
                other => {
                    return Err(format!(
                        "unexpected {other:?}: expected [--minutes N] [--keep] [--log] [--due] [TARGET]"
                    ));
                }
            }
        }
        Ok(plan)
    }
}

fn seconds(minutes: Option<&str>) -> Outcome<u64> {
    let number = minutes
        .and_then(|word| word.parse::<f64>().ok())
        .filter(|number| (0.01..=10_000.0).contains(number));
    let number =
        number.ok_or_else(|| format!("--minutes takes a number, such as 5, not {minutes:?}"))?;
    Ok((number * 60.0).ceil() as u64)
}

/// Fuzzes one target, and shows its progress.
fn run_one(target: &str, seconds: u64, keep: bool) -> Outcome<Stats> {
    let reached = workspace::target()?.join("fuzz").join(target);
    fs::create_dir_all(&reached).at(&reached)?;
    let corpus = folder().join("corpus").join(target);
    fs::create_dir_all(&corpus).at(&corpus)?;

    let mut command = fuzz("run", &[target])?;
    // New inputs are written to the first folder.
    command
        .args([&reached, &corpus])
        .arg("--")
        .args([format!("-max_total_time={seconds}")])
        .args(LIMITS);
    let before = process::spent_by_children();
    let mut child = process::start(command.stderr(Stdio::piped()))?;
    let mut stats = Stats::default();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            stats.take(&String::from_utf8_lossy(&line));
        }
    }
    let status = child
        .wait()
        .map_err(|error| format!("cargo fuzz cannot be waited for: {error}"))?;
    stats.findings = u64::from(!status.success());
    stats.seconds = (process::spent_by_children() - before).as_secs();
    if keep && status.success() {
        // Adds inputs that reach code which the corpus does not reach, and leaves the corpus
        // unchanged otherwise.
        process::run(
            fuzz("run", &[target])?
                .args([&corpus, &reached])
                .args(["--", "-merge=1"]),
        )?;
    }
    Ok(stats)
}

/// The last statistics that a run of libFuzzer printed, or those of all runs.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Stats {
    /// CPU time, which other processes may share.
    seconds: u64,
    executions: u64,
    coverage: u64,
    corpus: u64,
    /// The number of crashes: a run ends at the first one.
    findings: u64,
}

impl Stats {
    /// Parses a line such as `#2048 pulse cov: 120 ft: 347 corp: 144/9617b …` and prints it if it
    /// is of interest.
    fn take(&mut self, line: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        let Some(executions) = words
            .first()
            .and_then(|word| word.strip_prefix('#')?.parse().ok())
        else {
            if !NOISE.iter().any(|noise| line.starts_with(noise)) {
                eprintln!("{line}");
            }
            return;
        };
        self.executions = executions;
        let figure = |name| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1)?.split('/').next()?.parse().ok()
        };
        self.coverage = figure("cov:").unwrap_or(self.coverage);
        self.corpus = figure("corp:").unwrap_or(self.corpus);
        if words.get(1).is_some_and(|event| MILESTONES.contains(event)) {
            eprintln!("{line}");
        }
    }
}

fn table(rows: &[(&str, Stats)]) -> String {
    let width = rows
        .iter()
        .map(|(target, _)| target.len())
        .chain(["target".len()])
        .max()
        .unwrap_or(0);
    let mut text = format!(
        "{:width$} {:>12} {:>9} {:>7} {:>8}\n",
        "target", "executions", "coverage", "corpus", "crashes"
    );
    for (
        target,
        Stats {
            executions,
            coverage,
            corpus,
            findings,
            ..
        },
    ) in rows
    {
        text +=
            &format!("{target:width$} {executions:>12} {coverage:>9} {corpus:>7} {findings:>8}\n");
    }
    text
}

/// Every target that `fuzz/Cargo.toml` names.
fn targets() -> Outcome<Vec<String>> {
    let list = process::output(FUZZ.command()?.arg("list").current_dir(folder()))?;
    Ok(list.lines().map(str::to_owned).collect())
}

/// `cargo fuzz` without a sanitizer: there is no unsafe code here to check, so stable Rust is
/// sufficient.
fn fuzz(subcommand: &str, args: &[&str]) -> Outcome<Command> {
    let mut command = FUZZ.command()?;
    command
        .current_dir(folder())
        .args([subcommand, "--sanitizer", "none"])
        .args(args);
    Ok(command)
}

fn folder() -> PathBuf {
    workspace::root().join("fuzz")
}

/// The files and folders whose changes make a run of a target older.
pub(crate) const AREA: [&str; 2] = ["crates", "fuzz"];
/// The number of commits that have changed the area since a recent run.
pub(crate) const RECENT: usize = 50;
/// The number of seconds of a run that counts as one without a finding.
const FULL_RUN: u64 = 300;
/// A parser that takes ten seconds or a gigabyte for a small input has failed.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=1024"];
/// The events of libFuzzer that are printed.
const MILESTONES: [&str; 3] = ["INITED", "pulse", "DONE"];
/// The beginnings of lines that libFuzzer prints at every start and end.
const NOISE: [&str; 5] = [
    "INFO:",
    "\tNEW_FUNC",
    "WARNING: Failed to find function",
    "\"",
    "###### ",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_figures_count() {
        let mut stats = Stats::default();
        stats.take("INFO: Loaded 1 modules");
        stats.take("#9\tINITED cov: 85 ft: 116 corp: 8/122b exec/s: 0 rss: 28Mb");
        stats.take("#2097152\tNEW    cov: 120 ft: 347 corp: 144/9617b lim: 4096 exec/s: 699050 rss: 28Mb L: 1/2");
        stats.take(
            "#3253362\tDONE   cov: 121 ft: 347 corp: 145/9566b lim: 4096 exec/s: 542227 rss: 28Mb",
        );
        assert_eq!(
            stats,
            Stats {
                executions: 3_253_362,
                coverage: 121,
                corpus: 145,
                ..Stats::default()
            }
        );
        assert_eq!(
            table(&[("auth_header", stats)]),
            "target        executions  coverage  corpus  crashes\nauth_header      3253362       121     145        0\n"
        );
    }

    #[test]
    fn the_command_line_is_read_or_refused() {
        let parse = |line: &str| {
            Plan::parse(
                &line
                    .split_whitespace()
                    .map(OsString::from)
                    .collect::<Vec<_>>(),
            )
        };
        let plan = |seconds, keep, target: Option<&str>| Plan {
            seconds,
            keep,
            log: false,
            due: false,
            target: target.map(str::to_owned),
        };
        assert_eq!(parse(""), Ok(plan(60, false, None)));
        assert_eq!(
            parse("--minutes 2.5 sse --keep"),
            Ok(plan(150, true, Some("sse")))
        );
        assert_eq!(
            parse("--log"),
            Ok(Plan {
                log: true,
                ..plan(60, false, None)
            })
        );
        assert!(parse("--minutes").unwrap_err().contains("takes a number"));
        assert!(
            parse("--minutes -1")
                .unwrap_err()
                .contains("takes a number")
        );
        assert!(
            parse("sse auth")
                .unwrap_err()
                .contains("unexpected \"auth\"")
        );
    }
}
