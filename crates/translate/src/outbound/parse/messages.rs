//! Parses Messages answers of upstreams
//! (<https://docs.anthropic.com/en/docs/build-with-claude/streaming>).

use engine::{EngineError, Stop, TextEvent, Usage};
use serde_json::Value;
use wire::Json;

use super::call_sequencer::{CallSequencer, Key};
use super::json::{ErrorMarkers, bounded, count, lenient, needed, read};
use crate::error::malformed;

#[derive(Debug, Default)]
pub(super) struct StreamParser {
    calls: Vec<Call>,
    counts: Counts,
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
}

#[derive(Debug)]
struct Call {
    index: u32,
    key: Key,
    /// The input in the block's start event, used if no deltas follow.
    input: String,
}

/// Parses a complete message.
pub(super) fn reply(body: &[u8], out: &mut CallSequencer) -> Result<(), EngineError> {
    let mut parser = StreamParser::default();
    let message: Message = read(body)?;
    if message.kind != "message" {
        return Err(malformed("the reply is not a message"));
    }
    for (index, block) in needed(message.content, "message", "content")?
        .into_iter()
        .enumerate()
    {
        parser.start_block(index as u64, block, out)?;
        parser.close(index as u64, out)?;
    }
    parser.counts.update(message.usage.as_ref());
    parser.stop_reason = Some(needed(message.stop_reason, "message", "stop_reason")?);
    parser.stop_sequence = message.stop_sequence;
    parser.finish(out)
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
        match kind.as_str() {
            "message_start" => {
                let start: Start = read(data)?;
                self.counts.update(start.message.usage.as_ref());
            }
            // Content after the stop reason is ignored.
            "content_block_start" | "content_block_delta" if self.stop_reason.is_some() => {}
            "content_block_start" => {
                let start: BlockStart = read(data)?;
                self.start_block(start.index, start.content_block, out)?;
            }
            "content_block_delta" => {
                let delta: BlockDelta = read(data)?;
                self.delta(delta, out)?;
            }
            "content_block_stop" => {
                let stop: BlockStop = read(data)?;
                self.close(stop.index, out)?;
            }
            "message_delta" => {
                let ending: Ending = read(data)?;
                self.counts.update(ending.usage.as_ref());
                self.stop_reason = ending.delta.stop_reason.or(self.stop_reason.take());
                self.stop_sequence = ending.delta.stop_sequence.or(self.stop_sequence.take());
            }
            "message_stop" if self.stop_reason.is_none() => {
                return Err(EngineError::Truncated(
                    "message_stop without a stop reason".to_owned(),
                ));
            }
            "message_stop" => self.finish(out)?,
            _ => {}
        }
        Ok(())
    }

    fn start_block(
        &mut self,
        index: u64,
        block: Block,
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        let index = bounded(index)?;
        match block.kind.as_str() {
            "text" => emit(TextEvent::Text, block.text, out),
            "thinking" => {
                emit(TextEvent::Reasoning, block.thinking, out);
                emit(TextEvent::ReasoningSignature, block.signature, out);
            }
            "tool_use" => {
                let id = needed(block.id, "tool_use", "id")?;
                let name = needed(block.name, "tool_use", "name")?;
                let input = block
                    .input
                    .filter(|input| !input.is_null())
                    .map(|input| input.text().to_owned());
                let key = (index, bounded(self.calls.len() as u64)?);
                self.calls.push(Call {
                    index,
                    key,
                    input: input.unwrap_or_default(),
                });
                out.call(key, &id, &name);
            }
            "redacted_thinking" => emit(TextEvent::RedactedReasoning, block.data, out),
            // Blocks of the server's hosted tools.
            _ => {}
        }
        Ok(())
    }

    fn delta(
        &mut self,
        BlockDelta { index, delta }: BlockDelta,
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        let index = bounded(index)?;
        let kind = delta.kind.as_str();
        match kind {
            "text_delta" => emit(
                TextEvent::Text,
                Some(needed(delta.text, kind, "text")?),
                out,
            ),
            "thinking_delta" => emit(
                TextEvent::Reasoning,
                Some(needed(delta.thinking, kind, "thinking")?),
                out,
            ),
            "signature_delta" => {
                let signature = needed(delta.signature, kind, "signature")?;
                emit(TextEvent::ReasoningSignature, Some(signature), out);
            }
            "input_json_delta" => {
                let piece = needed(delta.partial_json, kind, "partial_json")?;
                if let Some(call) = self.call(index) {
                    out.arguments(call.key, &piece);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, index: u64, out: &mut CallSequencer) -> Result<(), EngineError> {
        let Some(call) = self.call(bounded(index)?) else {
            return Ok(());
        };
        let input = std::mem::take(&mut call.input);
        if out.is_blank(call.key) && !is_empty_object(&input) {
            out.arguments(call.key, &input);
        }
        out.close(call.key);
        Ok(())
    }

    fn call(&mut self, index: u32) -> Option<&mut Call> {
        self.calls.iter_mut().rfind(|call| call.index == index)
    }

    fn finish(&mut self, out: &mut CallSequencer) -> Result<(), EngineError> {
        let stop = self.stop(out.has_calls);
        out.end(matches!(
            stop,
            Stop::MaxTokens | Stop::ContextFull | Stop::Refused
        ))?;
        out.events.push(TextEvent::Finished {
            stop,
            usage: self.counts.neutral(),
        });
        Ok(())
    }

    fn stop(&mut self, has_calls: bool) -> Stop {
        match (self.stop_reason.as_deref(), self.stop_sequence.take()) {
            (Some("max_tokens"), _) => Stop::MaxTokens,
            (Some("model_context_window_exceeded"), _) => Stop::ContextFull,
            (Some("stop_sequence"), Some(text)) => Stop::StopText(text),
            (Some("tool_use"), _) => Stop::ToolCalls,
            (Some("refusal"), _) => Stop::Refused,
            (Some("pause_turn"), _) => Stop::Paused,
            _ if has_calls => Stop::ToolCalls,
            _ => Stop::End,
        }
    }
}

fn emit(event: fn(String) -> TextEvent, text: Option<String>, out: &mut CallSequencer) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        out.emit(event(text));
    }
}

