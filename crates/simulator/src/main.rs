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
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let mut out = io::stdout().lock();
    if arguments.list {
        return list(&mut out);
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
