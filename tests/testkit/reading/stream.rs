//! Streams of events.

use serde_json::Value;
use simulator::Protocol;

use super::reply::note_incomplete;
use super::truth::Truth;
use super::{End, Reading, Usage, events, failure, is_picture, json, list, parts, texts};

/// Parses a stream up to the first event that ends it.
pub(super) fn read(protocol: Protocol, body: &[u8], is_whole: bool, pictures: u32) -> Reading {
    let mut stream = Stream {
        protocol,
        pictures,
        is_finished: false,
        truth: Truth::default(),
        reading: Reading::default(),
    };
    for data in events(body) {
        if stream.reading.end != End::Missing {
            stream.reading.has_more = true;
            break;
        }
        stream.event(&data);
        stream.reading.events += 1;
    }
    // A stream of Chat that is finished may lack its terminal event.
    if stream.reading.end == End::Missing && stream.is_finished && is_whole {
        stream.reading.end = End::Success;
    }
    stream.reading
}

struct Stream {
    protocol: Protocol,
    /// The number of pictures that are still missing.
    pictures: u32,
    /// True if the reply was finished before the terminal event.
    is_finished: bool,
    truth: Truth,
    reading: Reading,
}

impl Stream {
    fn event(&mut self, data: &[u8]) {
        if data.trim_ascii() == b"[DONE]" {
            return self.done();
        }
        let Ok(event @ Value::Object(_)) = json(data) else {
            self.reading.end = End::Failure(None);
            return;
        };
        if let Some(failure) = failure(&event) {
            self.reading.end = failure;
            return;
        }
        if self.reading.contradiction.is_none() {
            self.reading.contradiction = self.truth.event(self.protocol, &event).err();
        }
        match self.protocol {
            Protocol::Responses => self.response(&event),
            Protocol::Chat => self.chunk(&event),
            Protocol::Messages => self.message(&event),
            Protocol::Images => self.picture(&event),
        }
    }

    /// Handles the terminal event of Chat, which has no counterpart in other protocols.
    fn done(&mut self) {
        self.reading.end = match self.protocol {
            Protocol::Chat if self.is_finished => End::Success,
            _ => End::Failure(None),
        };
    }

    fn response(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        self.reading.name(&event["response"]["model"]);
        if kind.ends_with(".delta") {
            self.reading.words.extend(texts(event, &["delta"]));
        }
        if matches!(kind, "response.completed" | "response.incomplete") {
            self.reading.usage = Usage::of(&event["response"]["usage"]);
            note_incomplete(&event["response"], &mut self.reading);
            // The status may be lost.
            self.reading.is_incomplete |= kind == "response.incomplete";
            self.reading.end = End::Success;
        }
    }

    fn chunk(&mut self, chunk: &Value) {
        self.reading.name(&chunk["model"]);
        self.reading.usage = Usage::of(&chunk["usage"]).or(self.reading.usage);
        for choice in list(chunk, "choices") {
            if self.is_finished {
                return;
            }
            let delta = &choice["delta"];
            let calls = list(delta, "tool_calls").map(|call| &call["function"]);
            self.reading
                .words
                .extend(texts(delta, &["reasoning_content", "content", "refusal"]));
            self.reading.words.extend(parts(&delta["content"]));
            self.reading
                .words
                .extend(calls.flat_map(|function| texts(function, &["arguments"])));
            let reason = &choice["finish_reason"];
            self.reading.finish(Protocol::Chat, reason);
            self.is_finished |= reason.as_str().is_some_and(|word| !word.is_empty());
        }
    }

    fn message(&mut self, event: &Value) {
        self.reading.name(&event["message"]["model"]);
        self.reading.words.extend(texts(
            &event["delta"],
            &["thinking", "text", "partial_json"],
        ));
        self.reading
            .finish(Protocol::Messages, &event["delta"]["stop_reason"]);
        for counts in [&event["message"]["usage"], &event["usage"]] {
            // Each count is the total so far; absent ones keep their value.
            let old = self.reading.usage;
            let usage = Usage::with(counts, old.unwrap_or_default());
            self.reading.usage = if counts.is_object() { Some(usage) } else { old };
        }
        if event["type"] == "message_stop" {
            self.reading.end = End::Success;
        }
    }

    fn picture(&mut self, event: &Value) {
        self.reading.words.extend(texts(event, &["b64_json"]));
        let kind = event["type"].as_str().unwrap_or_default();
        let (is_preview, is_last) = (
            kind.ends_with(".partial_image"),
            matches!(kind, "image_generation.completed" | "image_edit.completed"),
        );
        if (is_preview || is_last) && !is_picture(&event["b64_json"]) {
            self.reading.end = End::Failure(None);
        }
        if !is_last || self.reading.end != End::Missing {
            return;
        }
        if let Some(usage) = Usage::of(&event["usage"]) {
            let sum = self.reading.usage.get_or_insert_default();
            *sum = Usage {
                input: sum.input + usage.input,
                output: sum.output + usage.output,
            };
        }
        self.pictures = self.pictures.saturating_sub(1);
        if self.pictures == 0 {
            self.reading.end = End::Success;
        }
    }
}
