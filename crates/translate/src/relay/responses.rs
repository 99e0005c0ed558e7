//! Responses, relayed.

use engine::EngineError;
use responses::{Event, Grammar, Offence, Response, ResponseError, ResponseEvent, Status};
use wire::{ApiError, Splice};

use super::{End, EventAction, RelayProtocol, malformed, strayed, truncated, unfinished};
use crate::outbound::told;

/// Responses as an upstream speaks it.
#[derive(Debug, Default)]
pub struct Responses {
    grammar: Grammar,
    /// The response as its first event told it.
    begun: Option<Box<Response>>,
    /// The sequence number of the next event.
    next: u64,
}

impl RelayProtocol for Responses {
    fn event(&mut self, data: &str) -> Result<EventAction, EngineError> {
        if data.trim() == "[DONE]" {
            return Err(malformed(&"[DONE] in a stream of Responses"));
        }
        let event = super::read_event(data, Event::read)?;
        match self.grammar.push(&event) {
            // A failure needs a response that has begun: nothing is let out before that.
            Err(Offence::UnknownType) if self.begun.is_none() => return Ok(EventAction::HELD_BACK),
            Ok(()) | Err(Offence::UnknownType) => {}
            Err(offence) => return Err(strayed(&offence)),
        }
        let number = event.sequence_number();
        let heard = self.note(event)?;
        // Only what is let out counts: a failure of ours comes in the place of the upstream's.
        self.next = number.map_or(self.next, |number| number + 1);
        Ok(heard)
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<End, EngineError> {
        Err(truncated())
    }

    fn fail(&mut self, model: &str, error: &ApiError, out: &mut Vec<u8>) {
        let Some(mut response) = self.begun.take() else { return };
        model.clone_into(&mut response.model);
        response.status = Status::Failed;
        response.output = std::mem::take(&mut self.grammar).into_items();
        response.error = Some(ResponseError::from(error));
        let failed = ResponseEvent { sequence_number: self.next, response, extra: wire::Object::default() };
        Event::Failed(failed).write(out);
    }

    fn reply(body: &[u8], model: &str, splice: &mut Splice<'_>) -> Result<End, EngineError> {
        let response: Response = super::read(body)?;
        match response.status {
            Status::Completed | Status::Incomplete => {}
            Status::Failed => return Err(failed(&response.error.unwrap_or_default())),
            _ => return Err(unfinished()),
        }
        super::rename(splice, &["model"], &response.model, model);
        Ok(end(&response))
    }
}

impl Responses {
    fn note(&mut self, event: Event) -> Result<EventAction, EngineError> {
        Ok(match event {
            Event::Created(event) => {
                self.begun = Some(event.response);
                OF_RESPONSE
            }
            Event::InProgress(_) => OF_RESPONSE,
            Event::Completed(event) | Event::Incomplete(event) => {
                EventAction { end: Some(end(&event.response)), ..OF_RESPONSE }
            }
            Event::Failed(event) => return Err(failed(&event.response.error.unwrap_or_default())),
            _ => EventAction::PLAIN,
        })
    }
}

fn failed(error: &ResponseError) -> EngineError {
    told(&error.code, &error.message)
}

fn end(response: &Response) -> End {
    let usage = response.usage.as_ref().map(|usage| engine::Usage {
        input: usage.input_tokens,
        cache_read: usage.input_tokens_details.cached_tokens,
        cache_write: usage.input_tokens_details.cache_write_tokens,
        output: usage.output_tokens,
        reasoning: usage.output_tokens_details.reasoning_tokens,
    });
    End { incomplete: response.status == Status::Incomplete, usage }
}

/// An event that carries the response.
const OF_RESPONSE: EventAction = EventAction { model: Some(&["response", "model"]), ..EventAction::PLAIN };
