//! Images, relayed.

use engine::{EngineError, Usage};
use images::{Event, Grammar, Operation, Reply};
use wire::{ApiError, Splice};

use super::{End, Heard, Speech, malformed, truncated};
use crate::outbound::told;

/// Images as an upstream speaks it.
#[derive(Debug)]
pub struct Images {
    grammar: Grammar,
    usage: Option<Usage>,
}

impl Images {
    /// The answer to a request for so many pictures.
    #[must_use]
    pub fn new(operation: Operation, count: u32) -> Self {
        Self { grammar: Grammar::new(operation, Some(count)), usage: None }
    }
}

impl Speech for Images {
    const MAX_EVENT: usize = MAX_PICTURE_EVENT;

    fn event(&mut self, data: &str) -> Result<Heard, EngineError> {
        let event = Event::read(data).map_err(|error| malformed(&error))?;
        if let Event::Error(failure) = &event {
            return Err(failed(&failure.error));
        }
        self.grammar.push(&event).map_err(|offence| malformed(&offence))?;
        if let Event::GenerationCompleted(done) | Event::EditCompleted(done) = &event
            && let Some(usage) = &done.usage
        {
            self.count(usage);
        }
        let end = self.grammar.is_ended().then_some(End { incomplete: false, usage: self.usage });
        Ok(Heard { end, ..Heard::PLAIN })
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<End, EngineError> {
        Err(truncated())
    }

    fn fail(&mut self, _: &str, error: &ApiError, out: &mut Vec<u8>) {
        Event::Error(error.body()).write(out);
    }

    fn reply(body: &[u8], _: &str, _: &mut Splice<'_>) -> Result<End, EngineError> {
        match Reply::read(body).map_err(|error| malformed(&error))? {
            Reply::Pictures(response) => {
                let usage = response.usage.map(|usage| Usage {
                    input: usage.input_tokens,
                    output: usage.output_tokens,
                    ..Usage::default()
                });
                Ok(End { incomplete: false, usage })
            }
            Reply::Failure(body) => Err(failed(&body.error)),
        }
    }
}

impl Images {
    fn count(&mut self, told: &images::Usage) {
        let sum = self.usage.get_or_insert_default();
        sum.input = sum.input.saturating_add(told.input_tokens);
        sum.output = sum.output.saturating_add(told.output_tokens);
    }
}

fn failed(error: &wire::ErrorDetail) -> EngineError {
    told(error.code.as_deref().unwrap_or(&error.kind), &error.message)
}

/// The longest event: a large picture as base64.
const MAX_PICTURE_EVENT: usize = 64 << 20;
