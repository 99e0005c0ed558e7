//! Messages: <https://platform.claude.com/docs/en/api/messages>.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{End, Reading, list, text};
use testkit::dialects::{Reason, Usage};

/// Parses a message.
pub(super) fn reply(message: &Value, reading: &mut Reading) {
    if message["type"] == "error" || !message["error"].is_null() {
        return reading.fail(&message["error"]);
    }
    for block in list(message, "content") {
        match text(block, "type") {
            "tool_use" if block["input"].is_object() => {
                reading.call(&block["name"], &block["input"].to_string().into());
            }
            "tool_use" => reading.problem(format!("a call whose input is no object: {block}")),
            _ => {
                reading.text += text(block, "text");
                reading.reasoning += text(block, "thinking");
            }
        }
    }
    reading.usage = counts(&message["usage"], None);
    reading.end = end(text(message, "stop_reason"));
}

/// A stream of events.
#[derive(Default)]
pub(super) struct Stream {
    has_begun: bool,
    /// The open blocks.
    open: BTreeMap<u64, Block>,
    stop: String,
}

/// An open block.
struct Block {
    start: Value,
    json: String,
}

impl Stream {
    pub(super) fn event(&mut self, event: &Value, reading: &mut Reading) {
        let index = event["index"].as_u64().unwrap_or(u64::MAX);
        match text(event, "type") {
            "error" => reading.fail(&event["error"]),
            "message_start" => {
                if std::mem::replace(&mut self.has_begun, true)
                    && !(reading.text.is_empty() && self.open.is_empty())
                {
                    reading.problem("a second message_start");
                }
                reading.usage = counts(&event["message"]["usage"], None);
            }
            "content_block_start" => {
                let start = event["content_block"].clone();
                reading.text += text(&start, "text");
                reading.reasoning += text(&start, "thinking");
                self.open.insert(
                    index,
                    Block {
                        start,
                        json: String::new(),
                    },
                );
            }
            "content_block_delta" => match self.open.get_mut(&index) {
                Some(block) => block.delta(&event["delta"], reading),
                None => reading.problem(format!("a delta of no block: {event}")),
            },
            "content_block_stop" => match self.open.remove(&index) {
                Some(block) => block.stop(reading),
                None => reading.problem(format!("the stop of no block: {event}")),
            },
            "message_delta" => {
                reading.usage = counts(&event["usage"], reading.usage).or(reading.usage);
                if let Some(word) = event["delta"]["stop_reason"].as_str() {
                    word.clone_into(&mut self.stop);
                }
            }
            "message_stop" => {
                if !self.has_begun || !self.open.is_empty() {
                    reading.problem("message_stop without a message_start, or with open blocks");
                }
                reading.end = end(&self.stop);
            }
            _ => {}
        }
    }

    #[expect(clippy::unused_self, reason = "as the other protocols")]
    pub(super) fn finish(self, _: &mut Reading) {}
}

impl Block {
    fn delta(&mut self, delta: &Value, reading: &mut Reading) {
        reading.text += text(delta, "text");
        reading.reasoning += text(delta, "thinking");
        self.json += text(delta, "partial_json");
    }

    fn stop(self, reading: &mut Reading) {
        if self.start["type"] == "tool_use" {
            let input = &self.start["input"];
            let arguments = if !self.json.is_empty() {
                self.json
            } else if input.is_object() {
                input.to_string()
            } else {
                "{}".into()
            };
            reading.call(&self.start["name"], &arguments.into());
        }
    }
}

/// Counts, with those of `before` where there are none.
fn counts(counts: &Value, before: Option<Usage>) -> Option<Usage> {
    let count = |name| counts[name].as_u64();
    let cached = count("cache_read_input_tokens");
    let input = count("input_tokens");
    let all = input.map(|input| {
        input + cached.unwrap_or(0) + count("cache_creation_input_tokens").unwrap_or(0)
    });
    Some(Usage {
        input: all.or(before.map(|before| before.input))?,
        output: count("output_tokens").or(before.map(|before| before.output))?,
        cached: cached.or(before.and_then(|before| before.cached)),
        reasoning: None,
    })
}

fn end(word: &str) -> End {
    match word {
        "" => End::Missing,
        "end_turn" | "tool_use" | "stop_sequence" | "pause_turn" => End::Complete,
        "max_tokens" | "model_context_window_exceeded" => End::Incomplete(Reason::MaxOutputTokens),
        "refusal" => End::Incomplete(Reason::ContentFilter),
        other => End::Other(other.to_owned()),
    }
}
