//! The binary: a model server whose replies conform, or fail in the way that the model name
//! selects.

use std::io::{self, Write};
use std::net::SocketAddr;

use clap::Parser;
use sluicegate_simulator::{Simulator, dialect, scenario};

/// A model server for tests of clients: Responses, Chat Completions, Messages and Images.
///
/// The model name of a request selects a scenario, see --list. Every other model name gets a
/// conforming ("honest") reply.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9100")]
    listen: SocketAddr,
    /// Print all scenarios.
    #[arg(long)]
    list: bool,
    /// Print the servers whose form a request can select by its path, as in /deepseek/v1.
    #[arg(long)]
    dialects: bool,
    /// Print the faults of this many scenarios fault-0, fault-1, ….
    #[arg(long, value_name = "COUNT")]
    faults: Option<u64>,
    /// Seed of the first fault to print.
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "faults")]
    first: u64,
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let mut out = io::stdout().lock();
    if arguments.list {
        return list(&mut out);
    }
    if arguments.dialects {
        return dialect::all()
            .iter()
            .try_for_each(|known| writeln!(out, "{:12} {}", known.name, known.about));
    }
    if let Some(count) = arguments.faults {
        return list_faults(arguments.first, count, &mut out);
    }
    let simulator = Simulator::listen(arguments.listen, scenario::answer)?;
    writeln!(
        out,
        "sluicegate-simulator listens on {}",
        simulator.base_url()
    )?;
    out.flush()?;
    simulator.join();
    Ok(())
}

/// Prints a line for each scenario: its template, the rows of the fault list that it covers, and
/// its description.
fn list(out: &mut impl Write) -> io::Result<()> {
    for scenario in scenario::all().iter().chain(scenario::models()) {
        writeln!(
            out,
            "{:28} {:9} {}",
            scenario.template,
            scenario.rows.join(" "),
            scenario.about
        )?;
    }
    Ok(())
}

/// Prints a line for each seed: the seed, its fault for streams and its fault for plain replies,
/// each with the word `loses` or `keeps`.
///
/// Seeds wrap around at 64 bits.
fn list_faults(first: u64, count: u64, out: &mut impl Write) -> io::Result<()> {
    for seed in (0..count).map(|number| first.wrapping_add(number)) {
        let [stream, plain] = [true, false].map(|stream| {
            let fault = scenario::fault(seed, stream);
            format!(
                "{:22} {:5}",
                fault.template,
                if fault.loses { "loses" } else { "keeps" }
            )
        });
        writeln!(out, "{seed:6} {stream} {}", plain.trim_end())?;
    }
    Ok(())
}
