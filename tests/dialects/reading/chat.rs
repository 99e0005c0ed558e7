//! Chat Completions: <https://platform.openai.com/docs/api-reference/chat>.

use serde_json::Value;

use super::{End, Reading, list, text, usage};
use testkit::dialects::{Reason, Usage};

/// Parses a completion.
pub(super) fn reply(reply: &Value, reading: &mut Reading) {
    if !reply["error"].is_null() {
        return reading.fail(&reply["error"]);
    }
    let choice = &reply["choices"][0];
    let message = &choice["message"];
    take_content(message, reading);
    for call in list(message, "tool_calls") {
        reading.call(&call["function"]["name"], &call["function"]["arguments"]);
    }
    reading.usage = counts(&reply["usage"]);
    reading.end = end(text(choice, "finish_reason"));
}

/// A stream of chunks.
#[derive(Default)]
pub(super) struct Stream {
    calls: Vec<PartialCall>,
    finish: Option<String>,
}

/// A call as far as it is known.
#[derive(Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Stream {
    pub(super) fn chunk(&mut self, chunk: &Value, reading: &mut Reading) {
        if !chunk["error"].is_null() {
            return reading.fail(&chunk["error"]);
        }
        reading.usage = counts(&chunk["usage"]).or(reading.usage);
        // Clients ask for one choice, which is the first.
        let is_first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
        for choice in list(chunk, "choices").filter(is_first) {
            let (delta, before) = (
                &choice["delta"],
                reading.text.len() + reading.reasoning.len(),
            );
            take_content(delta, reading);
            for call in list(delta, "tool_calls") {
                self.call(call, reading);
            }
            let has_more = reading.text.len() + reading.reasoning.len() > before
                || list(delta, "tool_calls").count() > 0;
            if self.finish.is_some() && has_more {
                reading.problem(format!("content after the finish reason: {choice}"));
            }
            let reason = text(choice, "finish_reason");
            if !reason.is_empty() {
                self.finish = Some(reason.to_owned());
            }
        }
    }

    fn call(&mut self, piece: &Value, reading: &mut Reading) {
        let (index, id) = (piece["index"].as_u64(), text(piece, "id"));
        let place = match index {
            Some(_) => self.calls.iter().position(|call| call.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().position(|call| call.id == id),
        };
        let place = place.unwrap_or_else(|| {
            self.calls.push(PartialCall {
                index,
                id: id.to_owned(),
                ..PartialCall::default()
            });
            self.calls.len() - 1
        });
        let (call, function) = (&mut self.calls[place], &piece["function"]);
        // The official SDKs append every text of a delta to the one before.
        call.name += text(function, "name");
        match &function["arguments"] {
            Value::Null => {}
            Value::String(arguments) => call.arguments += arguments,
            other => reading.problem(format!("arguments that are no text: {other}")),
        }
    }

    /// Handles the terminal event.
    pub(super) fn done(&mut self, reading: &mut Reading) {
        match &self.finish {
            Some(word) => reading.end = end(word),
            None => reading.problem("[DONE] without a finish reason"),
        }
    }

    pub(super) fn finish(self, reading: &mut Reading) {
        for call in self.calls {
            reading.call(&call.name.into(), &call.arguments.into());
        }
    }
}

/// Takes the texts of a message or of a delta.
fn take_content(message: &Value, reading: &mut Reading) {
    match &message["content"] {
        Value::Array(parts) => parts.iter().for_each(|part| take_part(part, reading)),
        content => reading.text += content.as_str().unwrap_or_default(),
    }
    reading.text += text(message, "refusal");
    // Servers that send both send the same text twice.
    let thoughts = ["reasoning_content", "reasoning", "thinking"].map(|name| text(message, name));
    reading.reasoning += thoughts
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_default();
}

/// Takes a part of content as Mistral sends it, <https://docs.mistral.ai/capabilities/reasoning/>,
/// or Databricks, whose thoughts are a summary.
fn take_part(part: &Value, reading: &mut Reading) {
    reading.text += text(part, "text");
    for thoughts in [&part["thinking"], &part["summary"]] {
        match thoughts {
            Value::Array(parts) => reading
                .reasoning
                .extend(parts.iter().map(|part| text(part, "text"))),
            thoughts => reading.reasoning += thoughts.as_str().unwrap_or_default(),
        }
    }
}

fn counts(counts: &Value) -> Option<Usage> {
    let cached = &counts["prompt_tokens_details"]["cached_tokens"];
    let reasoning = &counts["completion_tokens_details"]["reasoning_tokens"];
    usage(
        counts,
        ["prompt_tokens", "completion_tokens"],
        cached,
        reasoning,
    )
}

fn end(word: &str) -> End {
    match word {
        "" => End::Missing,
        "stop" | "tool_calls" | "function_call" => End::Complete,
        "length" => End::Incomplete(Reason::MaxOutputTokens),
        "content_filter" => End::Incomplete(Reason::ContentFilter),
        other => End::Other(other.to_owned()),
    }
}
