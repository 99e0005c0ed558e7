//! Benchmarks the gateway in front of an upstream, against a bare proxy. Run by `cargo xtask
//! bench`.

mod cells;
#[allow(dead_code, reason = "the soak uses the rest")]
mod client;
mod conversation;
mod cores;
mod load;
mod machine;
#[allow(dead_code, reason = "the soak uses the rest")]
mod question;
mod report;
#[allow(dead_code, reason = "the soak uses the rest")]
mod subject;
mod upstream;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::cells::{Amount, Bench, CELLS};
use crate::report::{Level, Line, table};
use crate::subject::{Programs, beside};
use crate::upstream::Upstream;

/// A result whose error is a complete message for a person.
type Outcome<T = ()> = Result<T, String>;

/// Measures the gateway against a bare proxy.
#[derive(Debug, Parser)]
struct Arguments {
    /// A short run: less is measured, so the numbers are rough.
    #[arg(long)]
    quick: bool,
    /// Write the tables to this file too.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// A gateway with its engines, whose size is told.
    #[arg(long, value_name = "FILE")]
    with_engines: Option<PathBuf>,
    /// The cells to measure; all of them by default.
    cells: Vec<String>,
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    match runtime
        .map_err(load::to_message)
        .and_then(|runtime| runtime.block_on(run(Arguments::parse())))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Outcome {
    if arguments.write.is_some() && !arguments.cells.is_empty() {
        return Err("the page has all cells: --write takes none".to_owned());
    }
    let mut upstream = Upstream::start().await.map_err(load::to_message)?;
    let own = std::env::current_exe().map_err(load::to_message)?;
    let programs = Programs {
        gateway: beside(&own, "sluicegate")?,
        bare: beside(&own, "bare_proxy")?,
        upstream: upstream.address,
    };
    let amount = if arguments.quick { QUICK } else { FULL };
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
    println!("{}", table(&lines, Level::Full));
    println!("{}", table(&lines, Level::Detail));
    match arguments.write {
        Some(path) => std::fs::write(&path, page(&lines, amount))
            .map_err(|error| format!("{}: {error}", path.display())),
        None => Ok(()),
    }
}

/// The results as a page. The tables are published in other pages by their headings.
fn page(lines: &[Line], amount: Amount) -> String {
    let Amount { rounds, span, .. } = amount;
    let [short, full, detail] =
        [Level::Short, Level::Full, Level::Detail].map(|level| table(lines, level));
    format!(
        "# The gateway compared with a bare proxy\n\n\
         Written by `cargo xtask bench gateway --write`. The gateway and a bare proxy take turns in front of the same \
         upstream on\nthe same machine, in {rounds} rounds of {} s. Both have the same release profile and the same \
         allocator. The gateway\nhas no embedded engines (`--no-default-features`), and keys, validation, limits, \
         metrics and its log are enabled. The\nbare proxy is [`bare_proxy.rs`](bare_proxy.rs), which uses hyper only; \
         *per core* it has a runtime for each core, which\nshares nothing with the others.\n\n\
         The ratio is gateway to bare proxy: the median of the ratios of all rounds, and the spread is the least and \
         the greatest\nof them. *On one core* the measured process has a core and a worker of its own, and the load \
         and the upstream have the\nother cores; in all other rows they share all cores. *Added* is the latency in \
         excess of requests that are sent to the\nupstream directly.\n\n\
         ## Machine\n\n{}.\n\n## In short\n\n{short}\n## In full\n\n{full}\n## Details\n\n{detail}",
        span.as_secs_f64(),
        machine::kind(),
    )
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