fn is_empty_object(input: &str) -> bool {
    let members = input
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    members.is_some_and(|members| members.trim().is_empty())
}

/// The token counts so far.
#[derive(Debug, Default)]
struct Counts {
    input: Option<u64>,
    cache_write: Option<u64>,
    cache_read: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
}

impl Counts {
    /// Replaces counts with later ones: each is cumulative.
    fn update(&mut self, later: Option<&Value>) {
        let Some(later) = later else { return };
        self.input = count(later, "/input_tokens").or(self.input);
        self.cache_write = count(later, "/cache_creation_input_tokens").or(self.cache_write);
        self.cache_read = count(later, "/cache_read_input_tokens").or(self.cache_read);
        self.output = count(later, "/output_tokens").or(self.output);
        if later["output_tokens_details"].is_object() {
            self.reasoning = count(later, "/output_tokens_details/thinking_tokens");
        }
    }

    fn neutral(&self) -> Option<Usage> {
        self.input.or(self.output)?;
        let cache_read = self.cache_read.unwrap_or_default();
        let cache_write = self.cache_write.unwrap_or_default();
        // In this protocol `input_tokens` excludes the cached tokens.
        let input = self
            .input
            .unwrap_or_default()
            .saturating_add(cache_read)
            .saturating_add(cache_write);
        let reasoning = self.reasoning.unwrap_or_default();
        Some(Usage {
            input,
            cache_read,
            cache_write,
            output: self.output.unwrap_or_default(),
            reasoning,
        })
    }
}

wire::read_objects! {
    struct Start {
        message: Opening,
    }

    struct Opening {
        usage: Option<Value>,
    }

    struct BlockStart {
        index: u64,
        content_block: Block,
    }

    struct BlockDelta {
        index: u64,
        delta: Block,
    }

    struct BlockStop {
        index: u64,
    }

    struct Ending {
        delta: EndingDelta,
        usage: Option<Value>,
    }

    struct EndingDelta {
        stop_reason: Option<String>,
        stop_sequence: Option<String>,
    }

    struct Message {
        #[serde(rename = "type")]
        kind: String,
        content: Option<Vec<Block>>,
        stop_reason: Option<String>,
        stop_sequence: Option<String>,
        usage: Option<Value>,
    }

    /// A content block, or a delta of one.
    struct Block {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default, deserialize_with = "lenient")]
        text: Option<String>,
        #[serde(default, deserialize_with = "lenient")]
        thinking: Option<String>,
        #[serde(default, deserialize_with = "lenient")]
        signature: Option<String>,
        #[serde(default, deserialize_with = "lenient")]
        data: Option<String>,
        #[serde(default, deserialize_with = "lenient")]
        id: Option<String>,
        #[serde(default, deserialize_with = "lenient")]
        name: Option<String>,
        input: Option<Json>,
        #[serde(default, deserialize_with = "lenient")]
        partial_json: Option<String>,
    }
}
