//! Relays Chat Completions.

use chat::Event;
use chat::lenient::{CallDefects, Defects, Reader, reported_tokens};
use engine::{EngineError, Usage};
use memchr::memmem;
use serde_json::{Value, json};
use vendor::{call_id, engine_error, truncated, usage};
use wire::lenient::{TextPlace, Values, Varying};
use wire::{ApiError, Splice};

use super::seals::Marker;
use super::{Action, End, RelayProtocol, frequent_reply, json_string, utf8, write_counts};

/// The relayed Chat Completions protocol.
#[derive(Debug, Default)]
pub struct Chat {
    reader: Reader,
    hides_usage: bool,
    /// The number of choices that the request asks for.
    choices: usize,
    marker: Option<Marker>,
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

    /// Edits the usage of a chunk, or removes it for a client that has not requested it.
    fn edit_usage(&self, data: &str, edits: &mut Splice<'_>) {
        let has_usage = self.reader.has_usage();
        let has_name = || memmem::find(data.as_bytes(), USAGE_HINT).is_some();
        if self.hides_usage && (has_usage || has_name()) {
            edits.remove(&[], &["usage"]);
        } else if has_usage {
            settle_usage(&self.reader, edits);
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
        self.reader
            .event(data, &mut Vec::new())
            .map_err(engine_error)?;
        if self.reader.is_done() {
            return Ok(Action::End(end(&self.reader)));
        }
        if self.hides_usage && self.reader.has_usage_alone() {
            return Ok(Action::Drop);
        }
        edits.replace_each(&[], "model", model);
        if self.reader.lacks_choices() {
            // Clients iterate over the choices of every chunk.
            edits.set("choices", b"[]");
        }
        if self.reader.lacks_object() {
            edits.set("object", b"\"chat.completion.chunk\"");
        }
        self.edit_usage(data, edits);
        for defects in self.reader.defects() {
            mend(defects, "delta", self.reader.id(), edits);
        }
        if let Some(marker) = &self.marker {
            marker.mark(edits);
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

    fn mark_seals(&mut self, marker: Marker) {
        self.marker = Some(marker);
    }

    fn usage_of_reply(body: &[u8]) -> Option<Usage> {
        reported_tokens(utf8(body).ok()?).map(usage)
    }

    fn fail(&mut self, _: &str, error: &ApiError, out: &mut Vec<u8>) {
        Event::Error(error.body()).write(out);
    }

    fn reply(body: &[u8], model: &str, splice: &mut Splice<'_>) -> Result<End, EngineError> {
        let mut reader = Reader::new();
        reader
            .reply(utf8(body)?, &mut Vec::new())
            .map_err(engine_error)?;
        for defects in reader.defects() {
            mend(defects, "message", reader.id(), splice);
        }
        splice.replace_each(&[], "model", &json_string(model));
        settle_usage(&reader, splice);
        Ok(end(&reader))
    }

    fn frequent_reply(body: &[u8], model: &str) -> Option<(Vec<u8>, End)> {
        frequent_reply::chat(body, model)
    }
}

/// Writes counts that add up where the usage of the last event, or of the reply, has others, and
/// removes the breakdown.
fn settle_usage(reader: &Reader, edits: &mut Splice<'_>) {
    if let Some(counts) = reader.unsettled_usage() {
        write_counts(&["usage"], COUNTS, counts, edits);
    }
    edits.remove(DETAILS.0, DETAILS.1);
}

/// Rewrites the defects of a choice in the form that clients know. Its content is in the member
/// `message`, and `answer` is the id of the answer.
fn mend(defects: &Defects, message: &str, answer: &str, edits: &mut Splice<'_>) {
    let place = defects.place.to_string();
    let choice = ["choices", &place];
    if defects.lacks_index {
        edits.put(&choice, "index", "0");
    }
    if defects.lacks_delta {
        edits.put(&choice, "delta", "{}");
    }
    if defects.has_old_finish {
        edits.put(&choice, "finish_reason", CALLED);
    }
    let message = if defects.has_message {
        // It may be there as null.
        edits.remove(&choice, &["delta"]);
        edits.rename_in(&choice, "message", "delta");
        "message"
    } else {
        message
    };
    let path = ["choices", &place, message];
    if let Some(content) = &defects.content {
        edits.put(&path, "content", &text(&content.text));
        if let Some(reasoning) = &content.reasoning {
            edits.put(&path, "reasoning_content", &text(reasoning));
        }
    }
    for call in &defects.calls {
        match call.place {
            Some(piece) => mend_call(call, &path, piece, edits),
            None => mend_function_call(call, &path, answer, edits),
        }
    }
}

/// Writes a piece of a call in the form that clients know.
fn mend_call(call: &CallDefects, path: &[&str; 3], piece: usize, edits: &mut Splice<'_>) {
    let [list, place, message] = path;
    let piece = piece.to_string();
    let path = [list, place, message, "tool_calls", &piece];
    if call.has_other_index {
        edits.put(&path, "index", &call.index.to_string());
    }
    if call.is_first {
        edits.add_missing(&path, &[("type", FUNCTION)]);
    }
    if call.repeats_id {
        edits.remove(&path, &["id"]);
    }
    let function = [list, place, message, "tool_calls", &piece, "function"];
    if call.repeats_name {
        edits.remove(&function, &["name"]);
    }
    if let Some(arguments) = &call.arguments {
        edits.put(&function, "arguments", &text(arguments));
    }
}

/// Writes a call in its old form as the only one of a list. It has no id, by which clients send back
/// the result of one in a list, so it gets one that follows from the answer's id.
fn mend_function_call(call: &CallDefects, path: &[&str; 3], answer: &str, edits: &mut Splice<'_>) {
    let mut piece = json!({"function": {"arguments": call.arguments}});
    if path[2] == "delta" {
        piece["index"] = call.index.into();
    }
    if call.is_first {
        let [_, place, _] = path;
        piece["id"] = call_id::digest(&format!("{answer}.{place}.{}", call.index)).into();
        piece["type"] = "function".into();
    }
    if let Some(name) = &call.name {
        piece["function"]["name"] = name.as_str().into();
    }
    let calls = json!([piece]).to_string();
    let path_of_calls = [path[0], path[1], path[2], "tool_calls"];
    if !edits.replace(&path_of_calls, calls.as_bytes()) {
        edits.replace_member(path, "function_call", ("tool_calls", calls.as_bytes()));
    }
}

fn text(text: &str) -> String {
    Value::from(text).to_string()
}

fn end(reader: &Reader) -> End {
    End {
        incomplete: reader.is_truncated(),
        usage: reader.tokens().map(usage),
    }
}

/// The counts of the usage: of the prompt, of the answer, and their sum.
const COUNTS: [&str; 3] = ["prompt_tokens", "completion_tokens", "total_tokens"];
/// The breakdown of the usage, which is not sent to clients of this protocol.
const DETAILS: (&[&str], &[&str]) = (
    &["usage"],
    &["prompt_tokens_details", "completion_tokens_details"],
);
/// The name of the usage, which may be null.
const USAGE_HINT: &[u8] = b"\"usage\"";
/// The finish reason of calls, as JSON.
const CALLED: &str = "\"tool_calls\"";
/// The type of a call, as JSON.
const FUNCTION: &str = "\"function\"";
