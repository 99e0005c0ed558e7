//! `cargo xtask fuzz`: runs every fuzz target in turn.
//!
//! Inputs that reach new code are written to a separate folder of the target in `target/fuzz`, from
//! which the next run continues; the committed corpus grows with `--keep` only.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::outcome::{At as _, Outcome, no_problems, unknown};
use crate::tools::FUZZ;
use crate::{process, workspace};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The minutes for each target
    #[arg(long, value_name = "N", default_value_t = 1)]
    minutes: u32,
    /// Add inputs that reach new code to the corpus
    #[arg(long)]
    keep: bool,
    /// One target; all of them if absent
    target: Option<String>,
}

/// Runs every target for five minutes.
pub(crate) fn nightly() -> Outcome {
    run(&Args {
        minutes: 5,
        keep: false,
        target: None,
    })
}

/// Runs one target or all of them.
pub(crate) fn run(args: &Args) -> Outcome {
    let list = process::output(&mut fuzz("list")?)?;
    let mut targets: Vec<_> = list.lines().collect();
    if let Some(name) = &args.target {
        if !targets.contains(&&**name) {
            return Err(unknown("fuzz target", name, &targets));
        }
        targets = vec![name];
    }
    process::run(&mut fuzz("build --sanitizer none")?)?;
    let seconds = args.minutes * 60;
    let mut crashed = Vec::new();
    for target in targets {
        println!("-- {target} for {seconds} s");
        if !run_one(target, seconds, args.keep)? {
            crashed.push(format!("{target}: the input is in fuzz/artifacts/{target}"));
        }
    }
    no_problems("crashes", &crashed)
}

/// Fuzzes one target, with the output of libFuzzer, and returns true if it found no crash.
fn run_one(target: &str, seconds: u32, keep: bool) -> Outcome<bool> {
    let reached = workspace::target()?.join("fuzz").join(target);
    fs::create_dir_all(&reached).at(&reached)?;
    let corpus = folder().join("corpus").join(target);
    fs::create_dir_all(&corpus).at(&corpus)?;
    let mut command = fuzz("run --sanitizer none")?;
    // New inputs are written to the first folder.
    command.arg(target).args([&reached, &corpus]);
    command.arg("--").args(LIMITS.split(' '));
    command.arg(format!("-max_total_time={seconds}"));
    if process::run(&mut command).is_err() {
        return Ok(false);
    }
    if keep {
        // Adds inputs that reach code which the corpus does not reach.
        let mut merge = fuzz("run --sanitizer none")?;
        merge.arg(target).args([&corpus, &reached]);
        process::run(merge.args(["--", "-merge=1"]))?;
    }
    Ok(true)
}

/// A command of cargo-fuzz. It runs without a sanitizer: there is no unsafe code here to check, so
/// stable Rust is sufficient.
fn fuzz(line: &str) -> Outcome<Command> {
    let mut command = FUZZ.command(line)?;
    command.current_dir(folder());
    Ok(command)
}

fn folder() -> PathBuf {
    workspace::root().join("fuzz")
}

/// A parser that takes ten seconds or a gigabyte for a small input has failed.
const LIMITS: &str = "-timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0";
