//! Counts the instructions that a relayed request and a relayed event cost the gateway, and a bare
//! proxy, under callgrind. Run by `cargo xtask bench instructions`.
//!
//! The figures hardly depend on the load of the machine, so that they can be compared with
//! committed ones.

mod callgrind;
#[allow(dead_code, reason = "the other programs use the rest")]
mod client;
mod conversation;
#[allow(dead_code, reason = "the other programs use the rest")]
mod cores;
mod figures;
#[allow(dead_code, reason = "the other programs use the rest")]
mod question;
#[allow(dead_code, reason = "the other programs use the rest")]
mod subject;
#[allow(dead_code, reason = "the other programs use the rest")]
mod upstream;
#[allow(dead_code, reason = "the other programs use the rest")]
mod usage;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;

use crate::callgrind::{Count, Counted};
use crate::client::Connection;
use crate::figures::{Figures, Measured};
use crate::question::Question;
use crate::subject::{ROOM, beside};
use crate::upstream::Upstream;

/// A result whose error is a complete message for a person.
type Outcome<T = ()> = Result<T, String>;

/// Counts the instructions of a relayed request and event.
#[derive(Debug, Parser)]
struct Arguments {
    /// The file with the committed figures.
    figures: PathBuf,
    /// Replace the committed figures by those measured, for this reason.
    #[arg(long, value_name = "REASON")]
    write: Option<String>,
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    match runtime
        .map_err(text)
        .and_then(|runtime| runtime.block_on(run(Arguments::parse())))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Outcome {
    let own = std::env::current_exe().map_err(text)?;
    let upstream = Upstream::start().await.map_err(text)?;
    let mut bare = Command::new(beside(&own, "bare_proxy"));
    bare.arg(upstream.address.to_string());
    let bare = measure(Counted::bare(&bare)?).await?;
    let config = question::configuration(upstream.address, ROOM);
    let gateway = measure(Counted::gateway(&beside(&own, "sluicegate"), &config)?).await?;
    let measured = Measured { gateway, bare };
    print!("{measured}");
    match arguments.write {
        Some(reason) => write(&arguments.figures, &measured, &reason),
        None => Figures::read(&arguments.figures)?.hold(&measured),
    }
}

/// The cost of a small request and of an event of a stream, after a warm-up.
async fn measure(counted: Counted) -> Outcome<[Count; 2]> {
    let request = ask(&counted, Question::Small, WARM_UP).await?;
    assert_eq!(request, WARM_UP, "each request is one unit");
    counted.begin()?;
    let requests = ask(&counted, Question::Small, REQUESTS).await?;
    let request = counted.take(requests)?;
    ask(&counted, Question::Chat, WARM_UP_STREAMS).await?;
    counted.begin()?;
    let events = ask(&counted, Question::Chat, STREAMS).await?;
    let event = counted.take(events)?;
    Ok([request, event])
}

/// Sends so many requests on one connection, and returns how many replies or events were received.
async fn ask(counted: &Counted, question: Question, times: usize) -> Outcome<usize> {
    let failed = |error: io::Error| format!("the subject does not answer: {error}");
    let mut connection = Connection::open(counted.subject.address)
        .await
        .map_err(failed)?;
    let request = counted.subject.request(question);
    let mut units = 0;
    for _ in 0..times {
        units += match question {
            Question::Small => connection.ask(&request).await.map(|_| 1).map_err(failed)?,
            _ => connection.stream(&request).await.map_err(failed)?.events,
        };
    }
    Ok(units)
}

fn write(path: &Path, measured: &Measured, reason: &str) -> Outcome {
    std::fs::write(path, Figures::of(measured, reason).page())
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn text(error: io::Error) -> String {
    error.to_string()
}

const WARM_UP: usize = 200;
const REQUESTS: usize = 1_000;
const WARM_UP_STREAMS: usize = 4;
/// Each has 60 events and a few around them: more than a thousand events in all.
const STREAMS: usize = 17;
