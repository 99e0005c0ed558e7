//! Contradictions in a complete answer, after which no client may take it for a success.

use std::collections::BTreeMap;

use serde_json::Value;
use simulator::Protocol;

use super::finish::Finish;
use super::list;

/// A contradiction.
pub(super) type Contradiction = &'static str;

/// The state of a stream, as far as it can be contradicted.
#[derive(Default)]
pub(super) struct Truth {
    /// The number of the next event.
    next: Option<u64>,
    /// The deltas of each text, by the event and the indexes.
    texts: BTreeMap<(String, u64, u64), String>,
    /// The open blocks, with the deltas of calls.
    open: BTreeMap<u64, Block>,
    /// The arguments of all calls.
    calls: BTreeMap<String, String>,
    /// The stop reason of a message that is not ended yet.
    stop: String,
    finish: Option<Finish>,
    has_started: bool,
}

/// An open block.
struct Block {
    is_call: bool,
    input: String,
}

impl Truth {
    /// Checks the next event.
    pub(super) fn event(&mut self, protocol: Protocol, event: &Value) -> Result<(), Contradiction> {
        match protocol {
            Protocol::Responses => self.response(event),
            Protocol::Chat => self.chunk(event),
            Protocol::Messages => self.message(event),
            Protocol::Images => Ok(()),
        }
    }

    fn response(&mut self, event: &Value) -> Result<(), Contradiction> {
        if let Some(number) = event["sequence_number"].as_u64() {
            if self.next.is_some_and(|next| next != number) {
                return Err("an event is missing, or comes twice");
            }
            self.next = Some(number + 1);
        }
        let kind = event["type"].as_str().unwrap_or_default();
        if let Some((name, step)) = kind.rsplit_once('.') {
            let part = event["content_index"]
                .as_u64()
                .or(event["summary_index"].as_u64())
                .unwrap_or_default();
            let output = event["output_index"].as_u64().unwrap_or_default();
            let text = self
                .texts
                .entry((name.to_owned(), output, part))
                .or_default();
            let complete = ["text", "refusal", "arguments"];
            let complete = complete.iter().find_map(|name| event[*name].as_str());
            match (step, event["delta"].as_str(), complete) {
                ("delta", Some(delta), _) => text.push_str(delta),
                ("done", _, Some(complete)) if !complete.starts_with(text.as_str()) => {
                    return Err("a complete text that differs from its deltas");
                }
                _ => {}
            }
        }
        match kind {
            "response.completed" => response(&event["response"]),
            "response.incomplete" if event["response"]["status"] != "incomplete" => {
                Err("another status")
            }
            _ => Ok(()),
        }
    }

    fn chunk(&mut self, chunk: &Value) -> Result<(), Contradiction> {
        for choice in list(chunk, "choices") {
            let delta = &choice["delta"];
            let has_text = |name| {
                delta[name]
                    .as_str()
                    .is_some_and(|text: &str| !text.is_empty())
            };
            let has_content = ["content", "refusal", "reasoning_content"]
                .into_iter()
                .any(has_text);
            let has_calls = list(delta, "tool_calls").next().is_some();
            if self.finish.is_some() && (has_content || has_calls) {
                return Err("content after the end");
            }
            for call in list(delta, "tool_calls") {
                let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                // Some servers send an id in place of the index.
                let id = call["id"].as_str().unwrap_or_default();
                let key = call["index"]
                    .as_u64()
                    .map_or_else(|| id.to_owned(), |index| index.to_string());
                self.calls.entry(key).or_default().push_str(arguments);
            }
            if let Some(word) = choice["finish_reason"]
                .as_str()
                .filter(|word| !word.is_empty())
            {
                self.end(Protocol::Chat, word)?;
            }
        }
        Ok(())
    }

