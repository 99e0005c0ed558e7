//! Parses Chat Completions answers of upstreams, including common deviations from the protocol.

use engine::{EngineError, Stop, TextEvent, Usage};
use serde_json::Value;
use wire::Json;

use super::call_sequencer::{CallSequencer, Key};
use super::json::{ErrorMarkers, arguments, bounded, count, lenient, read};
use super::{DONE, MAX_INDEX};
use crate::error::malformed;

/// Parses a stream. A complete reply is parsed as a stream of one chunk.
#[derive(Debug, Default)]
pub(super) struct StreamParser {
    calls: Vec<KnownCall>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
}

/// A call of which at least one piece was received.
#[derive(Debug)]
struct KnownCall {
    index: Option<u32>,
    id: String,
    key: Key,
}

/// Parses a complete reply.
pub(super) fn reply(body: &[u8], out: &mut CallSequencer) -> Result<(), EngineError> {
    let mut parser = StreamParser::default();
    let mut completion: Chunk = read(body)?;
    for choice in completion.choices.iter_mut().flatten() {
        choice.number_calls();
    }
    parser.chunk(completion, out)?;
    if parser.finish_reason.is_none() {
        return Err(malformed("a completion without a finish reason"));
    }
    parser.end(out);
    Ok(())
}

impl StreamParser {
    pub(super) fn event(
        &mut self,
        data: &[u8],
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        if data != DONE {
            ErrorMarkers::read(data)?;
            return self.chunk(read(data)?, out);
        }
        if self.finish_reason.is_none() {
            return Err(EngineError::Truncated(
                "[DONE] before a finish reason".to_owned(),
            ));
        }
        self.end(out);
        Ok(())
    }

    pub(super) fn end(&mut self, out: &mut CallSequencer) {
        if let Some(reason) = self.finish_reason.take() {
            let stop = stop(&reason, out);
            out.events.push(TextEvent::Finished {
                stop,
                usage: self.usage,
            });
        }
    }

