//! Shows that the work for a request and its answer is linear in their size: counts the instructions
//! of a gateway for n and for 4 n small parts, under callgrind. Run by `cargo xtask bench linear`.
//!
//! The requests go through the whole gateway, so that reading, checking, translating, encoding and
//! recording are measured together. The parts are as small as they can be, since a loop over the
//! parts within a loop over the parts costs most with many of them.

mod answers;
mod requests;
mod upstream;

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use benches::Outcome;
use benches::callgrind::Counted;
use benches::client::Connection;
use benches::load::to_message;
use benches::question::authorized;
use clap::Parser;
use tokio::runtime::Builder;

use crate::upstream::Upstream;

/// Counts the instructions for n and for 4 n parts.
#[derive(Debug, Parser)]
struct Arguments {
    /// The gateway to measure.
    gateway: PathBuf,
    /// Measure only cases whose name contains this.
    #[arg(long, value_name = "WORD", default_value = "")]
    only: String,
    /// Succeed if a case is above the bound, since a quadratic loop was planted in the gateway.
    #[arg(long)]
    planted: bool,
}

/// A request with n parts, or with an answer of n parts.
struct Case {
    name: String,
    path: &'static str,
    /// The body of the request.
    body: Build,
    /// The answer of the upstream; the usual one if absent.
    answer: Option<Build>,
}

/// Writes a document with so many parts.
type Build = Box<dyn Fn(usize) -> String>;

fn main() -> ExitCode {
    let mut runtime = Builder::new_multi_thread();
    benches::run(runtime.worker_threads(1), run(Arguments::parse()))
}

async fn run(arguments: Arguments) -> Outcome {
    let upstream = Upstream::start().await.map_err(to_message)?;
    let gateway = Counted::gateway(&arguments.gateway, &upstream.configuration())?;
    let mut above = Vec::new();
    let cases = requests::cases().into_iter().chain(answers::cases());
    for case in cases.filter(|case| case.name.contains(&arguments.only)) {
        let few = count(&gateway, &upstream, &case, PARTS).await?;
        let mut many = u64::MAX;
        let mut ratio = f64::INFINITY;
        // On a busy machine a count can be larger, for example if a timer has fired meanwhile.
        for _ in 0..TRIES {
            many = many.min(count(&gateway, &upstream, &case, 4 * PARTS).await?);
            ratio = many as f64 / few as f64;
            if ratio <= MOST {
                break;
            }
        }
        println!("{ratio:5.2} {many:>12} instructions: {}", case.name);
        if ratio > MOST {
            above.push(format!("{} costs {ratio:.2} times as much", case.name));
        }
    }
    match (above.is_empty(), arguments.planted) {
        (true, false) | (false, true) => Ok(()),
        (true, true) => Err("the quadratic loop was not found".to_owned()),
        (false, false) => Err(format!("with 4 times the parts, {}", above.join(", "))),
    }
}

/// The instructions for a case with so many parts, after a first request that warms the gateway up.
async fn count(
    gateway: &Counted,
    upstream: &Arc<Upstream>,
    case: &Case,
    parts: usize,
) -> Outcome<u64> {
    upstream.answer_with(case.answer.as_ref().map(|answer| answer(parts)));
    let mut connection = Connection::open(gateway.subject.address)
        .await
        .map_err(to_message)?;
    let request = authorized(case.path, gateway.subject.address, &(case.body)(parts));
    let mut ask = async || {
        let status = match case.name.contains("streamed") {
            true => connection.stream(&request).await.map(|_| 200),
            false => connection.answer(&request).await.map(|it| it.status),
        };
        let named = |error: &dyn Display| format!("{} with {parts} parts: {error}", case.name);
        match status.map_err(|error| named(&error))? {
            // A refusal may not cost more either.
            200 | 400 => Ok(()),
            other => Err(named(&format!("status {other}"))),
        }
    };
    ask().await?;
    gateway.begin()?;
    ask().await?;
    Ok(gateway.take(1)?.instructions)
}

/// The parts of the smaller request or answer: so many that a comparison of each with each other
/// costs more than all else, and so few that an answer may have 4 times as many calls.
const PARTS: usize = 1_000;
/// The number of times that a case above the bound is counted.
const TRIES: usize = 3;
/// The largest accepted ratio. The fixed cost of a request lowers it, growing buffers raise it.
const MOST: f64 = 4.4;
