//! Seeded faults, one after another, against a gateway in memory whose clock is paused. Run by `cargo xtask campaign`.
//!
//! A fault follows from the seed of the campaign and its number alone, so each can be repeated: `--only NUMBER`. After
//! each, `judge` holds what the client, the upstream, the log and the metrics saw against what is owed.

#![allow(clippy::unwrap_used, reason = "a campaign fails where it stands")]

mod client;
mod dice;
mod drawing;
mod fault;
mod judge;
#[path = "../upstreams/law.rs"]
mod law;
mod log;
mod panics;
mod pipe;
#[path = "../upstreams/question.rs"]
#[allow(dead_code, reason = "upstreams uses the rest")]
mod question;
mod said;
#[path = "../black_box/stream.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod stream;
mod summary;
#[path = "../upstreams/told.rs"]
mod told;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use clap::Parser;
use tokio::runtime::{Builder, Runtime};

use crate::fault::{Fault, Kind};
use crate::judge::{Verdict, judge};
use crate::summary::Summary;
use crate::world::World;

/// Puts seeded faults to the gateway.
#[derive(Debug, Parser)]
struct Arguments {
    /// Another seed is another campaign.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many faults.
    #[arg(long, default_value_t = 100_000)]
    faults: u64,
    /// One fault alone, told in full.
    #[arg(long, value_name = "NUMBER")]
    only: Option<u64>,
    /// How many at once; as many as there are cores without it.
    #[arg(long)]
    jobs: Option<u64>,
    /// Write the summary to this file too.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log::keep();
    panics::keep();
    let key = std::env::temp_dir().join(format!("sluicegate-campaign-{}.key", std::process::id()));
    if let Err(error) = std::fs::write(&key, law::UPSTREAM_KEY) {
        eprintln!("campaign: {}: {error}", key.display());
        return ExitCode::FAILURE;
    }
    let code = match arguments.only {
        Some(number) => tell(&arguments, number, &key),
        None => run(&arguments, &key),
    };
    // The system would clear it away too.
    let _ = std::fs::remove_file(&key);
    code
}

/// Puts every fault, and sums up.
fn run(arguments: &Arguments, key: &Path) -> ExitCode {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let jobs = arguments.jobs.unwrap_or(cores).max(1);
    let done = AtomicU64::new(0);
    let mut summary = Summary::default();
    thread::scope(|scope| {
        let work = |job| {
            let done = &done;
            move || share(arguments, (job..arguments.faults).step_by(jobs as usize), done, key)
        };
        let threads: Vec<_> = (0..jobs).map(|job| scope.spawn(work(job))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).for_each(|part| summary.merge(part));
    });
    let page = page(arguments, &summary);
    println!("{page}");
    for (number, what) in summary.broken.iter().take(SHOWN) {
        println!("fault {number}: {:?}\n  {what}\n", Fault::draw(arguments.seed, *number));
    }
    if let Some(path) = &arguments.write
        && let Err(error) = std::fs::write(path, page)
    {
        eprintln!("campaign: {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    let is_whole = done.into_inner() == arguments.faults;
    if is_whole && summary.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Puts these faults, on one thread.
fn share(arguments: &Arguments, numbers: impl Iterator<Item = u64>, done: &AtomicU64, key: &Path) -> Summary {
    let mut summary = Summary::default();
    let mut worlds = Worlds { key, current: None, used: 0 };
    for number in numbers {
        let fault = Fault::draw(arguments.seed, number);
        match worlds.put(&fault) {
            Ok(verdict) => summary.count(fault.kind.name(), verdict),
            Err(what) => {
                eprintln!("fault {number} broke a promise: {}", what.lines().next().unwrap_or_default());
                summary.broken.push((number, what));
            }
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(TOLD_EVERY) {
            eprintln!("{done} of {} faults", arguments.faults);
        }
    }
    summary
}

/// Puts one fault and tells all about it.
fn tell(arguments: &Arguments, number: u64, key: &Path) -> ExitCode {
    let fault = Fault::draw(arguments.seed, number);
    println!("{fault:#?}");
    match (Worlds { key, current: None, used: 0 }).put(&fault) {
        Ok(verdict) => {
            println!("{verdict:?}");
            ExitCode::SUCCESS
        }
        Err(what) => {
            println!("{what}");
            ExitCode::FAILURE
        }
    }
}

/// Gateways, one after another: a new one when the old one has ended or is worn.
struct Worlds<'a> {
    key: &'a Path,
    current: Option<(Runtime, World)>,
    used: usize,
}

impl Worlds<'_> {
    /// Puts a fault to a gateway; what is not as it is owed, as a message.
    fn put(&mut self, fault: &Fault) -> Result<Verdict, String> {
        let (runtime, world) = self.current.get_or_insert_with(|| {
            let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            let world = World::new(self.key);
            (runtime, world)
        });
        log::take();
        panics::take();
        let verdict = catch_unwind(AssertUnwindSafe(|| {
            let seen = runtime.block_on(world.suffer(fault));
            judge(fault, &seen, &log::take(), &panics::take())
        }));
        self.used += 1;
        let is_over = verdict.is_err()
            || self.used.is_multiple_of(WORN)
            || matches!(fault.kind, Kind::Shutdown(_) | Kind::Drain(_));
        if is_over {
            self.current = None;
        }
        verdict.map_err(|_| panics::take().join("\n"))
    }
}

fn page(arguments: &Arguments, summary: &Summary) -> String {
    let Arguments { seed, faults, .. } = arguments;
    format!("# Campaign\n\n`cargo xtask campaign --seed {seed} --faults {faults}`\n\n{summary}")
}

/// After so many faults a gateway is replaced.
const WORN: usize = 500;
/// After so many faults a line is told.
const TOLD_EVERY: u64 = 10_000;
/// So many broken promises are told in full.
const SHOWN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams that were begun end once and as they really ended, whatever goes wrong, and nothing is left over.
    #[test]
    fn a_thousand_faults_break_no_promise() {
        log::keep();
        panics::keep();
        let arguments = Arguments { seed: 5, faults: 1_000, only: None, jobs: None, write: None };
        let key = std::env::temp_dir().join(format!("sluicegate-campaign-test-{}.key", std::process::id()));
        std::fs::write(&key, law::UPSTREAM_KEY).unwrap();
        let done = AtomicU64::new(0);
        let summary = share(&arguments, 0..arguments.faults, &done, &key);
        std::fs::remove_file(&key).unwrap();
        assert_eq!(done.into_inner(), arguments.faults);
        assert_eq!(summary.broken, [], "faults that broke a promise");
    }
}
