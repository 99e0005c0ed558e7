//! Relays Images.

use engine::{EngineError, Usage};
use images::{Event, Grammar, Operation, Response};
use wire::{ApiError, Splice};

use super::{Action, End, RelayProtocol, grammar_error};
use crate::error::truncated;

/// The relayed Images protocol.
#[derive(Debug)]
pub struct Images {
    grammar: Grammar,
    usage: Option<Usage>,
}

impl Images {
    /// Creates the state of an answer to a request for `count` images.
    #[must_use]
    pub fn new(operation: Operation, count: u32) -> Self {
        Self {
            grammar: Grammar::new(operation, Some(count)),
            usage: None,
        }
    }
}

impl RelayProtocol for Images {
    const MAX_EVENT: usize = MAX_IMAGE_EVENT;

    fn event(&mut self, data: &str, _: &[u8], _: &mut Splice<'_>) -> Result<Action, EngineError> {
        let event = super::read_event(data, Event::read)?;
        self.grammar.push(&event).map_err(grammar_error)?;
        if let Event::GenerationCompleted(done) | Event::EditCompleted(done) = &event
            && let Some(usage) = &done.usage
        {
            let sum = self.usage.get_or_insert_default();
            sum.input = sum.input.saturating_add(usage.input_tokens);
            sum.output = sum.output.saturating_add(usage.output_tokens);
        }
        let end = End {
            incomplete: false,
            usage: self.usage,
        };
        Ok(if self.grammar.is_ended() {
            Action::End(end)
        } else {
            Action::Forward
        })
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<End, EngineError> {
        Err(truncated())
    }

    fn fail(&mut self, _: &str, error: &ApiError, out: &mut Vec<u8>) {
        Event::Error(error.body()).write(out);
    }

    fn reply(body: &[u8], _: &str, _: &mut Splice<'_>) -> Result<End, EngineError> {
        let response: Response = super::read(body)?;
        if response.data.is_empty() {
            return Err(EngineError::Upstream("the reply has no images".to_owned()));
        }
        Ok(End {
            incomplete: false,
            usage: response.usage.as_ref().map(neutral_usage),
        })
    }
}

/// Converts a complete reply to a stream, for clients that requested a stream.
///
/// # Errors
/// When it is not a reply, reports a failure, or does not have exactly `count` images.
pub fn reply_as_stream(
    body: &[u8],
    operation: Operation,
    count: u32,
) -> Result<(Vec<u8>, End), EngineError> {
    let response: Response = super::read(body)?;
    if response.data.len() != count as usize {
        let images = response.data.len();
        return Err(EngineError::Upstream(format!(
            "the reply has {images} images, expected {count}"
        )));
    }
    let usage = response.usage.as_ref().map(neutral_usage);
    let mut out = Vec::new();
    response
        .into_events(operation)
        .for_each(|event| event.write(&mut out));
    Ok((
        out,
        End {
            incomplete: false,
            usage,
        },
    ))
}

/// The token usage in the JSON of a reply's `usage` member, if it is valid.
pub(super) fn usage(member: &[u8]) -> Option<Usage> {
    serde_json::from_slice(member)
        .ok()
        .as_ref()
        .map(neutral_usage)
}

fn neutral_usage(usage: &images::Usage) -> Usage {
    Usage {
        input: usage.input_tokens,
        output: usage.output_tokens,
        ..Usage::default()
    }
}

/// The largest event: a large image as base64.
const MAX_IMAGE_EVENT: usize = 64 << 20;
