//! Responses: <https://platform.openai.com/docs/api-reference/responses>.

use std::collections::BTreeMap;

use serde_json::Value;

use super::finish::check_calls;
use super::json::{list, text, texts};
use super::{Call, End, Reading, Usage};

/// Parses a response object; returns true if it is finished.
pub(super) fn reply(response: &Value, reading: &mut Reading) -> bool {
    take_output(response, reading);
    take_status(response, reading);
    reading.check(check(response));
    matches!(text(response, "status"), "completed" | "incomplete")
}

/// A stream of events.
#[derive(Default)]
pub(super) struct Stream {
    /// The number of the next event.
    next: Option<u64>,
    /// The deltas of each text, by the event and the indexes.
    texts: BTreeMap<(String, u64, u64), String>,
    /// Texts that were streamed since the last one that was done.
    text: String,
    reasoning: String,
    calls: Vec<Call>,
}

impl super::Stream for Stream {
    fn event(&mut self, event: &Value, reading: &mut Reading) {
        reading.check(self.check(event));
        reading.name(&event["response"]["model"]);
        let (kind, delta) = (text(event, "type"), text(event, "delta"));
        if kind.ends_with(".delta") {
            reading.words += delta;
        }
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.text += delta;
                reading.text += delta;
            }
            "response.output_text.done" => self.text_done(text(event, "text"), reading),
            "response.refusal.done" => self.text_done(text(event, "refusal"), reading),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.reasoning += delta;
                reading.reasoning += delta;
            }
            "response.reasoning_summary_text.done" | "response.reasoning_text.done" => {
                self.reasoning_done(text(event, "text"), reading);
            }
            "response.function_call_arguments.delta" => self.arguments(delta),
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                self.calls.push(call(text(&event["item"], "name"), ""));
            }
            "response.output_item.done" if event["item"]["type"] == "function_call" => {
                self.call_done(&event["item"], reading);
            }
            "response.completed" | "response.incomplete" => {
                self.end(&event["response"], reading);
                // The status may be lost.
                reading.is_incomplete |= kind == "response.incomplete";
            }
            _ => {}
        }
    }

    fn finish(&mut self, _is_whole: bool, reading: &mut Reading) {
        // Calls that are not done count if the stream says that it succeeded.
        if reading.end == End::Success && reading.word == "completed" {
            reading.calls.append(&mut self.calls);
        }
    }
}

impl Stream {
    /// Checks an event against those before it.
    fn check(&mut self, event: &Value) -> Result<(), &'static str> {
        if let Some(number) = event["sequence_number"].as_u64() {
            if self.next.is_some_and(|next| next != number) {
                return Err("an event is missing, or comes twice");
            }
            self.next = Some(number + 1);
        }
        let kind = text(event, "type");
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
            "response.completed" => check(&event["response"]),
            "response.incomplete" if event["response"]["status"] != "incomplete" => {
                Err("another status")
            }
            _ => Ok(()),
        }
    }

    fn text_done(&mut self, done: &str, reading: &mut Reading) {
        let streamed = std::mem::take(&mut self.text);
        if streamed.is_empty() {
            reading.text += done;
        } else {
            reading.agree("text", &streamed, done);
        }
    }

    fn reasoning_done(&mut self, done: &str, reading: &mut Reading) {
        let streamed = std::mem::take(&mut self.reasoning);
        if streamed.is_empty() {
            reading.reasoning += done;
        } else {
            reading.agree("reasoning", &streamed, done);
        }
    }

    fn arguments(&mut self, delta: &str) {
        match self.calls.last_mut() {
            Some(call) => call.arguments += delta,
            None => self.calls.push(call("", delta)),
        }
    }

    fn call_done(&mut self, item: &Value, reading: &mut Reading) {
        let streamed = self.calls.pop().map(|call| call.arguments);
        if let Some(streamed) = streamed.filter(|streamed| !streamed.is_empty()) {
            reading.agree("arguments", &streamed, text(item, "arguments"));
        }
        reading.call(&item["name"], &item["arguments"]);
    }

    /// Handles the terminal event, whose response may repeat everything.
    fn end(&mut self, response: &Value, reading: &mut Reading) {
        if list(response, "output").next().is_some() {
            self.compare(response, reading);
        }
        reading.usage = Usage::of(&response["usage"]);
        take_status(response, reading);
        reading.end = End::Success;
    }

    /// Compares the output at the end with the events before it.
    fn compare(&mut self, response: &Value, reading: &mut Reading) {
        let mut last = Reading::default();
        take_output(response, &mut last);
        for (what, streamed, closing) in [
            ("text", &mut reading.text, last.text),
            ("reasoning", &mut reading.reasoning, last.reasoning),
        ] {
            if streamed.is_empty() {
                *streamed = closing;
            } else if !closing.is_empty() && *streamed != closing {
                reading.problems.push(format!(
                    "{what}: {streamed:?} was streamed, {closing:?} is at the end"
                ));
            }
        }
        if reading.calls.is_empty() {
            self.calls.clear();
            reading.calls = last.calls;
        } else if reading.calls != last.calls {
            reading.problem(format!(
                "calls: {:?} were streamed, {:?} are at the end",
                reading.calls, last.calls
            ));
        }
    }
}

fn take_output(response: &Value, reading: &mut Reading) {
    for item in list(response, "output") {
        match text(item, "type") {
            "reasoning" => {
                let parts = |name| list(item, name).map(|part| text(part, "text"));
                let summary: String = parts("summary").collect();
                reading.words += &summary;
                if summary.is_empty() {
                    reading.reasoning.extend(parts("content"));
                } else {
                    reading.reasoning += &summary;
                }
            }
            "function_call" => {
                reading.words += text(item, "arguments");
                reading.call(&item["name"], &item["arguments"]);
            }
            kind => {
                let parts = list(item, "content").map(|part| texts(part, &["text", "refusal"]));
                let content: String = parts.collect();
                reading.words += &content;
                if kind == "message" {
                    reading.text += &content;
                }
            }
        }
    }
}

/// Takes the status of a response, and the reason why it is incomplete.
fn take_status(response: &Value, reading: &mut Reading) {
    let status = text(response, "status");
    let reason = text(&response["incomplete_details"], "reason");
    reading.is_incomplete = status == "incomplete";
    reading.is_cut = status == "incomplete" && reason == "max_output_tokens";
    reading.is_filtered = status == "incomplete" && reason == "content_filter";
    reading.word = if status == "completed" {
        status.to_owned()
    } else {
        format!("{status} {reason}")
    };
}

/// Checks a complete response object.
fn check(response: &Value) -> Result<(), &'static str> {
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

fn call(name: &str, arguments: &str) -> Call {
    Call {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}
