//! Parses Messages answers of upstreams (<https://docs.anthropic.com/en/docs/build-with-claude/streaming>).

use engine::{EngineError, Stop, TextEvent, Usage};
use serde::Deserialize;
use wire::Json;

use super::call_sequencer::{CallSequencer, Key};
use super::json::{ErrorMarkers, bounded, count, lenient, malformed, needed, read};

wire::read_objects!(
    Start,
    Opening,
    BlockStart,
    BlockDelta,
    BlockStop,
    Ending,
    EndingDelta,
    Message,
    Block,
    Delta,
    Counts,
    OutputDetails
);

/// Parses a stream.
#[derive(Debug, Default)]
pub(super) struct StreamParser {
    sequencer: CallSequencer,
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
pub(super) fn reply(body: &[u8]) -> Result<Vec<TextEvent>, EngineError> {
    let (mut parser, mut out) = (StreamParser::default(), Vec::new());
    let message: Message = read(body)?;
    if message.kind != "message" {
        return Err(malformed("the reply is not a message"));
    }
    for (index, block) in needed(message.content, "message", "content")?.into_iter().enumerate() {
        parser.start_block(index as u64, block, &mut out)?;
        parser.close(index as u64, &mut out)?;
    }
    parser.counts.update(message.usage);
    parser.stop_reason = Some(needed(message.stop_reason, "message", "stop_reason")?);
    parser.stop_sequence = message.stop_sequence;
    parser.finish(&mut out).map(|()| out)
}

impl StreamParser {
    pub(super) fn event(&mut self, data: &[u8], out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let kind = ErrorMarkers::read(data)?.kind.ok_or_else(|| malformed("an event without 'type'"))?;
        match kind.as_str() {
            "message_start" => {
                let start: Start = read(data)?;
                self.counts.update(start.message.usage);
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
                self.counts.update(ending.usage);
                self.stop_reason = ending.delta.stop_reason.or(self.stop_reason.take());
                self.stop_sequence = ending.delta.stop_sequence.or(self.stop_sequence.take());
            }
            "message_stop" if self.stop_reason.is_none() => {
                return Err(EngineError::Truncated("message_stop without a stop reason".to_owned()));
            }
            "message_stop" => self.finish(out)?,
            _ => {}
        }
        Ok(())
    }

    fn start_block(&mut self, index: u64, block: Block, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let index = bounded(index)?;
        match block.kind.as_str() {
            "text" => self.emit(TextEvent::Text, block.text, out),
            "thinking" => {
                self.emit(TextEvent::Reasoning, block.thinking, out);
                self.emit(TextEvent::ReasoningSignature, block.signature, out);
            }
            "tool_use" => {
                let id = needed(block.id, "tool_use", "id")?;
                let name = needed(block.name, "tool_use", "name")?;
                let input = block.input.filter(|input| !input.is_null()).map(|input| input.text().to_owned());
                let key = (index, bounded(self.calls.len() as u64)?);
                self.calls.push(Call { index, key, input: input.unwrap_or_default() });
                self.sequencer.call(key, &id, &name, out);
            }
            "redacted_thinking" => self.emit(TextEvent::RedactedReasoning, block.data, out),
            // Blocks of the server's hosted tools.
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, BlockDelta { index, delta }: BlockDelta, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let index = bounded(index)?;
        let kind = delta.kind.as_str();
        match kind {
            "text_delta" => self.emit(TextEvent::Text, Some(needed(delta.text, kind, "text")?), out),
            "thinking_delta" => self.emit(TextEvent::Reasoning, Some(needed(delta.thinking, kind, "thinking")?), out),
            "signature_delta" => {
                let signature = needed(delta.signature, kind, "signature")?;
                self.emit(TextEvent::ReasoningSignature, Some(signature), out);
            }
            "input_json_delta" => {
                let piece = needed(delta.partial_json, kind, "partial_json")?;
                if let Some(call) = self.call(index) {
                    let key = call.key;
                    self.sequencer.arguments(key, &piece, out);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, index: u64, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let Some(call) = self.call(bounded(index)?) else { return Ok(()) };
        let (key, input) = (call.key, std::mem::take(&mut call.input));
        if self.sequencer.is_blank(key) && !is_empty_object(&input) {
            self.sequencer.arguments(key, &input, out);
        }
        self.sequencer.close(key, out);
        Ok(())
    }

    fn call(&mut self, index: u32) -> Option<&mut Call> {
        self.calls.iter_mut().rfind(|call| call.index == index)
    }

    fn emit(&mut self, event: fn(String) -> TextEvent, text: Option<String>, out: &mut Vec<TextEvent>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.sequencer.emit(event(text), out);
        }
    }

    fn finish(&mut self, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let stop = self.stop();
        self.sequencer.end(matches!(stop, Stop::MaxTokens | Stop::ContextFull | Stop::Refused), out)?;
        out.push(TextEvent::Finished { stop, usage: self.counts.neutral() });
        Ok(())
    }

    fn stop(&mut self) -> Stop {
        match (self.stop_reason.as_deref(), self.stop_sequence.take()) {
            (Some("max_tokens"), _) => Stop::MaxTokens,
            (Some("model_context_window_exceeded"), _) => Stop::ContextFull,
            (Some("stop_sequence"), Some(text)) => Stop::StopText(text),
            (Some("tool_use"), _) => Stop::ToolCalls,
            (Some("refusal"), _) => Stop::Refused,
            (Some("pause_turn"), _) => Stop::Paused,
            _ if self.sequencer.has_calls() => Stop::ToolCalls,
            _ => Stop::End,
        }
    }
}

fn is_empty_object(input: &str) -> bool {
    let members = input.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    members.is_some_and(|members| members.trim().is_empty())
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Start {
    message: Opening,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Opening {
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct BlockStart {
    index: u64,
    content_block: Block,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct BlockDelta {
    index: u64,
    delta: Delta,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct BlockStop {
    index: u64,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Ending {
    delta: EndingDelta,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct EndingDelta {
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Message {
    #[serde(rename = "type")]
    kind: String,
    content: Option<Vec<Block>>,
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
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
}

#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Delta {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, deserialize_with = "lenient")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    thinking: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    signature: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    partial_json: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self")]
struct Counts {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self")]
struct OutputDetails {
    #[serde(default, deserialize_with = "count")]
    thinking_tokens: Option<u64>,
}

impl Counts {
    /// Replaces counts with later ones: each is cumulative.
    fn update(&mut self, later: Option<Self>) {
        let Some(later) = later else { return };
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens = later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details.take());
    }

    fn neutral(&self) -> Option<Usage> {
        self.input_tokens.or(self.output_tokens)?;
        let cache_read = self.cache_read_input_tokens.unwrap_or_default();
        let cache_write = self.cache_creation_input_tokens.unwrap_or_default();
        // In this protocol `input_tokens` excludes the cached tokens.
        let input = self.input_tokens.unwrap_or_default().saturating_add(cache_read).saturating_add(cache_write);
        let details = self.output_tokens_details.as_ref();
        let reasoning = details.and_then(|details| details.thinking_tokens).unwrap_or_default();
        Some(Usage { input, cache_read, cache_write, output: self.output_tokens.unwrap_or_default(), reasoning })
    }
}
