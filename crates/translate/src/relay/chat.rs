//! Chat Completions, relayed.

use chat::{Choice, Completion, Event, FinishReason, Grammar, Usage};
use engine::EngineError;
use wire::{ApiError, Splice};

use super::{End, EventAction, RelayProtocol, strayed, truncated, unfinished};
use crate::outbound::check_finish;

/// Chat Completions as an upstream speaks it.
#[derive(Debug, Default)]
pub struct Chat {
    grammar: Grammar,
    end: End,
}

impl RelayProtocol for Chat {
    const NAMED: bool = false;

    fn event(&mut self, data: &str) -> Result<EventAction, EngineError> {
        let event = super::read_event(data, Event::read)?;
        self.grammar.push(&event).map_err(|offence| strayed(&offence))?;
        let chunk = match event {
            Event::Chunk(chunk) => chunk,
            Event::Done => return Ok(EventAction { end: Some(self.end), ..EventAction::PLAIN }),
            _ => return Err(truncated()),
        };
        self.end.incomplete |= is_cut(chunk.choices.iter().map(|choice| choice.finish_reason.as_ref()))?;
        let usage = chunk.usage.flatten();
        self.end.usage = usage.as_ref().map(counted).or(self.end.usage);
        Ok(EventAction { model: Some(&["model"]), without: usage.map(|_| DETAILS), ..EventAction::PLAIN })
    }

    /// An upstream that has finished may leave the last event out.
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
        let incomplete = is_cut(completion.choices.iter().map(|choice| choice.finish_reason.as_ref()))?;
        Ok(End { incomplete, usage: completion.usage.as_ref().map(counted) })
    }
}

/// Whether any answer was cut, unless one did not finish at all.
fn is_cut<'a>(reasons: impl Iterator<Item = Option<&'a FinishReason>>) -> Result<bool, EngineError> {
    let mut cut = false;
    for reason in reasons.flatten() {
        check_finish(reason.as_str())?;
        cut |= *reason == FinishReason::Length;
    }
    Ok(cut)
}

fn counted(usage: &Usage) -> engine::Usage {
    engine::Usage { input: usage.prompt_tokens, output: usage.completion_tokens, ..engine::Usage::default() }
}

/// Clients of this protocol are told no breakdown of the usage (spec §2.2).
const DETAILS: (&[&str], &[&str]) = (&["usage"], &["prompt_tokens_details", "completion_tokens_details"]);
