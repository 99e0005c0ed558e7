//! Relays Responses.

use std::collections::BTreeMap;

use engine::{EngineError, Usage};
use responses::lenient::{Finish, IdOwner, Kind, Reader, reported_tokens};
use responses::{ResponseError, Status};
use serde_json::{Map, Value, json};
use vendor::{engine_error, truncated, usage};
use wire::lenient::{TextPlace, Values, Varying};
use wire::{ApiError, Splice};

use super::seals::Marker;
use super::{Action, End, RelayProtocol, response_pictures, utf8, write_counts};

/// The relayed Responses protocol.
#[derive(Debug, Default)]
pub struct Responses {
    reader: Reader,
    /// The response as in the first event.
    started: Option<Map<String, Value>>,
    /// The items that are done, by their indexes.
    items: BTreeMap<usize, Value>,
    /// The number of the event after the last one that was forwarded.
    next: u64,
    has_forwarded: bool,
    /// True after a text, a call or another piece of the output.
    has_updates: bool,
    marker: Option<Marker>,
}

impl RelayProtocol for Responses {
    const VARYING: &'static [Varying] = &[
        Varying::text(&["delta"]),
        Varying::number(&["sequence_number"]),
        Varying::text(&["obfuscation"]),
    ];

    fn event(
        &mut self,
        data: &str,
        model: &[u8],
        edits: &mut Splice<'_>,
    ) -> Result<Action, EngineError> {
        let mut updates = Vec::new();
        let kind = self
            .reader
            .event(data, &mut updates)
            .map_err(engine_error)?;
        self.has_updates |= !updates.is_empty();
        match kind {
            Kind::Done => return Ok(Action::Drop),
            // A failure event needs the response, so nothing is forwarded before it.
            Kind::Unknown if self.started.is_none() && self.reader.next_number() > 0 => {
                return Err(gap());
            }
            Kind::Unknown if self.started.is_none() => return Ok(Action::Drop),
            Kind::Response | Kind::End => {
                edits.replace_each(&["response"], "model", model);
                self.start(data);
            }
            _ => self.items.extend(self.done_item(data)),
        }
        response_pictures::repair(data, edits);
        if let Some(counts) = self.reader.unsettled_usage() {
            write_counts(&["response", "usage"], COUNTS, counts, edits);
        }
        self.mend(kind, edits);
        self.keep_ids(edits);
        if let Some(marker) = &self.marker {
            marker.mark(edits);
        }
        self.next = self.reader.next_number();
        self.has_forwarded = true;
        Ok(if kind == Kind::End {
            Action::End(end(&self.reader))
        } else {
            Action::Forward
        })
    }

    fn text_place(&self, _: &str) -> Option<TextPlace> {
        self.reader.text_place()
    }

    fn continue_text(&mut self, place: TextPlace, values: &Values<'_>) -> bool {
        let (text, number) = (values.text(0), values.number(1));
        let is_read = self.reader.continue_text(place, number, text);
        if is_read {
            self.next = self.reader.next_number();
            self.has_updates |= !text.is_empty();
        }
        is_read
    }

    fn has_content(&self) -> bool {
        let has_ended = self.reader.finish().is_some();
        self.has_updates || has_ended || !self.reader.other_content().is_empty()
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

    fn fail(&mut self, model: &str, error: &ApiError, out: &mut Vec<u8>) {
        let Some(mut response) = self.started.take() else {
            // There is no response to report as failed.
            if self.has_forwarded {
                let event = json!({"type": "error", "code": error.code, "message": error.message,
                    "param": null, "sequence_number": self.next});
                sse::encode(sse::EventName::new("error").ok(), &event.to_string(), out);
            }
            return;
        };
        let error = serde_json::to_value(ResponseError::from(error)).unwrap_or_default();
        let changes = [
            ("model", model.into()),
            ("status", Status::Failed.as_str().into()),
            ("output", self.take_items()),
            ("error", error),
        ];
        response.extend(changes.map(|(name, value)| (name.to_owned(), value)));
        let event = json!({"type": FAILED, "sequence_number": self.next, "response": response});
        sse::encode(sse::EventName::new(FAILED).ok(), &event.to_string(), out);
    }

    fn reply(body: &[u8], model: &str, splice: &mut Splice<'_>) -> Result<End, EngineError> {
        let mut reader = Reader::new();
        reader
            .reply(utf8(body)?, &mut Vec::new())
            .map_err(engine_error)?;
        splice.replace_each(&[], "model", &super::json_string(model));
        response_pictures::repair(utf8(body)?, splice);
        if let Some(counts) = reader.unsettled_usage() {
            write_counts(&["usage"], COUNTS, counts, splice);
        }
        Ok(end(&reader))
    }
}

