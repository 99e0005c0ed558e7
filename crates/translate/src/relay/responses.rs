//! Relays Responses.

use engine::EngineError;
use responses::{Event, Grammar, Offence, Response, ResponseError, ResponseEvent, Status};
use wire::{ApiError, Splice};

use super::{End, EventAction, RelayProtocol, grammar_error, unfinished};
use crate::error::{malformed, truncated};
use crate::outbound::reported;

/// The relayed Responses protocol.
#[derive(Debug, Default)]
pub struct Responses {
    grammar: Grammar,
    /// The response as in the first event.
    started: Option<Box<Response>>,
    /// The sequence number of the next event.
    next: u64,
}

impl RelayProtocol for Responses {
    fn event(&mut self, data: &str) -> Result<EventAction, EngineError> {
        if data.trim() == "[DONE]" {
            return Err(malformed("[DONE] in a stream of Responses"));
        }
        let event = super::read_event(data, Event::read)?;
        // A failure event needs the started response, so nothing is forwarded before the response
        // starts. If such an event has a sequence number, the next one is refused: the client's
        // numbers would begin with a gap.
        if self.started.is_none() && event.is_undefined() {
            return Ok(EventAction::DROP);
        }
        match self.grammar.push(&event) {
            Ok(()) | Err(Offence::UnknownType) => {}
            Err(offence) => return Err(grammar_error(offence)),
        }
        let number = event.sequence_number();
        let action = self.apply(event)?;
        // Counts forwarded events only: the gateway's failure event takes the number of the
        // upstream's.
        self.next = number.map_or(self.next, |number| number + 1);
        Ok(action)
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<End, EngineError> {
        Err(truncated())
    }

    fn fail(&mut self, model: &str, error: &ApiError, out: &mut Vec<u8>) {
        let Some(mut response) = self.started.take() else {
            return;
        };
        model.clone_into(&mut response.model);
        response.status = Status::Failed;
        response.output = std::mem::take(&mut self.grammar).into_items();
        response.error = Some(ResponseError::from(error));
        let failed = ResponseEvent::new(self.next, response);
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
    fn apply(&mut self, event: Event) -> Result<EventAction, EngineError> {
        Ok(match event {
            Event::Created(event) => {
                self.started = Some(event.response);
                RENAME_MODEL
            }
            Event::InProgress(_) => RENAME_MODEL,
            Event::Completed(event) | Event::Incomplete(event) => EventAction {
                end: Some(end(&event.response)),
                ..RENAME_MODEL
            },
            Event::Failed(event) => return Err(failed(&event.response.error.unwrap_or_default())),
            _ => EventAction::FORWARD,
        })
    }
}

fn failed(error: &ResponseError) -> EngineError {
    reported(&error.code, &error.message)
}

fn end(response: &Response) -> End {
    let usage = response.usage.as_ref().map(|usage| engine::Usage {
        input: usage.input_tokens,
        cache_read: usage.input_tokens_details.cached_tokens,
        cache_write: usage.input_tokens_details.cache_write_tokens,
        output: usage.output_tokens,
        reasoning: usage.output_tokens_details.reasoning_tokens,
    });
    End {
        incomplete: response.status == Status::Incomplete,
        usage,
    }
}

/// Forwards an event that carries the response.
const RENAME_MODEL: EventAction = EventAction {
    model: Some(&["response", "model"]),
    ..EventAction::FORWARD
};
