//! Relays Messages.

use engine::{EngineError, Usage};
use messages::lenient::{Kind, Reader, Stop, reported_tokens};
use messages::{ErrorBody, Event, Plain, StreamFailure};
use serde_json::Value;
use vendor::{engine_error, truncated, usage};
use wire::lenient::{TextPlace, Values, Varying};
use wire::{ApiError, Splice};

use super::seals::Marker;
use super::{Action, End, RelayProtocol, utf8};

/// The relayed Messages protocol.
#[derive(Debug, Default)]
pub struct Messages {
    reader: Reader,
    marker: Option<Marker>,
}

impl RelayProtocol for Messages {
    const VARYING: &'static [Varying] = &[
        Varying::text(&["delta", "text"]),
        Varying::text(&["delta", "thinking"]),
    ];

    fn event(
        &mut self,
        data: &str,
        model: &[u8],
        edits: &mut Splice<'_>,
    ) -> Result<Action, EngineError> {
        let kind = self
            .reader
            .event(data, &mut Vec::new())
            .map_err(engine_error)?;
        if let Some(index) = self.reader.index() {
            edits.set("index", index.to_string().as_bytes());
        }
        if let Some(kind) = self.reader.delta_kind() {
            edits.put(&["delta"], "type", &format!("\"{kind}\""));
        }
        write_counts(&self.reader, edits);
        if let Some(usage) = self.reader.missing_usage() {
            edits.put(&[], "usage", &json_object(&usage));
        }
        if let Some(words) = self.reader.missing_stop() {
            write_stop(words, edits);
        }
        if let Some(marker) = &self.marker {
            marker.mark(edits);
        }
        Ok(match kind {
            Kind::Start => {
                edits.replace_each(&["message"], "model", model);
                fill(&["message"], &START, edits);
                Action::Forward
            }
            Kind::Repetition => Action::Drop,
            Kind::End => Action::End(end(&self.reader)),
            _ => Action::Forward,
        })
    }

    fn text_place(&self, _: &str) -> Option<TextPlace> {
        self.reader.text_place()
    }

    fn continue_text(&mut self, place: TextPlace, values: &Values<'_>) -> bool {
        let texts = [values.text(0), values.text(1)];
        self.reader.continue_text(place, texts)
    }

    fn has_content(&self) -> bool {
        self.reader.has_content()
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<End, EngineError> {
        Err(truncated())
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
        let ErrorBody { error, .. } = ErrorBody::new(error, "");
        Event::Error(StreamFailure::new(error)).write(out);
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        if self.reader.has_started() {
            Event::Ping(Plain::default()).write(out);
        } else {
            sse::comment("keep-alive", out);
        }
    }

    fn reply(body: &[u8], model: &str, splice: &mut Splice<'_>) -> Result<End, EngineError> {
        let mut reader = Reader::new();
        reader
            .reply(utf8(body)?, &mut Vec::new())
            .map_err(engine_error)?;
        splice.replace_each(&[], "model", &super::json_string(model));
        write_counts(&reader, splice);
        fill(&[], &START, splice);
        Ok(end(&reader))
    }
}

/// Writes the settled counts where the usage of the last event, or of the reply, has others.
fn write_counts(reader: &Reader, edits: &mut Splice<'_>) {
    for (name, count) in reader.unsettled_usage().into_iter().flatten() {
        edits.replace(&["usage", name], count.to_string().as_bytes());
    }
}

/// Returns a JSON object with these counts.
fn json_object(counts: &[(&str, u64)]) -> String {
    let members = counts
        .iter()
        .map(|(name, count)| format!("\"{name}\":{count}"));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Writes the stop reason and the stop sequence so far into the delta of a `message_delta` without a
/// stop reason.
fn write_stop(words: [Option<&str>; 2], edits: &mut Splice<'_>) {
    let [reason, sequence] = words.map(|word| Value::from(word).to_string());
    if edits.has(&["delta"]) && !edits.has_value(&["delta"], b"null") {
        edits.put(&["delta"], "stop_reason", &reason);
        fill(&["delta"], &[("stop_sequence", &sequence)], edits);
    } else {
        let delta = format!(r#"{{"stop_reason":{reason},"stop_sequence":{sequence}}}"#);
        edits.put(&[], "delta", &delta);
    }
}

/// Adds the members that an object lacks or has as null.
fn fill(path: &[&str], members: &[(&str, &str)], edits: &mut Splice<'_>) {
    for (member, value) in members {
        let path = [path, &[member]].concat();
        if edits.has_value(&path, b"null") {
            edits.replace(&path, value.as_bytes());
        }
    }
    edits.add_missing(path, members);
}

fn end(reader: &Reader) -> End {
    let incomplete = matches!(reader.stop(), Some(Stop::MaxTokens | Stop::ContextFull));
    End {
        incomplete,
        usage: reader.tokens().map(usage),
    }
}

/// The members of a message that clients rely on, as the official SDKs do, and that some servers
/// leave out.
const START: [(&str, &str); 4] = [
    ("type", r#""message""#),
    ("role", r#""assistant""#),
    ("content", "[]"),
    ("usage", r#"{"input_tokens":0,"output_tokens":0}"#),
];
