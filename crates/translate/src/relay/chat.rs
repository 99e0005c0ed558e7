//! Relays Chat Completions.

use chat::Event;
use chat::lenient::{Reader, Update, reported_tokens};
use engine::{EngineError, Usage};
use memchr::memmem;
use serde_json::{Value, json};
use wire::lenient::{TextPlace, Values, Varying};
use wire::{ApiError, Splice};

use super::{Action, End, RelayProtocol, frequent_reply, json_string, utf8, write_counts};
use crate::error::truncated;
use crate::outbound::{engine_error, usage};

/// The relayed Chat Completions protocol.
#[derive(Debug, Default)]
pub struct Chat {
    reader: Reader,
    hides_usage: bool,
    /// The number of choices that the request asks for.
    choices: usize,
}

impl Chat {
    /// Relays a stream for a request for this many choices. Without all of them, a stream is
    /// complete only if its server ends it with `[DONE]`.
    #[must_use]
    pub fn with_choices(choices: usize) -> Self {
        Self {
            choices,
            ..Self::default()
        }
    }

    /// Removes the usage at the end of the stream, for a client that has not requested it.
    #[must_use]
    pub fn hiding_usage(self) -> Self {
        Self {
            hides_usage: true,
            ..self
        }
    }
}

impl RelayProtocol for Chat {
    const NAMED: bool = false;
    const VARYING: &'static [Varying] = &[
        Varying::text(&["choices", "0", "delta", "content"]),
        Varying::text(&["choices", "0", "delta", "reasoning_content"]),
        Varying::text(&["choices", "0", "delta", "reasoning"]),
        Varying::text(&["obfuscation"]),
        Varying::number(&["created"]),
    ];

    fn event(
        &mut self,
        data: &str,
        model: &[u8],
        edits: &mut Splice<'_>,
    ) -> Result<Action, EngineError> {
        let mut updates = Vec::new();
        self.reader
            .event(data, &mut updates)
            .map_err(engine_error)?;
        if self.reader.is_done() {
            return Ok(Action::End(end(&self.reader)));
        }
        if self.hides_usage && self.reader.has_usage_alone() {
            return Ok(Action::Drop);
        }
        edits.replace(&["model"], model);
        if updates.is_empty() && memmem::find(data.as_bytes(), CHOICES_HINT).is_none() {
            // Clients iterate over the choices of every chunk.
            edits.set("choices", b"[]");
        }
        if self.reader.lacks_object() {
            edits.set("object", b"\"chat.completion.chunk\"");
        }
        if self.reader.lacks_delta() || self.reader.lacks_index() {
            mend_choice(&self.reader, edits);
        }
        if self.hides_usage && memmem::find(data.as_bytes(), USAGE_HINT).is_some() {
            edits.remove(&[], &["usage"]);
        } else if let Some(counts) = self.reader.unsettled_usage() {
            write_counts(&["usage"], COUNTS, counts, edits);
            edits.remove(DETAILS.0, DETAILS.1);
        } else if memmem::find(data.as_bytes(), DETAILS_HINT).is_some() {
            // Few chunks have a usage, and looking for it takes longer than reading the chunk.
            edits.remove(DETAILS.0, DETAILS.1);
        }
        if self.reader.lists_texts() {
            mend_content(&updates, "delta", edits);
        }
        if self.reader.has_odd_calls() {
            mend_calls(&updates, "delta", edits);
        }
        Ok(Action::Forward)
    }

    fn text_place(&self, _: &str) -> Option<TextPlace> {
        self.reader.text_place()
    }

    fn continue_text(&mut self, place: TextPlace, values: &Values<'_>) -> bool {
        let reasoning = [values.text(1), values.text(2)];
        self.reader.continue_text(place, values.text(0), reasoning)
    }

    fn has_content(&self) -> bool {
        self.reader.has_content()
    }

    /// A finished stream may lack its `[DONE]`, which is appended.
    fn end(&mut self, out: &mut Vec<u8>) -> Result<End, EngineError> {
        self.reader.finish().map_err(engine_error)?;
        if self.reader.choices() < self.choices {
            return Err(truncated());
        }
        Event::Done.write(out);
        Ok(end(&self.reader))
    }

    fn usage(&self) -> Option<Usage> {
        self.reader.tokens().map(usage)
    }

    fn content_length(&self) -> u64 {
        self.reader.content_length()
    }

    fn usage_of_reply(body: &[u8]) -> Option<Usage> {
        reported_tokens(utf8(body).ok()?).map(usage)
    }

    fn fail(&mut self, _: &str, error: &ApiError, out: &mut Vec<u8>) {
        Event::Error(error.body()).write(out);
    }

    fn reply(body: &[u8], model: &str, splice: &mut Splice<'_>) -> Result<End, EngineError> {
        let (mut reader, mut updates) = (Reader::new(), Vec::new());
        reader
            .reply(utf8(body)?, &mut updates)
            .map_err(engine_error)?;
        if reader.lists_texts() {
            mend_content(&updates, "message", splice);
        }
        if reader.has_odd_calls() {
            mend_calls(&updates, "message", splice);
        }
        splice.replace(&["model"], &json_string(model));
        if let Some(counts) = reader.unsettled_usage() {
            write_counts(&["usage"], COUNTS, counts, splice);
        }
        splice.remove(DETAILS.0, DETAILS.1);
        Ok(end(&reader))
    }

    fn frequent_reply(body: &[u8], model: &str) -> Option<(Vec<u8>, End)> {
        frequent_reply::chat(body, model)
    }
}

