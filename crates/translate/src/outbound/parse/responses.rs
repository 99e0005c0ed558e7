//! Parses Responses answers of upstreams
//! (<https://platform.openai.com/docs/api-reference/responses-streaming>).

mod item;

use engine::{EngineError, Stop, TextEvent, Usage};
use serde_json::Value;

use self::item::{Item, Items, Kind, PartIndex};
use super::call_sequencer::CallSequencer;
use super::json::{ErrorMarkers, count, needed, read};
use crate::error::malformed;
use crate::outbound::failure::Complaint;

#[derive(Debug, Default)]
pub(super) struct StreamParser {
    items: Items,
}

/// Parses a complete response.
pub(super) fn reply(body: &[u8], out: &mut CallSequencer) -> Result<(), EngineError> {
    let response: Response = read(body)?;
    if response.output.is_none() {
        return Err(malformed("a response without 'output'"));
    }
    match response.status.as_deref() {
        Some("completed" | "incomplete") => StreamParser::default().finish(response, out),
        Some("failed") => Err(response.failure()),
        _ => Err(EngineError::Truncated(
            "the response is not finished".to_owned(),
        )),
    }
}

impl StreamParser {
    pub(super) fn event(
        &mut self,
        data: &[u8],
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        let kind = ErrorMarkers::read(data)?
            .kind
            .ok_or_else(|| malformed("an event without 'type'"))?;
        let Some(kind) = kind.strip_prefix("response.") else {
            return Ok(());
        };
        match kind {
            "completed" | "incomplete" => {
                let response = needed(read::<Terminal>(data)?.response, kind, "response")?;
                // The event's type decides, unless the response reports a failure, which must not
                // become a success.
                let has_failed = matches!(response.status.as_deref(), Some("failed" | "cancelled"));
                if has_failed || response.error.is_some() {
                    return Err(response.failure());
                }
                self.finish(
                    Response {
                        status: Some(kind.to_owned()),
                        ..response
                    },
                    out,
                )
            }
            "failed" => Err(read::<Terminal>(data)?
                .response
                .unwrap_or_default()
                .failure()),
            "output_item.added" | "output_item.done" => {
                self.item(&read(data)?, kind == "output_item.done", out)
            }
            _ => match Kind::from_event(kind) {
                Some((kind, true)) => self.done(kind, read(data)?, out),
                Some((kind, false)) => self.delta(kind, read(data)?, out),
                None => Ok(()),
            },
        }
    }

    fn delta(
        &mut self,
        kind: Kind,
        event: PartEvent,
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        let part = event.part();
        let text = needed(event.delta, kind.name(), "delta")?;
        let item = self
            .items
            .get_or_add(event.output_index, event.item_id.as_deref())?;
        item.push_delta(kind, part, &text, out)
    }

    fn done(
        &mut self,
        kind: Kind,
        event: PartEvent,
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        let part = event.part();
        let complete = needed(
            event.text.or(event.refusal).or(event.arguments),
            kind.name(),
            kind.complete_member(),
        )?;
        let item = self
            .items
            .get_or_add(event.output_index, event.item_id.as_deref())?;
        item.complete(kind, part, &complete, out)
    }

    fn item(
        &mut self,
        event: &ItemEvent,
        is_done: bool,
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        let ItemEvent { output_index, item } = event;
        let state = match is_done {
            true => self.items.get_or_add(*output_index, item.id.as_deref())?,
            false => self.items.start(*output_index, item.id.as_deref())?,
        };
        item.emit(state, is_done, out)
    }

    fn finish(&mut self, response: Response, out: &mut CallSequencer) -> Result<(), EngineError> {
        // Some servers send an item, or the rest of one, only here.
        let output = response.output.as_deref().unwrap_or_default();
        for (index, item) in output.iter().enumerate() {
            item.emit(self.items.matching(output, index)?, true, out)?;
        }
        let truncated = response.truncated();
        out.end(truncated.is_some())?;
        let natural = if out.has_calls {
            Stop::ToolCalls
        } else {
            Stop::End
        };
        let usage = response.usage.as_ref().and_then(neutral_usage);
        out.events.push(TextEvent::Finished {
            stop: truncated.unwrap_or(natural),
            usage,
        });
        Ok(())
    }
}

wire::read_objects! {
    struct Terminal {
        response: Option<Response>,
    }

    struct ItemEvent {
        output_index: Option<u64>,
        item: Item,
    }

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

    #[derive(Default)]
    struct Response {
        status: Option<String>,
        output: Option<Vec<Item>>,
        incomplete_details: Option<Value>,
        usage: Option<Value>,
        error: Option<Value>,
    }
}

impl PartEvent {
    fn part(&self) -> PartIndex {
        self.content_index
            .or(self.summary_index)
            .unwrap_or_default()
    }
}

impl Response {
    fn failure(&self) -> EngineError {
        self.error
            .as_ref()
            .map(Complaint::of)
            .unwrap_or_default()
            .in_success()
    }

    /// Returns the reason for which the output was truncated, if it was.
    fn truncated(&self) -> Option<Stop> {
        let reason = self
            .incomplete_details
            .as_ref()
            .and_then(|details| details.get("reason")?.as_str());
        match reason {
            Some("content_filter") => Some(Stop::Refused),
            Some(_) => Some(Stop::MaxTokens),
            None => (self.status.as_deref() == Some("incomplete")).then_some(Stop::MaxTokens),
        }
    }
}

fn neutral_usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, "/input_tokens");
    let output = count(usage, "/output_tokens");
    input.or(output)?;
    Some(Usage {
        input: input.unwrap_or_default(),
        cache_read: count(usage, "/input_tokens_details/cached_tokens").unwrap_or_default(),
        cache_write: count(usage, "/input_tokens_details/cache_write_tokens").unwrap_or_default(),
        output: output.unwrap_or_default(),
        reasoning: count(usage, "/output_tokens_details/reasoning_tokens").unwrap_or_default(),
    })
}