    fn message(&mut self, event: &Value) -> Result<(), Contradiction> {
        let index = event["index"].as_u64().unwrap_or_default();
        let kind = event["type"].as_str().unwrap_or_default();
        if kind.starts_with("content_block_") && !self.has_started {
            return Err("content before the start");
        }
        let is_content = matches!(kind, "content_block_start" | "content_block_delta");
        if is_content && !self.stop.is_empty() {
            return Err("content after the end");
        }
        match kind {
            "message_start"
                if self.has_started && !(self.open.is_empty() && self.calls.is_empty()) =>
            {
                return Err("a second start");
            }
            "message_start" => self.has_started = true,
            "content_block_start" => {
                let is_call = event["content_block"]["type"] == "tool_use";
                let input = String::new();
                if self.open.insert(index, Block { is_call, input }).is_some() {
                    return Err("a block starts twice");
                }
            }
            "content_block_delta" => {
                let block = self.open.get_mut(&index).ok_or("a delta of no block")?;
                let json = event["delta"]["partial_json"].as_str();
                block.input.push_str(json.unwrap_or_default());
            }
            "content_block_stop" => {
                let block = self.open.remove(&index).ok_or("the end of no block")?;
                if block.is_call {
                    let number = self.calls.len().to_string();
                    self.calls.insert(number, block.input);
                }
            }
            "message_delta" => {
                let word = event["delta"]["stop_reason"].as_str();
                if let Some(word) = word.filter(|word| !word.is_empty()) {
                    self.stop = word.to_owned();
                }
            }
            "message_stop" => {
                let stop = std::mem::take(&mut self.stop);
                self.end(Protocol::Messages, &stop)?;
                if self.finish.is_some_and(Finish::is_complete) && !self.open.is_empty() {
                    return Err("an open block");
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, protocol: Protocol, word: &str) -> Result<(), Contradiction> {
        let finish = finish(protocol, word, self.calls.values().map(String::as_str))?;
        self.finish = Some(finish);
        Ok(())
    }
}

/// Checks a plain reply.
pub(super) fn reply(protocol: Protocol, reply: &Value) -> Result<(), Contradiction> {
    match protocol {
        Protocol::Responses => response(reply),
        Protocol::Chat => list(reply, "choices").try_for_each(|choice| {
            let calls = list(&choice["message"], "tool_calls");
            let arguments = calls.filter_map(|call| call["function"]["arguments"].as_str());
            let word = choice["finish_reason"].as_str().unwrap_or_default();
            finish(protocol, word, arguments).map(drop)
        }),
        Protocol::Messages => {
            let calls = list(reply, "content").filter(|block| block["type"] == "tool_use");
            // An input is an object already.
            let word = reply["stop_reason"].as_str().unwrap_or_default();
            finish(protocol, word, calls.map(|_| "{}")).map(drop)
        }
        Protocol::Images => Ok(()),
    }
}

/// Checks a complete response object.
fn response(response: &Value) -> Result<(), Contradiction> {
    let (status, output) = (&response["status"], || list(response, "output"));
    if status == "incomplete" {
        return Ok(());
    }
    if status != "completed" {
        return Err("another status");
    }
    if !response["incomplete_details"].is_null() {
        return Err("a complete response with the reason of an incomplete one");
    }
    if output().any(|item| item["status"] == "incomplete") {
        return Err("an incomplete item");
    }
    let calls = output().filter(|item| item["type"] == "function_call");
    check_calls(calls.filter_map(|item| item["arguments"].as_str()))
}

/// Checks a word for the end against the calls.
fn finish<'a>(
    protocol: Protocol,
    word: &str,
    calls: impl Iterator<Item = &'a str>,
) -> Result<Finish, Contradiction> {
    let mut calls = calls.peekable();
    let finish = Finish::of(protocol, word).ok_or("no word for the end that is known")?;
    if finish == Finish::Calls && calls.peek().is_none() {
        return Err("an end for calls without one");
    }
    if finish.is_complete() {
        check_calls(calls)?;
    }
    Ok(finish)
}

/// Checks that the arguments of calls are complete.
fn check_calls<'a>(mut arguments: impl Iterator<Item = &'a str>) -> Result<(), Contradiction> {
    let is_whole =
        |arguments: &str| arguments.is_empty() || serde_json::from_str::<Value>(arguments).is_ok();
    if arguments.all(is_whole) {
        Ok(())
    } else {
        Err("truncated arguments")
    }
}