/// Sets the missing members of the first choice.
fn mend_choice(reader: &Reader, edits: &mut Splice<'_>) {
    let mut missing = Vec::new();
    for (lacks, name, value) in [
        (reader.lacks_delta(), "delta", "{}"),
        (reader.lacks_index(), "index", "0"),
    ] {
        // It may be null.
        if lacks && !edits.replace(&["choices", "0", name], value.as_bytes()) {
            missing.push((name, value));
        }
    }
    edits.add_missing(&["choices", "0"], &missing);
}

/// Writes a list of texts and thoughts as the text that clients expect, into `delta` or `message`. The
/// thoughts become `reasoning_content`, unless it is there already.
fn mend_content(updates: &[Update<'_>], message: &str, edits: &mut Splice<'_>) {
    let (mut text, mut thoughts) = (String::new(), String::new());
    for update in updates {
        match update {
            Update::Text(piece) => text += piece,
            Update::Reasoning(piece) => thoughts += piece,
            _ => {}
        }
    }
    let path = ["choices", "0", message];
    edits.replace(&[&path[..], &["content"]].concat(), &json_string(&text));
    if !thoughts.is_empty() {
        let thoughts = Value::from(thoughts).to_string();
        edits.add_missing(&path, &[("reasoning_content", &thoughts)]);
    }
}

/// Writes the calls of an event in the form that clients know, into its `delta` or `message`.
fn mend_calls(updates: &[Update<'_>], message: &str, edits: &mut Splice<'_>) {
    let mut calls: Vec<(usize, Value)> = Vec::new();
    for update in updates {
        let (Update::Call { call: number, .. } | Update::Arguments { call: number, .. }) = update
        else {
            continue;
        };
        let place = calls
            .iter()
            .position(|(known, _)| known == number)
            .unwrap_or_else(|| {
                let call = match message {
                    "delta" => json!({"index": number, "function": {"arguments": ""}}),
                    _ => json!({"function": {"arguments": ""}}),
                };
                calls.push((*number, call));
                calls.len() - 1
            });
        let call = &mut calls[place].1;
        match update {
            Update::Call { id, name, .. } => {
                call["id"] = id.as_ref().into();
                call["type"] = "function".into();
                call["function"]["name"] = name.as_ref().into();
            }
            Update::Arguments { text, .. } => call["function"]["arguments"] = text.as_ref().into(),
            _ => {}
        }
    }
    let calls: Value = calls.into_iter().map(|(_, call)| call).collect();
    let (calls, path) = (calls.to_string(), ["choices", "0", message]);
    let path_of_calls = [&path[..], &["tool_calls"]].concat();
    if !edits.replace(&path_of_calls, calls.as_bytes()) {
        edits.replace_member(&path, "function_call", ("tool_calls", calls.as_bytes()));
    }
}

fn end(reader: &Reader) -> End {
    End {
        incomplete: reader.is_truncated(),
        usage: reader.tokens().map(usage),
    }
}

/// The name of the member that every chunk has.
const CHOICES_HINT: &[u8] = b"\"choices\"";
/// The counts of the usage: of the prompt, of the answer, and their sum.
const COUNTS: [&str; 3] = ["prompt_tokens", "completion_tokens", "total_tokens"];
/// The breakdown of the usage, which is not sent to clients of this protocol.
const DETAILS: (&[&str], &[&str]) = (
    &["usage"],
    &["prompt_tokens_details", "completion_tokens_details"],
);
/// The name of the usage.
const USAGE_HINT: &[u8] = b"\"usage\"";
/// A part of the names of its members.
const DETAILS_HINT: &[u8] = b"_tokens_details";
