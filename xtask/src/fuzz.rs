//! `cargo xtask fuzz`: runs every fuzz target in turn, and prints a table of the results.
//!
//! Inputs that reach new code are written to a separate folder of the target in `target/fuzz`, from
//! which the next run continues; the committed corpus grows with `--keep` only.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::outcome::{At as _, Outcome};
use crate::tools::FUZZ;
use crate::{process, workspace};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The minutes for each target
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = minutes)]
    minutes: f64,
    /// Add inputs that reach new code to the corpus
    #[arg(long)]
    keep: bool,
    /// One target; all of them if absent
    target: Option<String>,
}

/// Runs every target for five minutes.
pub(crate) fn nightly() -> Outcome {
    run(&Args {
        minutes: 5.0,
        keep: false,
        target: None,
    })
}

/// Runs one target or all of them.
pub(crate) fn run(args: &Args) -> Outcome {
    let mut targets = targets()?;
    if let Some(name) = &args.target {
        if !targets.contains(name) {
            let all = targets.join(", ");
            return Err(format!("there is no fuzz target {name:?}: there are {all}"));
        }
        targets = vec![name.clone()];
    }
    process::run(&mut fuzz("build", &[])?)?;
    let seconds = (args.minutes * 60.0).ceil() as u64;
    let mut rows = Vec::new();
    for target in &targets {
        println!("-- {target} for {seconds} s");
        rows.push((target.as_str(), run_one(target, seconds, args.keep)?));
    }
    print!("{}", table(&rows));
    let crashed = rows.iter().filter(|(_, stats)| stats.findings > 0);
    let crashed: Vec<_> = crashed.map(|(target, _)| *target).collect();
    match crashed.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "crashes in {}: the inputs are in fuzz/artifacts",
            crashed.join(", ")
        )),
    }
}

fn minutes(word: &str) -> Outcome<f64> {
    let number = word.parse().ok();
    let number = number.filter(|number| (0.01..=10_000.0).contains(number));
    number.ok_or_else(|| "expected a number from 0.01 to 10000, such as 5".to_owned())
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
}