/// Returns the complete reply to a request that is processed in the background, for the client. It
/// may be unfinished.
///
/// # Errors
/// When it is not a response, or reports a failure.
pub fn background_reply(body: &[u8], model: &str) -> Result<(Vec<u8>, End), EngineError> {
    #[derive(serde::Deserialize)]
    struct Unfinished {
        status: Status,
        error: Option<serde::de::IgnoredAny>,
    }
    let is_unfinished = |found: Unfinished| {
        found.error.is_none() && matches!(found.status, Status::Queued | Status::InProgress)
    };
    if !serde_json::from_slice(body).is_ok_and(is_unfinished) {
        return super::reply::<Responses>(body, model);
    }
    let mut splice = Splice::new(body);
    splice.replace_each(&[], "model", &super::json_string(model));
    Ok((splice.to_vec(), End::default()))
}

impl Responses {
    /// Adds the indexes by which clients find the item and the part of an event, and the items to
    /// the response that ends the stream. Some servers, such as llama.cpp, leave them out.
    fn mend(&mut self, kind: Kind, edits: &mut Splice<'_>) {
        let missing = self.reader.missing();
        let indexes = [
            ("content_index", missing.content_index),
            ("summary_index", missing.summary_index),
            (
                "output_index",
                missing.output_index.map(|index| index as u64),
            ),
        ];
        for (name, index) in indexes {
            if let Some(index) = index {
                edits.set(name, index.to_string().as_bytes());
            }
        }
        if missing.output {
            let items = match kind {
                Kind::End => self.take_items().to_string(),
                _ => "[]".to_owned(),
            };
            if !edits.replace(&["response", "output"], items.as_bytes()) {
                edits.add_missing(&["response"], &[("output", &items)]);
            }
        }
    }

    /// The items that are done, as a list.
    fn take_items(&mut self) -> Value {
        std::mem::take(&mut self.items).into_values().collect()
    }

    /// The item that an event completes, with its first ids, and its index.
    fn done_item(&self, data: &str) -> Option<(usize, Value)> {
        let index = self.reader.done_item()?;
        let mut item = member(data, "item")?;
        let changed = self.reader.changed_ids().iter();
        for changed in changed.filter(|changed| changed.owner == IdOwner::Item) {
            item[changed.name] = changed.first.as_str().into();
        }
        response_pictures::repair_item(&mut item);
        Some((index, item))
    }

    /// Writes the first ids where a server changes them, as GitHub Copilot does in every event, or
    /// leaves them out: clients find items and calls by their ids.
    fn keep_ids(&self, edits: &mut Splice<'_>) {
        for changed in self.reader.changed_ids() {
            let position;
            let owner: &[&str] = match changed.owner {
                IdOwner::Event => &[],
                IdOwner::Item => &["item"],
                IdOwner::Response => &["response"],
                IdOwner::Output(index) => {
                    position = index.to_string();
                    &["response", "output", &position]
                }
                _ => continue,
            };
            edits.put(owner, changed.name, &json!(changed.first).to_string());
        }
    }

    /// Keeps the response of the first event that has it.
    fn start(&mut self, data: &str) {
        if self.started.is_none()
            && let Some(Value::Object(response)) = member(data, "response")
        {
            self.started = Some(response);
        }
    }
}

/// A member of an event.
fn member(data: &str, name: &str) -> Option<Value> {
    let mut event: Map<String, Value> = serde_json::from_str(data).ok()?;
    event.remove(name)
}

fn end(reader: &Reader) -> End {
    let incomplete = reader
        .finish()
        .is_some_and(|finish| finish != Finish::Completed);
    End {
        incomplete,
        usage: reader.tokens().map(usage),
    }
}

/// The failure for a numbered event that is dropped: the client would see a gap in the numbers.
fn gap() -> EngineError {
    EngineError::Upstream("malformed event: a numbered event before the response".to_owned())
}

/// The counts of the usage: of the prompt, of the answer, and their sum.
const COUNTS: [&str; 3] = ["input_tokens", "output_tokens", "total_tokens"];
const FAILED: &str = "response.failed";
