//! The binary: a model server that is honest, or fails as the model's name says.

use std::io::{self, Write};
use std::net::SocketAddr;

use clap::Parser;
use sluicegate_simulator::{Simulator, scenario};

/// A model server for tests of clients: Responses, Chat Completions, Messages and Images.
///
/// The model of a request says what happens: a scenario by its name, as --list has them, and an honest answer for every
/// other name.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9100")]
    listen: SocketAddr,
    /// Print the scenarios.
    #[arg(long)]
    list: bool,
    /// Print what the scenarios fault-0, fault-1 … do, so many of them.
    #[arg(long, value_name = "COUNT")]
    faults: Option<u64>,
    /// The seed of the first of them.
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "faults")]
    first: u64,
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let mut out = io::stdout().lock();
    if arguments.list {
        return list(&mut out);
    }
    if let Some(count) = arguments.faults {
        return list_faults(arguments.first, count, &mut out);
    }
    let simulator = Simulator::listen(arguments.listen, scenario::answer)?;
    writeln!(out, "sluicegate-simulator listens on {}", simulator.base_url())?;
    out.flush()?;
    simulator.join();
    Ok(())
}

/// A line for each scenario: its template, the rows of the fault list that it shows, and what it does.
fn list(out: &mut impl Write) -> io::Result<()> {
    for scenario in scenario::all() {
        writeln!(out, "{:28} {:9} {}", scenario.template(), scenario.rows().join(" "), scenario.about())?;
    }
    Ok(())
}

/// A line for each seed: it, the fault of streams and that of plain replies, each with whether it loses something.
///
/// The seed after the last of 64 bits is 0.
fn list_faults(first: u64, count: u64, out: &mut impl Write) -> io::Result<()> {
    for seed in (0..count).map(|number| first.wrapping_add(number)) {
        let [stream, plain] = [true, false].map(|stream| {
            let fault = scenario::fault(seed, stream);
            format!("{:22} {:5}", fault.template(), if fault.loses() { "loses" } else { "keeps" })
        });
        writeln!(out, "{seed:6} {stream} {}", plain.trim_end())?;
    }
    Ok(())
}
