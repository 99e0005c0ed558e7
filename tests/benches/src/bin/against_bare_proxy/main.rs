//! Benchmarks the gateway in front of an upstream, against a bare proxy. Run by `cargo xtask
//! bench`.

mod cells;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use benches::subject::{Programs, beside};
use benches::upstream::Upstream;
use benches::{Outcome, load, page};
use clap::Parser;
use tokio::runtime::Builder;

use crate::cells::{Amount, Bench, CELLS};
use crate::report::{Level, table};

/// Measures the gateway against a bare proxy.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    page: page::Options,
    /// A gateway with its engines, whose size is reported.
    #[arg(long, value_name = "FILE")]
    with_engines: Option<PathBuf>,
    /// The cells to measure; all of them by default.
    #[arg(conflicts_with = "write")]
    cells: Vec<String>,
}

fn main() -> ExitCode {
    benches::run(&mut Builder::new_multi_thread(), run(Arguments::parse()))
}

async fn run(arguments: Arguments) -> Outcome {
    let mut upstream = Upstream::start().await.map_err(load::to_message)?;
    let own = std::env::current_exe().map_err(load::to_message)?;
    let programs = Programs {
        gateway: beside(&own, "sluicegate")?,
        bare: beside(&own, "bare_proxy")?,
        upstream: upstream.address,
    };
    let amount = if arguments.page.quick { QUICK } else { FULL };
    let bench = Bench {
        programs,
        with_engines: arguments.with_engines,
        amount,
    };
    let chosen = match &arguments.cells[..] {
        [] => CELLS.map(str::to_owned).to_vec(),
        some => some.to_vec(),
    };
    let mut lines = Vec::new();
    for name in chosen {
        eprintln!("measuring {name}");
        lines.extend(bench.cell(&name, &mut upstream).await?);
    }
    let tables = [Level::Full, Level::Detail].map(|level| table(&lines, level));
    arguments.page.publish("gateway", &tables.join("\n"))
}

const FULL: Amount = Amount {
    rounds: 7,
    span: Duration::from_secs(2),
    open: &[1000, 9500],
    streams: 200,
};
const QUICK: Amount = Amount {
    rounds: 1,
    span: Duration::from_millis(300),
    open: &[1000],
    streams: 30,
};
