//! Adds up the events of a stream, as the official SDKs do: by the indexes of choices, calls, blocks,
//! items and parts, and by nothing else.
//!
//! It reads the gateway's events without using its crates. Content that an SDK cannot place is a
//! problem, so that no content gets lost unnoticed.

mod chat;
mod messages;
mod responses;

use std::collections::BTreeMap;

use serde_json::Value;

/// The protocol of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// <https://platform.openai.com/docs/api-reference/chat-streaming>
    Chat,
    /// <https://platform.claude.com/docs/en/build-with-claude/streaming>
    Messages,
    /// <https://platform.openai.com/docs/api-reference/responses-streaming>
    Responses,
}

/// The content of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The answers by the indexes of their choices. Protocols without choices have number 0.
    pub answers: BTreeMap<u64, Answer>,
    /// Content that an SDK cannot place or read.
    pub problems: Vec<String>,
}

/// The content of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The output text.
    pub text: String,
    /// The text by which the model refuses.
    pub refusal: String,
    /// The reasoning, or its summary.
    pub reasoning: String,
    /// The calls, in the order of their indexes.
    pub calls: Vec<Call>,
}

/// A function call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The id, by which its result refers to it.
    pub id: String,
    /// The name of the function.
    pub name: String,
    /// The arguments, as they were sent.
    pub arguments: String,
}

/// Adds up events with this data, up to the end of a stream.
pub fn add_up<D: AsRef<[u8]>>(protocol: Protocol, events: &[D]) -> Content {
    let mut stream: Box<dyn Stream> = match protocol {
        Protocol::Chat => Box::<chat::Chat>::default(),
        Protocol::Messages => Box::<messages::Messages>::default(),
        Protocol::Responses => Box::<responses::Responses>::default(),
    };
    let mut problems = Vec::new();
    for data in events {
        if data.as_ref() == b"[DONE]" {
            break;
        }
        match serde_json::from_slice::<Value>(data.as_ref()) {
            Ok(event) => {
                stream.add(&event, &mut problems);
                if ENDS.contains(&text(&event, "type")) {
                    break;
                }
            }
            Err(error) => problems.push(format!("an event that is no JSON: {error}")),
        }
    }
    Content {
        answers: stream.answers(),
        problems,
    }
}

/// The types of the events after which nothing belongs to an answer.
const ENDS: [&str; 3] = ["message_stop", "response.completed", "response.incomplete"];

/// The events of a protocol so far.
trait Stream {
    /// Adds an event.
    fn add(&mut self, event: &Value, problems: &mut Vec<String>);

    /// Returns the content.
    fn answers(self: Box<Self>) -> BTreeMap<u64, Answer>;
}

/// A text of an object, or the empty one.
fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// The elements of a list of an object; none if it is absent.
fn list<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    object[name].as_array().into_iter().flatten()
}

/// An index of an object, which an SDK needs.
fn index(object: &Value, name: &str, problems: &mut Vec<String>) -> Option<u64> {
    let index = object[name].as_u64();
    if index.is_none() {
        problems.push(format!("no {name}: {object}"));
    }
    index
}
