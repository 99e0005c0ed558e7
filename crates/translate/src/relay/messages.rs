//! Relays Messages.

use engine::{EngineError, Usage};
use messages::{ErrorBody, Event, Grammar, Message, Plain, StopReason, StreamFailure};
use wire::{ApiError, Splice};

use super::{End, EventAction, RelayProtocol, grammar_error, unfinished};
use crate::error::truncated;

/// The relayed Messages protocol.
#[derive(Debug, Default)]
pub struct Messages {
    grammar: Grammar,
    started: bool,
    usage: messages::Usage,
    incomplete: bool,
}

impl RelayProtocol for Messages {
    fn event(&mut self, data: &str) -> Result<EventAction, EngineError> {
        let event = super::read_event(data, Event::read)?;
        self.grammar.push(&event).map_err(grammar_error)?;
        Ok(match event {
            Event::MessageStart(event) => {
                self.started = true;
                self.usage = event.message.usage;
                EventAction {
                    model: Some(&["message", "model"]),
                    ..EventAction::FORWARD
                }
            }
            Event::MessageDelta(event) => {
                self.incomplete = event.delta.stop_reason.as_ref().is_some_and(is_truncated);
                self.usage.update(&event.usage);
                EventAction::FORWARD
            }
            Event::MessageStop(_) => {
                let usage = neutral_usage(&self.usage);
                EventAction {
                    end: Some(End {
                        incomplete: self.incomplete,
                        usage,
                    }),
                    ..EventAction::FORWARD
                }
            }
            _ => EventAction::FORWARD,
        })
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<End, EngineError> {
        Err(truncated())
    }

    fn fail(&mut self, _: &str, error: &ApiError, out: &mut Vec<u8>) {
        let ErrorBody { error, .. } = ErrorBody::new(error, "");
        Event::Error(StreamFailure::new(error)).write(out);
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        if self.started {
            Event::Ping(Plain::default()).write(out);
        } else {
            sse::comment("keep-alive", out);
        }
    }

    fn reply(body: &[u8], model: &str, splice: &mut Splice<'_>) -> Result<End, EngineError> {
        let message: Message = super::read(body)?;
        super::rename(splice, &["model"], &message.model, model);
        let incomplete = is_truncated(message.stop_reason.as_ref().ok_or_else(unfinished)?);
        Ok(End {
            incomplete,
            usage: neutral_usage(&message.usage),
        })
    }
}

fn is_truncated(reason: &StopReason) -> bool {
    matches!(
        reason,
        StopReason::MaxTokens | StopReason::ContextWindowExceeded
    )
}

/// Converts the usage. The protocol requires the counts, so a usage of zeros means that the
/// upstream reported none.
fn neutral_usage(usage: &messages::Usage) -> Option<Usage> {
    let read = usage.cache_read_input_tokens;
    let write = usage.cache_creation_input_tokens;
    let usage = Usage {
        input: usage
            .input_tokens
            .saturating_add(read)
            .saturating_add(write),
        cache_read: read,
        cache_write: write,
        output: usage.output_tokens,
        reasoning: 0,
    };
    (usage.total() > 0).then_some(usage)
}
