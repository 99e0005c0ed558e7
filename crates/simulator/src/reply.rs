//! Replies, before they are encoded in HTTP.

use serde_json::Value;

use crate::play::{EVENT_STREAM, Framing, Play, Step};
use crate::request::{Protocol, Request};

/// A reply, before it is encoded in HTTP.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A status and a JSON body.
    Json(u16, Value),
    /// A stream of events.
    Events(Vec<Event>),
}

impl Reply {
    /// Returns the play that sends the reply.
    pub(crate) fn play(&self, request: &Request) -> Play {
        let id = format!("req_{}", nonce(request));
        let id_header = if request.protocol() == Some(Protocol::Messages) {
            "request-id"
        } else {
            "x-request-id"
        };
        match self {
            Self::Json(status, body) => Play::answer(
                *status,
                &[("content-type", "application/json"), (id_header, &id)],
                body.to_string(),
            ),
            Self::Events(events) => {
                let headers: Vec<_> = EVENT_STREAM
                    .iter()
                    .copied()
                    .chain([(id_header, id.as_str())])
                    .collect();
                let head = Play::new().head(200, &headers, Framing::Chunked);
                events
                    .iter()
                    .map(Event::encoded)
                    .fold(head, Play::body)
                    .step(Step::End)
            }
        }
    }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The value of its `event:` line; Chat has none.
    pub name: Option<String>,
    /// The value of its `data:` line: one line of JSON, or `[DONE]`.
    pub data: String,
}

impl Event {
    /// An event whose name is the `type` of its data, if there is one; Chat has none.
    pub(crate) fn new(data: &Value) -> Self {
        Self {
            name: data["type"].as_str().map(str::to_owned),
            data: data.to_string(),
        }
    }

    /// Changes the data, if it is JSON.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Value)) {
        if let Ok(mut data) = serde_json::from_str(&self.data) {
            change(&mut data);
            self.data = data.to_string();
        }
    }

    /// The event on the wire, with its empty line.
    pub(crate) fn encoded(&self) -> String {
        let name = self
            .name
            .as_ref()
            .map_or(String::new(), |name| format!("event: {name}\n"));
        format!("{name}data: {}\n\n", self.data)
    }
}

/// The part of all ids in the reply to a request that distinguishes them from the ids of other
/// replies.
pub(crate) fn nonce(request: &Request) -> String {
    format!("{:016x}", request.number)
}