    fn chunk(&mut self, chunk: Chunk, out: &mut CallSequencer) -> Result<(), EngineError> {
        if chunk.choices.is_none() && !chunk.usage.as_ref().is_some_and(Value::is_object) {
            return Err(malformed("a chunk without 'choices'"));
        }
        out.set_answer_id(chunk.id.as_deref().unwrap_or_default());
        // Any chunk may carry the usage; the last one counts.
        self.usage = chunk.usage.as_ref().and_then(neutral_usage).or(self.usage);
        for choice in chunk.choices.into_iter().flatten() {
            // Only one choice was requested; others are ignored.
            if bounded(choice.index.unwrap_or_default())? == 0 && self.finish_reason.is_none() {
                self.choice(choice, out)?;
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice, out: &mut CallSequencer) -> Result<(), EngineError> {
        if let Some(delta) = choice.delta {
            self.delta(delta, out)?;
        }
        let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) else {
            return Ok(());
        };
        check_finish(&reason)?;
        out.end(matches!(
            stop(&reason, out),
            Stop::MaxTokens | Stop::Refused
        ))?;
        self.finish_reason = Some(reason);
        Ok(())
    }

    fn delta(&mut self, delta: Delta, out: &mut CallSequencer) -> Result<(), EngineError> {
        let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
        let events = [
            non_empty(delta.reasoning_content)
                .or(non_empty(delta.reasoning))
                .map(TextEvent::Reasoning),
            non_empty(delta.content).map(TextEvent::Text),
            non_empty(delta.refusal).map(TextEvent::Refusal),
        ];
        events
            .into_iter()
            .flatten()
            .for_each(|event| out.emit(event));
        let pieces = delta.tool_calls.unwrap_or_default();
        let only = pieces.len() == 1;
        for (position, piece) in pieces.into_iter().enumerate() {
            self.piece(piece, position, only, out)?;
        }
        Ok(())
    }

    /// Handles a piece of a call. `position` is its position in the chunk, and `only` is true if it
    /// is the chunk's only piece.
    fn piece(
        &mut self,
        piece: Piece,
        position: usize,
        only: bool,
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        let index = piece.index.map(bounded).transpose()?;
        let id = piece.id.unwrap_or_default();
        let Function {
            name,
            arguments: text,
        } = piece.function.unwrap_or_default();
        let name = name.unwrap_or_default();
        let known = self.find_call(index, &id, !name.is_empty(), position, only);
        let key = match known {
            Some(at) => self.calls[at].key,
            None => self.add_call(index, &id)?,
        };
        out.call(key, &id, &name);
        let text = text
            .as_ref()
            .map(arguments)
            .transpose()?
            .unwrap_or_default();
        out.arguments(key, &text);
        Ok(())
    }

    /// Finds the known call that a piece belongs to, by the index, else by the id, else by the
    /// position.
    fn find_call(
        &self,
        index: Option<u32>,
        id: &str,
        is_named: bool,
        position: usize,
        only: bool,
    ) -> Option<usize> {
        let same = |known: &KnownCall| known.id == id;
        if index.is_some() {
            let numbered = |known: &KnownCall| known.index == index;
            let exactly = self
                .calls
                .iter()
                .rposition(|known| numbered(known) && same(known));
            // Some servers number every call 0, so a new id together with a name starts another
            // call.
            let is_other = is_named && !id.is_empty();
            return exactly.or_else(|| self.calls.iter().rposition(numbered).filter(|_| !is_other));
        }
        if !id.is_empty() {
            return self.calls.iter().rposition(same);
        }
        let at = if only {
            self.calls.len().checked_sub(1)?
        } else {
            position
        };
        (!is_named && at < self.calls.len()).then_some(at)
    }

    fn add_call(&mut self, index: Option<u32>, id: &str) -> Result<Key, EngineError> {
        let slot = bounded(self.calls.len() as u64)?;
        let key = (index.unwrap_or(slot), slot);
        self.calls.push(KnownCall {
            index,
            id: id.to_owned(),
            key,
        });
        Ok(key)
    }
}

fn stop(reason: &str, out: &CallSequencer) -> Stop {
    match reason {
        "length" | "max_tokens" => Stop::MaxTokens,
        "content_filter" => Stop::Refused,
        "tool_calls" | "function_call" => Stop::ToolCalls,
        _ if out.has_calls => Stop::ToolCalls,
        _ => Stop::End,
    }
}

/// Rejects finish reasons that report a failure of the model.
pub(crate) fn check_finish(reason: &str) -> Result<(), EngineError> {
    match reason {
        "error" | "abort" | "insufficient_system_resource" => Err(EngineError::Upstream(format!(
            "the model failed with finish reason '{reason}'"
        ))),
        _ => Ok(()),
    }
}

fn neutral_usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, "/prompt_tokens");
    let output = count(usage, "/completion_tokens");
    input.or(output)?;
    Some(Usage {
        input: input.unwrap_or_default(),
        cache_read: count(usage, "/prompt_tokens_details/cached_tokens").unwrap_or_default(),
        cache_write: count(usage, "/prompt_tokens_details/cache_write_tokens").unwrap_or_default(),
        output: output.unwrap_or_default(),
        reasoning: count(usage, "/completion_tokens_details/reasoning_tokens").unwrap_or_default(),
    })
}

wire::read_objects! {
    /// A chunk of a stream, or a complete reply.
    struct Chunk {
        #[serde(default, deserialize_with = "lenient")]
        id: Option<String>,
        choices: Option<Vec<Choice>>,
        usage: Option<Value>,
    }

    struct Choice {
        index: Option<u64>,
        #[serde(alias = "message")]
        delta: Option<Delta>,
        finish_reason: Option<String>,
    }

    struct Delta {
        content: Option<String>,
        #[serde(default, deserialize_with = "lenient")]
        reasoning_content: Option<String>,
        #[serde(default, deserialize_with = "lenient")]
        reasoning: Option<String>,
        refusal: Option<String>,
        tool_calls: Option<Vec<Piece>>,
    }

    struct Piece {
        index: Option<u64>,
        id: Option<String>,
        function: Option<Function>,
    }

    #[derive(Default)]
    struct Function {
        name: Option<String>,
        arguments: Option<Json>,
    }
}

impl Choice {
    /// Assigns indices to the calls of a complete reply, in which every entry is a separate call.
    fn number_calls(&mut self) {
        let calls = self
            .delta
            .iter_mut()
            .flat_map(|message| message.tool_calls.iter_mut().flatten());
        calls
            .zip(0..=MAX_INDEX + 1)
            .for_each(|(call, position)| call.index = Some(position));
    }
}
