//! Gives an instrumented gateway the work by which the compiler arranges its code. Run by `cargo
//! xtask dist --pgo`.
//!
//! It is the work of the benches, and refusals of each kind.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use benches::Outcome;
use benches::client::Connection;
use benches::load::{bounded, closed_loop, to_message};
use benches::question::{self, Question};
use benches::subject::{self, ROOM, Subject};
use benches::upstream::Upstream;
use clap::Parser;
use tokio::runtime::Builder;

/// Works with a gateway, and ends it in order.
#[derive(Debug, Parser)]
struct Arguments {
    /// The instrumented gateway.
    gateway: PathBuf,
}

fn main() -> ExitCode {
    benches::run(&mut Builder::new_multi_thread(), run(Arguments::parse()))
}

async fn run(arguments: Arguments) -> Outcome {
    let upstream = Upstream::start().await.map_err(to_message)?;
    let config = question::configuration(upstream.address, ROOM);
    let mut gateway = subject::gateway(&arguments.gateway, &config)?;
    for question in WORK {
        let done = closed_loop(&gateway, question, CONNECTIONS, SPAN).await?;
        println!("{question:?}: {} requests", done.answers);
    }
    refusals(&gateway).await?;
    // The counters are written at the end of the process.
    gateway.signal("TERM")?;
    let ended = async {
        loop {
            match gateway.ended() {
                Ok(None) => tokio::time::sleep(Duration::from_millis(20)).await,
                ended => return ended,
            }
        }
    };
    match bounded(Duration::from_secs(60), ended).await?? {
        Some(status) if status.success() => Ok(()),
        status => Err(format!("the gateway ended with {status:?}")),
    }
}

/// Sends requests that are refused: without the key, for an unknown path or model, with an invalid
/// value, and with a body that is no JSON.
async fn refusals(gateway: &Subject) -> Outcome {
    let request = gateway.request(Question::Small);
    let request = String::from_utf8_lossy(&request).into_owned();
    let refused = [
        (request.replace("Bearer sg_", "Bearer xx_"), 401),
        (
            request.replace("/chat/completions", "/chat/completionz"),
            404,
        ),
        (request.replace("our-small", "our-smell"), 404),
        (request.replace("\"Say hello.\"", "1           "), 400),
        (request.replace("{\"role", "[\"role"), 400),
    ];
    let mut connection = Connection::open(gateway.address)
        .await
        .map_err(to_message)?;
    for (request, expected) in refused.iter().cycle().take(REFUSALS) {
        let answer = bounded(
            Duration::from_secs(10),
            connection.answer(request.as_bytes()),
        );
        let answer = answer.await?.map_err(to_message)?;
        if answer.status != *expected {
            return Err(format!("status {}, expected {expected}", answer.status));
        }
    }
    Ok(())
}

const WORK: [Question; 10] = [
    Question::Small,
    Question::SmallResponses,
    Question::SmallMessages,
    Question::Chat,
    Question::Responses,
    Question::Messages,
    Question::Translated,
    Question::Picture,
    Question::Conversation,
    Question::TranslatedConversation,
];
const CONNECTIONS: usize = 16;
const SPAN: Duration = Duration::from_secs(1);
const REFUSALS: usize = 1_000;
