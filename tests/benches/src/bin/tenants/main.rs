//! Measures the effect of one key on another. The *greedy* key does all that is costly at the bound
//! of its limits: it refers to long answers, sends long conversations and more tools than are
//! accepted, reads nothing of its streams, does not finish its uploads, and fills its queue. The
//! *modest* key sends small requests at a fixed rate: alone, while the greedy key is at another
//! gateway on the same machine, and while both are at the same gateway. Run by `cargo xtask bench
//! tenants`.
//!
//! Two gateways on a machine of few cores wait for each other as well, so the last two cases are
//! compared: the difference is due to the resources that the keys of one gateway share. The clients
//! and the servers of the greedy key run on threads of the lowest priority, as though they were on
//! other machines.

mod greed;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use benches::load::{fixed_rate, percentile, to_message};
use benches::subject::{self, Subject, beside};
use benches::upstream::Upstream;
use benches::{Outcome, question};
use clap::Parser;
use rustix::process::setpriority_process;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::greed::{Clients, Servers};

/// Measures small requests of a key beside another key that does all that is costly.
#[derive(Debug, Parser)]
struct Arguments {
    /// The gateway to measure instead of the one beside this program.
    #[arg(long, value_name = "FILE")]
    gateway: Option<PathBuf>,
    /// The time of each measurement, in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The greedy key does only what has this word in its name.
    #[arg(long, value_name = "WORD", default_value = "")]
    only: String,
}

fn main() -> ExitCode {
    match other_machines() {
        Ok(others) => {
            let program = run(Arguments::parse(), others.handle().clone());
            benches::run(&mut Builder::new_multi_thread(), program)
        }
        Err(error) => benches::exit(Err(error)),
    }
}

/// Creates the runtime for all that belongs to the greedy key.
fn other_machines() -> Outcome<Runtime> {
    let mut runtime = Builder::new_multi_thread();
    runtime.enable_all().on_thread_start(|| {
        // A process may always lower a priority; at worst the threads run at the usual one.
        let _ = setpriority_process(None, LOWEST_PRIORITY);
    });
    runtime.build().map_err(to_message)
}

async fn run(arguments: Arguments, others: Handle) -> Outcome {
    let program = match arguments.gateway {
        Some(program) => program,
        None => beside(&std::env::current_exe().map_err(to_message)?, "sluicegate")?,
    };
    let span = Duration::from_secs(arguments.seconds);
    let upstream = Upstream::start().await.map_err(to_message)?;
    let servers = Servers::start(&others).await?;
    let config = question::configuration(upstream.address, LIMITS) + GREEDY + &servers.config();
    let gateway = subject::gateway(&program, &config)?;
    let another = subject::gateway(&program, &config)?;
    for gateway in [&gateway, &another] {
        greed::keep_answers(gateway.address).await?;
        fixed_rate(gateway, EVERY, WARM_UP).await?;
    }
    let before = gateway.memory()?;
    let alone = fixed_rate(&gateway, EVERY, span).await?;
    let mut measured = vec![alone];
    for greedy in [&another, &gateway] {
        let mut clients = Clients::new(greedy.address, span + WARM_UP);
        clients.start(&others, &arguments.only);
        tokio::time::sleep(WARM_UP).await;
        measured.push(fixed_rate(&gateway, EVERY, span).await?);
        print!("{}", clients.end().await?);
    }
    report(&gateway, before, &measured)
}

/// Prints the latencies and the memory, and checks them.
fn report(gateway: &Subject, before: f64, measured: &[Vec<Duration>]) -> Outcome {
    const SHARES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
    println!("\nsmall requests, us      alone   greedy key elsewhere   at this gateway   ratio");
    let mut ratio = 0.0;
    for (name, share) in SHARES {
        let of = |place: usize| percentile(&measured[place], share);
        ratio = of(2) / of(1);
        println!(
            "{name:20} {:8.0} {:22.0} {:17.0} {ratio:7.2}",
            of(0),
            of(1),
            of(2)
        );
    }
    let added = (gateway.peak_memory()? - before) / MIB;
    println!("memory added: {added:.0} MiB, configured are {CONFIGURED:.0} MiB");
    if ratio > MOST {
        return Err(format!(
            "the p99 is {ratio:.2} times that beside another gateway, and not at most {MOST}"
        ));
    }
    if added > CONFIGURED * 1.1 {
        return Err(format!(
            "{added:.0} MiB are over the configured memory by more than 10 %"
        ));
    }
    Ok(())
}

const LIMITS: &str =
    "concurrency = 64\nconcurrency_per_key = 32\nbody_memory = \"64MiB\"\nwrite_stall = \"3s\"\n";
/// The memory for bodies and kept answers, in MiB.
const CONFIGURED: f64 = 64.0 + 64.0;
const GREEDY: &str = "[[keys]]\nname = \"greedy\"\n\
     hash = \"sha256:e2d66b31d1a77bbee1c238ad0006bc9d2e9786306fdb3b1bbbe7a37a0b59bfcc\"\n\
     scopes = [\"text\", \"messages\", \"images\"]\n\
     [[quotas]]\nkey = \"greedy\"\nconcurrency = 8\nqueue = { wait = \"5s\", depth = 64 }\n\
     [responses]\nkeep = \"1h\"\nkeep_bytes = \"64MiB\"\n\
     [[models]]\nid = \"our-long\"\nfamily = \"text\"\nprotocols = [\"responses\"]\n\
     targets = [{ upstream = \"long\" }]\n\
     [[models]]\nid = \"greedy-service\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n\
     targets = [{ upstream = \"others\", model = \"service\" }]\n\
     [[models]]\nid = \"greedy-endless\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n\
     targets = [{ upstream = \"others\", model = \"endless\" }]\n";
/// The priority of the threads of the greedy key.
const LOWEST_PRIORITY: i32 = 19;
/// The time between two requests of the modest key.
const EVERY: Duration = Duration::from_millis(5);
const WARM_UP: Duration = Duration::from_secs(1);
/// The largest ratio of the latencies.
const MOST: f64 = 2.0;
const MIB: f64 = 1_048_576.0;
