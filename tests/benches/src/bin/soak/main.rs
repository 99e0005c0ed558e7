//! Long soak tests of the gateway under load. Run by `cargo xtask soak`.
//!
//! Each cell starts its gateways in front of the scripted upstream, and checks its results against
//! requirements.

#[path = "../client.rs"]
#[allow(dead_code, reason = "the benches use the rest")]
mod client;
#[path = "../conversation.rs"]
mod conversation;
#[path = "../cores.rs"]
#[allow(dead_code, reason = "the benches use the rest")]
mod cores;
#[path = "../load.rs"]
#[allow(dead_code, reason = "the benches use the rest")]
mod load;
mod operator;
mod overload;
#[path = "../question.rs"]
#[allow(dead_code, reason = "the benches use the rest")]
mod question;
mod readers;
mod reloads;
mod restarts;
mod streams;
#[path = "../subject.rs"]
#[allow(dead_code, reason = "the benches use the rest")]
mod subject;
#[path = "../upstream.rs"]
mod upstream;
#[path = "../usage.rs"]
#[allow(dead_code, reason = "the benches use the rest")]
mod usage;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::load::to_message;
use crate::upstream::Upstream;
use crate::verdict::{Check, table};

/// A result whose error is a complete message for a person.
type Outcome<T = ()> = Result<T, String>;

/// Runs soak tests against the gateway.
#[derive(Debug, Parser)]
struct Arguments {
    /// A short run: less of everything.
    #[arg(long)]
    quick: bool,
    /// The number of times that the gateway is stopped under load.
    #[arg(long, value_name = "N")]
    cycles: Option<usize>,
    /// Write the table to this file too.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// The cells to run; all of them by default.
    cells: Vec<String>,
}

/// The environment of a cell.
struct Ground {
    /// The release build of the gateway.
    gateway: PathBuf,
    /// The upstream of the gateways.
    upstream: Upstream,
    quick: bool,
    cycles: usize,
}

const CELLS: [&str; 5] = ["streams", "readers", "overload", "restarts", "reloads"];

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    match runtime
        .map_err(to_message)
        .and_then(|runtime| runtime.block_on(run(Arguments::parse())))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Outcome {
    let own = std::env::current_exe().map_err(to_message)?;
    let mut ground = Ground {
        gateway: subject::beside(&own, "sluicegate")?,
        upstream: Upstream::start().await.map_err(to_message)?,
        quick: arguments.quick,
        cycles: arguments
            .cycles
            .unwrap_or(if arguments.quick { 10 } else { 200 }),
    };
    let chosen = match &arguments.cells[..] {
        [] => CELLS.map(str::to_owned).to_vec(),
        some => some.to_vec(),
    };
    let mut checks = Vec::new();
    for name in chosen {
        eprintln!("soaking: {name}");
        checks.extend(
            cell(&name, &mut ground)
                .await
                .map_err(|error| format!("{name}: {error}"))?,
        );
    }
    println!("{}", table(&checks));
    if let Some(path) = arguments.write {
        std::fs::write(&path, page(&checks, arguments.quick))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    match checks
        .iter()
        .filter(|check| check.holds == Some(false))
        .count()
    {
        0 => Ok(()),
        failed => Err(format!("{failed} requirements are violated")),
    }
}

async fn cell(name: &str, ground: &mut Ground) -> Outcome<Vec<Check>> {
    match name {
        "streams" => streams::run(ground).await,
        "readers" => readers::run(ground).await,
        "overload" => overload::run(ground).await,
        "restarts" => restarts::run(ground).await,
        "reloads" => reloads::run(ground).await,
        _ => Err(format!(
            "there is nothing called so: choose of {}",
            CELLS.join(", ")
        )),
    }
}

/// The findings as a page.
fn page(checks: &[Check], quick: bool) -> String {
    let amount = if quick { " --quick" } else { "" };
    format!(
        "# Soak tests of the gateway\n\n\
         Written by `cargo xtask soak{amount} --write`. The release build of the gateway, without embedded engines, \
         runs in front of a\nscripted upstream. The upstream and the load are on the same machine, so the measured \
         times are approximate.\n\n{}",
        table(checks)
    )
}
