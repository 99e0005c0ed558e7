//! Relays Chat Completions.

use chat::{Choice, Completion, Event, FinishReason, Grammar, Usage};
use engine::EngineError;
use wire::{ApiError, Splice};

use super::{End, EventAction, RelayProtocol, grammar_error, unfinished};
use crate::error::truncated;
use crate::outbound::check_finish;

/// The relayed Chat Completions protocol.
#[derive(Debug, Default)]
pub struct Chat {
    grammar: Grammar,
    end: End,
}

impl RelayProtocol for Chat {
    const NAMED: bool = false;

    fn event(&mut self, data: &str) -> Result<EventAction, EngineError> {
        let event = super::read_event(data, Event::read)?;
        self.grammar.push(&event).map_err(grammar_error)?;
        let chunk = match event {
            Event::Chunk(chunk) => chunk,
            Event::Done => {
                return Ok(EventAction {
                    end: Some(self.end),
                    ..EventAction::FORWARD
                });
            }
            _ => return Err(truncated()),
        };
        self.end.incomplete |= any_truncated(
            chunk
                .choices
                .iter()
                .map(|choice| choice.finish_reason.as_ref()),
        )?;
        let usage = chunk.usage.flatten();
        self.end.usage = usage.as_ref().map(neutral_usage).or(self.end.usage);
        Ok(EventAction {
            model: Some(&["model"]),
            remove: usage.map(|_| DETAILS),
            ..EventAction::FORWARD
        })
    }

    /// A finished stream may lack its `[DONE]`, which is appended.
    fn end(&mut self, out: &mut Vec<u8>) -> Result<End, EngineError> {
        if !self.grammar.may_end() {
            return Err(truncated());
        }
        Event::Done.write(out);
        Ok(self.end)
    }

    fn fail(&mut self, _: &str, error: &ApiError, out: &mut Vec<u8>) {
        Event::Error(error.body()).write(out);
    }

    fn reply(body: &[u8], model: &str, splice: &mut Splice<'_>) -> Result<End, EngineError> {
        let completion: Completion = super::read(body)?;
        let is_finished = |choice: &Choice| choice.finish_reason.is_some();
        if completion.choices.is_empty() || !completion.choices.iter().all(is_finished) {
            return Err(unfinished());
        }
        super::rename(splice, &["model"], &completion.model, model);
        splice.remove(DETAILS.0, DETAILS.1);
        let incomplete = any_truncated(
            completion
                .choices
                .iter()
                .map(|choice| choice.finish_reason.as_ref()),
        )?;
        Ok(End {
            incomplete,
            usage: completion.usage.as_ref().map(neutral_usage),
        })
    }
}

/// Returns true if any choice was truncated.
///
/// # Errors
/// When a finish reason reports a failure.
fn any_truncated<'a>(
    reasons: impl Iterator<Item = Option<&'a FinishReason>>,
) -> Result<bool, EngineError> {
    let mut truncated = false;
    for reason in reasons.flatten() {
        check_finish(reason.as_str())?;
        truncated |= *reason == FinishReason::Length;
    }
    Ok(truncated)
}

fn neutral_usage(usage: &Usage) -> engine::Usage {
    engine::Usage {
        input: usage.prompt_tokens,
        output: usage.completion_tokens,
        ..engine::Usage::default()
    }
}

/// The breakdown of the usage, which is not sent to clients of this protocol.
const DETAILS: (&[&str], &[&str]) = (
    &["usage"],
    &["prompt_tokens_details", "completion_tokens_details"],
);
