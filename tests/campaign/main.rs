//! Seeded faults, one after another, against a gateway in memory whose clock is paused. Run by
//! `cargo xtask campaign`.
//!
//! A fault follows from the seed of the campaign and its number alone, and the state that it meets
//! from the faults before it in its block, so that each can be repeated: `--only NUMBER` runs its
//! block up to it. After each, `judge` checks the client, the upstream, the log and the metrics
//! against the requirements. A quarter of the requests has another one beside it, which has to
//! succeed. Half of the faults follow the one before at once, over the connections that it left
//! open. A third of the clients speaks HTTP/2, with the other request on the same connection. A quarter of the clients
//! that stream Responses sends its request over a WebSocket, where each message is judged as an event of a stream.
//!
//! The table that is printed has a row for each kind of fault:
//!
//! - An *answer* is the body of an upstream's response. It is closed, reset, ended early or stalled
//!   at a random position, or one of its bytes or events is changed.
//! - A *hollow reply* is complete, but it is empty, marked as unfinished, or has an error status.
//! - A *scenario* is one of the simulator; a *real server* sends a case of `tests/dialects`.
//! - *Not reached* is an upstream that refuses the connection or does not accept it.
//! - *Process leaves* is a graceful shutdown, and *process ends* the deadline of one.
//! - Of *two targets*, the first has one of these faults, and the second mostly none.
//! - An *undecodable request* is cut within its content coding, has another one than its label says, or decodes to
//!   more than the limit. One in forty requests has a coding, and as many answers, whatever else happens to them.
//! - A request *over a WebSocket* meets any fault of an upstream, of its client or of the process.
//! - A *strict vendor* refuses what the real one refuses; a client of another protocol sends it a request at random,
//!   and any of these faults may happen. Neither it nor the second of *two strict vendors* may refuse the request that
//!   the gateway makes from it.
//!
//! Its columns count the outcomes for the client: see [`judge::Verdict`]. `shares` compares them
//! with the shares of outcomes in `expected.toml`, which `--write` writes. The mutations
//! `campaign-lie-…` make the gateway lie about one thing, such as the end of a truncated answer.
//! Each is tried with 20,000 faults of one seed, and is caught if a fault shows the lie.

#![allow(clippy::unwrap_used, reason = "a campaign fails where it stands")]

mod client;
mod drawing;
mod fault;
mod gateways;
mod harness;
mod http1;
mod http2;
mod judge;
mod log;
mod metrics;
mod panics;
mod pipe;
mod shares;
mod summary;
mod upstream_response;
mod visit;
mod websocket;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use clap::Parser;
use testkit::UPSTREAM_KEY;

use crate::fault::Fault;
use crate::gateways::{BLOCK, Gateways};
use crate::summary::Summary;

/// Runs seeded faults against the gateway.
#[derive(Debug, Parser)]
struct Arguments {
    /// The seed of the campaign.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of faults.
    #[arg(long, default_value_t = 100_000)]
    faults: u64,
    /// Run a single fault and print all details.
    #[arg(long, value_name = "NUMBER")]
    only: Option<u64>,
    /// The number of threads; as many as there are cores by default.
    #[arg(long)]
    jobs: Option<u64>,
    /// Write the expected shares of outcomes to this file, instead of comparing with them.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log::keep();
    panics::keep();
    let key = std::env::temp_dir().join(format!("sluicegate-campaign-{}.key", std::process::id()));
    if let Err(error) = std::fs::write(&key, UPSTREAM_KEY) {
        eprintln!("campaign: {}: {error}", key.display());
        return ExitCode::FAILURE;
    }
    let code = match arguments.only {
        Some(number) => print_details(&arguments, number, &key),
        None => run(&arguments, &key),
    };
    // The system removes it otherwise.
    let _ = std::fs::remove_file(&key);
    code
}

