//! Messages: <https://platform.claude.com/docs/en/api/messages>.

use std::collections::BTreeMap;

use serde_json::Value;
use simulator::Protocol;

use super::finish::Finish;
use super::json::{list, text, texts};
use super::{End, Reading, Usage};

/// Parses a message; returns true if it is finished.
pub(super) fn reply(message: &Value, reading: &mut Reading) -> bool {
    let mut calls = 0;
    for block in list(message, "content") {
        if block["type"] != "tool_use" {
            reading.words += &texts(block, &["thinking", "text"]);
            reading.text += text(block, "text");
            reading.reasoning += text(block, "thinking");
            continue;
        }
        let input = &block["input"];
        calls += 1;
        reading.words += &input.to_string();
        if input.is_object() {
            reading.call(&block["name"], &input.to_string().into());
        } else {
            reading.problem(format!("a call whose input is no object: {block}"));
        }
    }
    let word = text(message, "stop_reason");
    reading.finish(Protocol::Messages, word);
    // An input is an object already.
    let calls = std::iter::repeat_n("{}", calls);
    reading.check(Finish::checked(Protocol::Messages, word, calls));
    word.clone_into(&mut reading.word);
    message["type"] == "message" && message["stop_reason"].is_string()
}

/// A stream of events.
#[derive(Default)]
pub(super) struct Stream {
    has_started: bool,
    /// The open blocks.
    open: BTreeMap<u64, Block>,
    /// The arguments of the calls that are done.
    calls: Vec<String>,
    stop: String,
}

/// An open block.
struct Block {
    start: Value,
    json: String,
}

impl super::Stream for Stream {
    fn event(&mut self, event: &Value, reading: &mut Reading) {
        reading.name(&event["message"]["model"]);
        reading.words += &texts(&event["delta"], &["thinking", "text", "partial_json"]);
        reading.finish(Protocol::Messages, text(&event["delta"], "stop_reason"));
        for counts in [&event["message"]["usage"], &event["usage"]] {
            if counts.is_object() {
                // Each count is the total so far; absent ones keep their value.
                let before = reading.usage.unwrap_or_default();
                reading.usage = Some(Usage::with(counts, before));
            }
        }
        let kind = text(event, "type");
        reading.check(self.check_order(kind));
        match kind {
            "message_start" => self.start(reading),
            "content_block_start" => self.open(event, reading),
            "content_block_delta" => self.delta(event, reading),
            "content_block_stop" => self.close(event, reading),
            "message_delta" => {
                let word = text(&event["delta"], "stop_reason");
                if !word.is_empty() {
                    word.clone_into(&mut self.stop);
                }
            }
            "message_stop" => self.stop(reading),
            _ => {}
        }
    }
}

impl Stream {
    fn check_order(&self, kind: &str) -> Result<(), &'static str> {
        if kind.starts_with("content_block_") && !self.has_started {
            return Err("content before the start");
        }
        let is_content = matches!(kind, "content_block_start" | "content_block_delta");
        if is_content && !self.stop.is_empty() {
            return Err("content after the end");
        }
        Ok(())
    }

    fn start(&mut self, reading: &mut Reading) {
        if !std::mem::replace(&mut self.has_started, true) {
            return;
        }
        if !(self.open.is_empty() && self.calls.is_empty()) {
            reading.check(Err::<(), _>("a second start"));
        }
        if !(self.open.is_empty() && reading.text.is_empty()) {
            reading.problem("a second message_start");
        }
    }

    fn open(&mut self, event: &Value, reading: &mut Reading) {
        let start = event["content_block"].clone();
        reading.text += text(&start, "text");
        reading.reasoning += text(&start, "thinking");
        let block = Block {
            start,
            json: String::new(),
        };
        if self.open.insert(index(event, reading), block).is_some() {
            reading.check(Err::<(), _>("a block starts twice"));
        }
    }

    fn delta(&mut self, event: &Value, reading: &mut Reading) {
        let delta = &event["delta"];
        match self.open.get_mut(&index(event, reading)) {
            Some(block) => {
                reading.text += text(delta, "text");
                reading.reasoning += text(delta, "thinking");
                block.json += text(delta, "partial_json");
            }
            None => {
                reading.check(Err::<(), _>("a delta of no block"));
                reading.problem(format!("a delta of no block: {event}"));
            }
        }
    }

    fn close(&mut self, event: &Value, reading: &mut Reading) {
        let Some(Block { start, json }) = self.open.remove(&index(event, reading)) else {
            reading.check(Err::<(), _>("the end of no block"));
            reading.problem(format!("the end of no block: {event}"));
            return;
        };
        if start["type"] == "tool_use" {
            let input = &start["input"];
            let arguments = match json.as_str() {
                "" if input.is_object() => input.to_string(),
                "" => "{}".to_owned(),
                json => json.to_owned(),
            };
            reading.call(&start["name"], &arguments.into());
            self.calls.push(json);
        }
    }

    fn stop(&mut self, reading: &mut Reading) {
        let calls = self.calls.iter().map(String::as_str);
        let finish = Finish::checked(Protocol::Messages, &self.stop, calls);
        reading.check(finish);
        if !self.has_started || !self.open.is_empty() {
            reading.problem("message_stop without a message_start, or with open blocks");
        }
        if finish.is_ok_and(Finish::is_complete) && !self.open.is_empty() {
            reading.check(Err::<(), _>("an open block"));
        }
        reading.word.clone_from(&self.stop);
        reading.end = End::Success;
    }
}

/// The index of the block of an event.
fn index(event: &Value, reading: &mut Reading) -> u64 {
    let index = event["index"].as_u64();
    if index.is_none() {
        reading.problem(format!("an event without the index of a block: {event}"));
    }
    index.unwrap_or_default()
}
