//! The engine with its real model: what it promises is form, so form is what is tested.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod answers;
mod calls;
mod damage;
mod json;
mod places;

use std::sync::LazyLock;

use engine::{EngineError, Sampling, Stop, TextEngine, TextEvent, TextRequest, Turn, Usage, UserPart};
use futures_util::StreamExt;
use sluicegate_text_engine::{EmbeddedTextEngine, Options};

static LOCAL: LazyLock<EmbeddedTextEngine> = LazyLock::new(|| load(Options { threads: 2, ..Options::default() }));

/// The engine, or a failure that says how to get its weights.
fn load(options: Options) -> EmbeddedTextEngine {
    EmbeddedTextEngine::load(options).unwrap_or_else(|why| panic!("{why}"))
}

/// What a generation amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
struct Told {
    reasoning: String,
    text: String,
    call: Option<(String, String)>,
    arguments: String,
    stop: Option<Stop>,
    usage: Usage,
    dropped: Vec<String>,
}

impl Told {
    fn take(&mut self, event: TextEvent) {
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

/// Runs a request to its end.
async fn tell(request: TextRequest) -> Result<Told, EngineError> {
    let generation = LOCAL.start(request).await?;
    let mut told = Told { dropped: generation.dropped, ..Told::default() };
    let mut events = generation.events;
    while let Some(event) = events.next().await {
        told.take(event?);
    }
    assert!(told.stop.is_some(), "{told:?}");
    Ok(told)
}

/// A request of one question, always answered the same.
fn ask(question: &str) -> TextRequest {
    talk(vec![user(question)])
}

fn talk(turns: Vec<Turn>) -> TextRequest {
    let sampling = Sampling { temperature: Some(0.0), ..Sampling::default() };
    TextRequest { turns, sampling, max_output_tokens: Some(48), ..TextRequest::default() }
}

fn user(text: &str) -> Turn {
    Turn::User(vec![UserPart::Text(text.to_owned())])
}
