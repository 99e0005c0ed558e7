//! Parses Responses answers of upstreams (<https://platform.openai.com/docs/api-reference/responses-streaming>).

mod item;

use engine::{EngineError, Stop, TextEvent, Usage};
use serde::Deserialize;
use serde_json::Value;

use self::item::{Item, Items, Kind, PartIndex};
use super::call_sequencer::CallSequencer;
use super::json::{ErrorMarkers, count, lenient, malformed, needed, read};
use crate::outbound::failure::Complaint;

wire::read_objects!(Terminal, ItemEvent, PartEvent, Response, Incomplete, Counts, InputDetails, OutputDetails);

/// Parses a stream.
#[derive(Debug, Default)]
pub(super) struct StreamParser {
    sequencer: CallSequencer,
    items: Items,
}

/// Parses a complete response.
pub(super) fn reply(body: &[u8]) -> Result<Vec<TextEvent>, EngineError> {
    let (mut parser, mut out) = (StreamParser::default(), Vec::new());
    let response: Response = read(body)?;
    if response.output.is_none() {
        return Err(malformed("a response without 'output'"));
    }
    match response.status.as_deref() {
        Some("completed" | "incomplete") => parser.finish(response, &mut out).map(|()| out),
        Some("failed") => Err(response.failure()),
        _ => Err(EngineError::Truncated("the response is not finished".to_owned())),
    }
}

impl StreamParser {
    pub(super) fn event(&mut self, data: &[u8], out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let kind = ErrorMarkers::read(data)?.kind.ok_or_else(|| malformed("an event without 'type'"))?;
        let Some(kind) = kind.strip_prefix("response.") else { return Ok(()) };
        match kind {
            "completed" | "incomplete" => {
                let response = needed(read::<Terminal>(data)?.response, kind, "response")?;
                // The event's type decides, unless the response reports a failure, which must not become a success.
                let has_failed = matches!(response.status.as_deref(), Some("failed" | "cancelled"));
                if has_failed || response.error.is_some() {
                    return Err(response.failure());
                }
                self.finish(Response { status: Some(kind.to_owned()), ..response }, out)
            }
            "failed" => Err(read::<Terminal>(data)?.response.unwrap_or_default().failure()),
            "output_item.added" | "output_item.done" => {
                let ItemEvent { output_index, item } = read(data)?;
                self.item(output_index, &item, kind == "output_item.done", out)
            }
            _ => match Kind::from_event(kind) {
                Some((kind, true)) => self.done(kind, read(data)?, out),
                Some((kind, false)) => self.delta(kind, read(data)?, out),
                None => Ok(()),
            },
        }
    }

    fn delta(&mut self, kind: Kind, event: PartEvent, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let part = event.part();
        let text = needed(event.delta, kind.name(), "delta")?;
        let item = self.items.get_or_add(event.output_index, event.item_id.as_deref())?;
        item.push_delta(kind, part, &text, &mut self.sequencer, out)
    }

    fn done(&mut self, kind: Kind, event: PartEvent, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let part = event.part();
        let complete = needed(event.text.or(event.refusal).or(event.arguments), kind.name(), kind.complete_member())?;
        let item = self.items.get_or_add(event.output_index, event.item_id.as_deref())?;
        item.complete(kind, part, &complete, &mut self.sequencer, out)
    }

    fn item(
        &mut self,
        index: Option<u64>,
        item: &Item,
        is_done: bool,
        out: &mut Vec<TextEvent>,
    ) -> Result<(), EngineError> {
        let state = match is_done {
            true => self.items.get_or_add(index, item.id.as_deref())?,
            false => self.items.start(index, item.id.as_deref())?,
        };
        item.emit(state, is_done, &mut self.sequencer, out)
    }

    fn finish(&mut self, response: Response, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        // Some servers send an item, or the rest of one, only here.
        let output = response.output.as_deref().unwrap_or_default();
        for (index, item) in output.iter().enumerate() {
            item.emit(self.items.matching(output, index)?, true, &mut self.sequencer, out)?;
        }
        let truncated = response.truncated();
        self.sequencer.end(truncated.is_some(), out)?;
        let natural = if self.sequencer.has_calls() { Stop::ToolCalls } else { Stop::End };
        let usage = response.usage.and_then(Counts::neutral);
        out.push(TextEvent::Finished { stop: truncated.unwrap_or(natural), usage });
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Terminal {
    response: Option<Response>,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct ItemEvent {
    output_index: Option<u64>,
    item: Item,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct PartEvent {
    output_index: Option<u64>,
    item_id: Option<String>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    delta: Option<String>,
    text: Option<String>,
    refusal: Option<String>,
    arguments: Option<String>,
}

impl PartEvent {
    fn part(&self) -> PartIndex {
        self.content_index.or(self.summary_index).unwrap_or_default()
    }
}

#[derive(Default, Deserialize)]
#[serde(remote = "Self")]
struct Response {
    status: Option<String>,
    output: Option<Vec<Item>>,
    #[serde(default, deserialize_with = "lenient")]
    incomplete_details: Option<Incomplete>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Incomplete {
    reason: Option<String>,
}

impl Response {
    fn failure(&self) -> EngineError {
        self.error.as_ref().map(Complaint::of).unwrap_or_default().in_success()
    }

    /// Returns the reason for which the output was truncated, if it was.
    fn truncated(&self) -> Option<Stop> {
        let reason = self.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
        match reason {
            Some("content_filter") => Some(Stop::Refused),
            Some(_) => Some(Stop::MaxTokens),
            None => (self.status.as_deref() == Some("incomplete")).then_some(Stop::MaxTokens),
        }
    }
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Counts {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    input_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Default, Deserialize)]
#[serde(remote = "Self")]
struct InputDetails {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(remote = "Self")]
struct OutputDetails {
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

impl Counts {
    fn neutral(self) -> Option<Usage> {
        self.input_tokens.or(self.output_tokens)?;
        let input = self.input_tokens_details.unwrap_or_default();
        let output = self.output_tokens_details.unwrap_or_default();
        Some(Usage {
            input: self.input_tokens.unwrap_or_default(),
            cache_read: input.cached_tokens.unwrap_or_default(),
            cache_write: input.cache_write_tokens.unwrap_or_default(),
            output: self.output_tokens.unwrap_or_default(),
            reasoning: output.reasoning_tokens.unwrap_or_default(),
        })
    }
}