/// Runs every fault, and sums up.
fn run(arguments: &Arguments, key: &Path) -> ExitCode {
    eprintln!(
        "campaign: {} faults of seed {}",
        arguments.faults, arguments.seed
    );
    let summary = run_all(arguments, key);
    println!("{summary}");
    for (number, what) in summary.broken.iter().take(SHOWN) {
        println!(
            "fault {number}: {:?}\n  {what}\n",
            Fault::draw(arguments.seed, *number)
        );
    }
    let deviations = match &arguments.write {
        Some(path) => std::fs::write(path, shares::text(arguments.seed, &summary))
            .err()
            .map(|error| format!("{}: {error}", path.display())),
        None => differences(&summary).err(),
    };
    if let Some(deviations) = &deviations {
        eprintln!("campaign: {deviations}");
    }
    let is_whole = summary.faults() == arguments.faults;
    if is_whole && summary.broken.is_empty() && deviations.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Compares the shares of a summary with the committed ones.
fn differences(summary: &Summary) -> Result<(), String> {
    let deviations = shares::deviations(&summary.rows(), &shares::committed()?);
    if deviations.is_empty() {
        Ok(())
    } else {
        Err(format!("other shares:\n  {}", deviations.join("\n  ")))
    }
}

/// Runs every fault, on as many threads as there are jobs. The result of a fault does not depend on
/// their number.
fn run_all(arguments: &Arguments, key: &Path) -> Summary {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let next = AtomicU64::new(0);
    let mut summary = Summary::default();
    thread::scope(|scope| {
        let work = || {
            let blocks = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed) * BLOCK);
            let mut summary = Summary::default();
            for first in blocks.take_while(|first| *first < arguments.faults) {
                run_block(arguments, first, &mut summary, key);
            }
            summary
        };
        let threads: Vec<_> = (0..arguments.jobs.unwrap_or(cores).max(1))
            .map(|_| scope.spawn(work))
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .for_each(|part| summary.merge(part));
    });
    summary
}

/// Runs the block of faults that begins with this one.
fn run_block(arguments: &Arguments, first: u64, summary: &mut Summary, key: &Path) {
    let mut gateways = Gateways::new(key, arguments.seed, first / BLOCK);
    for number in first..arguments.faults.min(first + BLOCK) {
        let fault = Fault::draw(arguments.seed, number);
        match gateways.run(&fault) {
            Ok(verdict) => summary.count(fault.name(), verdict),
            Err(what) => {
                let first = what.lines().next().unwrap_or_default();
                eprintln!(
                    "fault {number} violated a requirement (--seed {} --only {number}): {first}",
                    arguments.seed
                );
                summary.broken.push((number, what));
            }
        }
        if (number + 1).is_multiple_of(PROGRESS_INTERVAL) {
            eprintln!("{} of {} faults", number + 1, arguments.faults);
        }
    }
}

/// Runs one fault and prints all details. The faults before it in its block are run too, so that
/// the gateway is in the same state.
fn print_details(arguments: &Arguments, number: u64, key: &Path) -> ExitCode {
    let mut gateways = Gateways::new(key, arguments.seed, number / BLOCK);
    for before in number - number % BLOCK..number {
        // Their results are printed on request only.
        let _ = gateways.run(&Fault::draw(arguments.seed, before));
    }
    let fault = Fault::draw(arguments.seed, number);
    println!("{fault:#?}");
    match gateways.run(&fault) {
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

/// The number of faults after which progress is printed.
const PROGRESS_INTERVAL: u64 = 10_000;
/// The number of violations that are printed in full.
const SHOWN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the first faults of a seed.
    fn first(faults: u64, seed: u64, jobs: Option<u64>) -> Summary {
        log::keep();
        panics::keep();
        let arguments = Arguments {
            seed,
            faults,
            only: None,
            jobs,
            write: None,
        };
        let key = std::env::temp_dir().join(format!(
            "sluicegate-campaign-{}-{seed}.key",
            std::process::id()
        ));
        std::fs::write(&key, UPSTREAM_KEY).unwrap();
        let summary = run_all(&arguments, &key);
        std::fs::remove_file(&key).unwrap();
        assert_eq!(summary.faults(), faults);
        summary
    }

    /// Streams that were started end once and as they really ended, under every fault, and nothing
    /// leaks.
    #[test]
    #[ignore = "for the mutations: `cargo xtask ci` runs the campaign with ten thousand faults of the same seed"]
    fn thousands_of_faults_break_no_promise() {
        let summary = first(3_000, 5, None);
        assert_eq!(summary.broken, [], "faults that violated a requirement");
        assert_eq!(differences(&summary), Ok(()));
    }

    /// As above, with as many faults as show the loss of rare guards.
    #[test]
    #[ignore = "minutes of work: for the mutations that break one truth about the end of an answer"]
    fn many_thousands_of_faults_break_no_promise() {
        assert_eq!(first(20_000, 5, None).broken, []);
    }

    /// The seed determines everything: the faults and how each of them ends, on any number of
    /// threads.
    #[test]
    fn the_same_seed_gives_the_same_summary() {
        let [one, other] = [1, 3].map(|jobs| first(300, u64::MAX, Some(jobs)));
        assert_eq!(one.to_string(), other.to_string());
        let faults = |seed| {
            format!(
                "{:?}",
                (0..20)
                    .map(|number| Fault::draw(seed, number))
                    .collect::<Vec<_>>()
            )
        };
        assert_eq!(faults(u64::MAX), faults(u64::MAX));
        assert_ne!(faults(u64::MAX), faults(0));
    }
}
