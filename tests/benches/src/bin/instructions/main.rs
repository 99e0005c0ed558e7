//! Counts the instructions that a small relayed request, a relayed event and a relayed conversation
//! cost the gateway under callgrind. Run by `cargo xtask bench instructions`.
//!
//! The figures hardly depend on the load of the machine, so that they can be compared with
//! committed ones: each event of a stream is sent once the one before it was received, because a
//! busy machine would leave several to one read.

mod figures;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use benches::Outcome;
use benches::callgrind::{Count, Counted};
use benches::client::Connection;
use benches::load::to_message;
use benches::question::{self, Question};
use benches::subject::ROOM;
use benches::upstream::Upstream;
use clap::Parser;
use simulator::{Play, Simulator};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;

use crate::figures::{Costs, Figures, Ratios};

/// Counts the instructions of a relayed request and event.
#[derive(Debug, Parser)]
struct Arguments {
    /// The file with the committed figures.
    figures: PathBuf,
    /// The gateway to measure.
    gateway: PathBuf,
    /// A bare proxy to compare the gateway with.
    #[arg(long, value_name = "FILE")]
    bare: Option<PathBuf>,
    /// The percentage above its figure from which on a count fails.
    #[arg(long, value_name = "PERCENT", default_value_t = figures::MOST)]
    most: u64,
    /// Succeed if the conversation is reported as too costly, since something costly was planted in
    /// the gateway.
    #[arg(long, conflicts_with = "write")]
    planted: bool,
    /// Replace the committed figures by those measured, for this reason.
    #[arg(long, value_name = "REASON")]
    write: Option<String>,
}

fn main() -> ExitCode {
    let mut runtime = Builder::new_multi_thread();
    benches::run(runtime.worker_threads(1), run(Arguments::parse()))
}

async fn run(arguments: Arguments) -> Outcome {
    let received = Arc::new(Semaphore::new(0));
    let upstream = Upstream::in_step(Arc::clone(&received)).await;
    let upstream = upstream.map_err(to_message)?;
    let config = question::configuration(upstream.address, ROOM);
    let program = arguments.gateway;
    let gateway = Counted::gateway(&program, &config)?;
    let with_quotas = Counted::gateway(&program, &[&config, question::AMPLE].concat())?;
    let gateway = measure(&gateway, &with_quotas, &received).await?;
    let traces = cost_of_traces(&program, &config, &gateway, &received).await?;
    if let Some(bare) = arguments.bare {
        let bare = Counted::bare(Command::new(bare).arg(upstream.address.to_string()))?;
        let bare = measure(&bare, &bare, &received).await?;
        print!("{}", Ratios { gateway, bare });
    }
    println!("instructions, traces of a request: {traces}, allowed are {MOST_FOR_TRACES}");
    if let Some(reason) = arguments.write {
        let text = Figures::of(&gateway, &reason).page();
        return std::fs::write(&arguments.figures, text)
            .map_err(|error| format!("{}: {error}", arguments.figures.display()));
    }
    let mut excesses = Figures::read(&arguments.figures)?.excesses(&gateway, arguments.most);
    if traces > MOST_FOR_TRACES {
        excesses.push(format!(
            "instructions of the traces of a request: {traces}, allowed are {MOST_FOR_TRACES}"
        ));
    }
    match arguments.planted {
        true => figures::caught(&excesses),
        false => figures::held(&excesses),
    }
}

/// The cost of a unit of each kind, after a warm-up. The last kind is measured in a process of its own.
async fn measure(counted: &Counted, with_quotas: &Counted, received: &Semaphore) -> Outcome<Costs> {
    let streams = (Question::Chat, WARM_UP_STREAMS, STREAMS);
    let conversations = (Question::Conversation, WARM_UP_CONVERSATIONS, CONVERSATIONS);
    Ok([
        cost(counted, SMALL_REQUESTS, received).await?,
        cost(counted, streams, received).await?,
        cost(counted, conversations, received).await?,
        cost(with_quotas, SMALL_REQUESTS, received).await?,
    ])
}

/// The cost of a unit, for a kind of request and how often it is sent before the measurement and in it.
async fn cost(
    counted: &Counted,
    (question, warm_up, times): (Question, usize, usize),
    received: &Semaphore,
) -> Outcome<Count> {
    ask(counted, question, warm_up, received).await?;
    counted.begin()?;
    let units = ask(counted, question, times, received).await?;
    counted.take(units)
}

/// The instructions that a small request costs more if its spans are exported. Both are counted in one run,
/// so that the difference needs no committed figure.
async fn cost_of_traces(
    program: &Path,
    config: &str,
    gateway: &Costs,
    received: &Semaphore,
) -> Outcome<u64> {
    let collector = Simulator::start(|_| Play::answer(200, &[], "")).map_err(to_message)?;
    let address = collector.address();
    let traces = format!("[traces]\nendpoint = \"http://{address}\"\n");
    let gateway_with_traces = Counted::gateway(program, &[config, &traces].concat())?;
    let [request, ..] = gateway;
    let mut least = u64::MAX;
    // A count is larger if it has one export more.
    for _ in 0..TRIES {
        let traced = cost(&gateway_with_traces, SMALL_REQUESTS, received).await?;
        least = least.min(traced.instructions.saturating_sub(request.instructions));
        if least <= MOST_FOR_TRACES {
            break;
        }
    }
    match collector.requests().is_empty() {
        true => Err("the gateway has exported no traces".to_owned()),
        false => Ok(least),
    }
}

/// Sends so many requests on one connection, and returns how many replies or events were received.
/// Each of the events adds a permit for the next one.
async fn ask(
    counted: &Counted,
    question: Question,
    times: usize,
    received: &Semaphore,
) -> Outcome<usize> {
    let failed = |error: std::io::Error| format!("the subject does not answer: {error}");
    let mut connection = Connection::open(counted.subject.address)
        .await
        .map_err(failed)?;
    let request = counted.subject.request(question);
    let mut units = 0;
    for _ in 0..times {
        units += match question.is_stream() {
            true => {
                // Those for the events that the last stream ended with are not for this one.
                received.forget_permits(usize::MAX);
                let streamed =
                    connection.stream_in_step(&request, |events| received.add_permits(events));
                streamed.await.map_err(failed)?.events
            }
            false => connection.ask(&request).await.map(|_| 1).map_err(failed)?,
        };
    }
    Ok(units)
}

/// Small requests, with the numbers of them before the measurement and in it.
const SMALL_REQUESTS: (Question, usize, usize) = (Question::Small, 200, 1_000);
const WARM_UP_STREAMS: usize = 4;
/// Each has 60 events and a few around them: more than a thousand events in all.
const STREAMS: usize = 17;
const WARM_UP_CONVERSATIONS: usize = 8;
const CONVERSATIONS: usize = 20;
/// How often the cost of traces is counted, at most.
const TRIES: usize = 3;
/// The instructions that the traces of a request may cost: 3 µs on a core that executes three and a half of them in a
/// nanosecond.
const MOST_FOR_TRACES: u64 = 10_500;
