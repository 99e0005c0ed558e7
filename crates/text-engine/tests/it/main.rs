//! Tests of the engine with its real model. It guarantees the form of its output, so only the form
//! is asserted.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod answers;
mod calls;
mod damage;
mod json;
mod places;

use std::sync::LazyLock;

use engine::{
    EngineError, Sampling, Stop, TextEngine, TextEvent, TextRequest, Turn, Usage, UserPart,
};
use futures_util::StreamExt;
use sluicegate_text_engine::{EmbeddedTextEngine, Options};

static ENGINE: LazyLock<EmbeddedTextEngine> = LazyLock::new(|| {
    load(Options {
        threads: 2,
        ..Options::default()
    })
});

/// Loads the engine. Panics with the remedy if the weights are missing.
fn load(options: Options) -> EmbeddedTextEngine {
    EmbeddedTextEngine::load(options).unwrap_or_else(|why| panic!("{why}"))
}

/// The collected events of a generation.
#[derive(Clone, Debug, Default, PartialEq)]
struct Output {
    reasoning: String,
    text: String,
    call: Option<(String, String)>,
    arguments: String,
    stop: Option<Stop>,
    usage: Usage,
    dropped: Vec<String>,
}

impl Output {
    fn push(&mut self, event: TextEvent) {
        match event {
            TextEvent::Reasoning(text) => self.reasoning += &text,
            TextEvent::Text(text) => self.text += &text,
            TextEvent::Call { id, name } => self.call = Some((id, name)),
            TextEvent::Arguments(text) => self.arguments += &text,
            TextEvent::Finished { stop, usage } => {
                self.stop = Some(stop);
                self.usage = usage.unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Runs a request to completion.
async fn run(request: TextRequest) -> Result<Output, EngineError> {
    let generation = ENGINE.start(request).await?;
    let mut output = Output {
        dropped: generation.dropped,
        ..Output::default()
    };
    let mut events = generation.events;
    while let Some(event) = events.next().await {
        output.push(event?);
    }
    assert!(output.stop.is_some(), "{output:?}");
    Ok(output)
}

/// A request with a single question. Its answer is deterministic.
fn single_turn(question: &str) -> TextRequest {
    multi_turn(vec![user(question)])
}

/// A request with several turns. Its answer is deterministic.
fn multi_turn(turns: Vec<Turn>) -> TextRequest {
    let sampling = Sampling {
        temperature: Some(0.0),
        ..Sampling::default()
    };
    TextRequest {
        turns,
        sampling,
        max_output_tokens: Some(48),
        ..TextRequest::default()
    }
}

fn user(text: &str) -> Turn {
    Turn::User(vec![UserPart::Text(text.to_owned())])
}
