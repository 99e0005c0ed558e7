//! Long soak tests of the gateway under load. Run by `cargo xtask soak`.
//!
//! Each cell starts its gateways in front of the scripted upstream, and checks its results against
//! requirements.

mod operator;
mod overload;
mod readers;
mod reloads;
mod restarts;
mod streams;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use benches::load::to_message;
use benches::upstream::Upstream;
use benches::{Outcome, page, subject};
use clap::Parser;
use tokio::runtime::Builder;

use crate::verdict::{Check, table};

/// Runs soak tests against the gateway.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    page: page::Options,
    /// The number of times that the gateway is stopped under load.
    #[arg(long, value_name = "N")]
    cycles: Option<usize>,
    /// The cells to run; all of them by default.
    #[arg(conflicts_with = "write")]
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
    benches::run(&mut Builder::new_multi_thread(), run(Arguments::parse()))
}

async fn run(arguments: Arguments) -> Outcome {
    let own = std::env::current_exe().map_err(to_message)?;
    let mut ground = Ground {
        gateway: subject::beside(&own, "sluicegate")?,
        upstream: Upstream::start().await.map_err(to_message)?,
        quick: arguments.page.quick,
        cycles: arguments
            .cycles
            .unwrap_or(if arguments.page.quick { 10 } else { 200 }),
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
    arguments.page.publish("soak", &table(&checks))?;
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
