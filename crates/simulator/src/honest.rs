//! Conforming replies: a model server without faults, whose reply depends only on the request.
//!
//! | request | reply |
//! |---|---|
//! | contains "refuse" | a refusal, in the form of the protocol |
//! | ends with tool results | a text that quotes them |
//! | must call a tool, or contains the name of one | a call with arguments that match the schema of the tool |
//! | has two tools and `parallel_tool_calls: true`, or contains "parallel" and has tools | two calls |
//! | requests JSON | a JSON text that matches the schema, if it is a simple one |
//! | contains "count to N" | the numbers from 1 to N |
//! | has pictures | their number and types, followed by the text below |
//! | anything else | `You said: …` |
//!
//! Reasoning comes first if it is enabled. A token limit of 8 or less always truncates the text, a larger one if the
//! text exceeds it. Stop sequences end the text. A token is roughly a word. Ids, times and numbers depend only on the
//! number of the request. Requests without a field that every server requires are refused with 400. API keys are not
//! checked.

mod answer;
mod chat;
mod error;
mod images;
mod messages;
mod models;
mod parsed_request;
mod picture;
mod responses;
mod schema;

use bytes::Bytes;
use serde_json::Value;

pub(crate) use error::Failure;

use crate::play::{EVENT_STREAM, Framing, Play, Step};
use crate::request::{Protocol, Request};

/// Returns the conforming reply to a request as a play.
pub fn answer(request: &Request) -> Play {
    reply(request).play(request)
}

/// Returns the conforming reply to a request.
#[must_use]
pub fn reply(request: &Request) -> Reply {
    match decide(request) {
        Ok(reply) => reply,
        Err(failure) => Reply::Json(failure.status, failure.body(request)),
    }
}

/// Returns the conforming plain reply to a request, even if it requests a stream. Multipart forms are not changed.
#[must_use]
pub fn plain(request: &Request) -> Reply {
    let mut request = request.clone();
    let mut body = request.json();
    if body["stream"] == true {
        body["stream"] = false.into();
        request.body = body.to_string().into();
    }
    reply(&request)
}

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
    pub fn play(&self, request: &Request) -> Play {
        let id = format!("req_{}", nonce(request));
        let id_header = if request.protocol() == Some(Protocol::Messages) { "request-id" } else { "x-request-id" };
        match self {
            Self::Json(status, body) => {
                Play::answer(*status, &[("content-type", "application/json"), (id_header, &id)], body.to_string())
            }
            Self::Events(events) => {
                let headers: Vec<_> = EVENT_STREAM.iter().copied().chain([(id_header, id.as_str())]).collect();
                let head = Play::new().head(200, &headers, Framing::Chunked);
                events.iter().map(Event::to_bytes).fold(head, Play::body).step(Step::End)
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
    /// An event whose name is the `type` of its data.
    pub(crate) fn named(data: &Value) -> Self {
        Self { name: data["type"].as_str().map(str::to_owned), data: data.to_string() }
    }

    /// An event without a name.
    pub(crate) fn unnamed(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }

    /// Encodes the event, with its empty line.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let name = self.name.as_ref().map_or(String::new(), |name| format!("event: {name}\n"));
        format!("{name}data: {}\n\n", self.data).into()
    }
}

fn decide(request: &Request) -> Result<Reply, Failure> {
    let route = request.route();
    if let Some((_, id)) = route.rsplit_once("/models") {
        return match (request.method.as_str(), id.strip_prefix('/')) {
            ("GET" | "HEAD", None) => Ok(models::list()),
            ("GET" | "HEAD", Some(id)) => models::one(id),
            _ => Err(Failure::method_not_allowed()),
        };
    }
    let Some(protocol) = request.protocol() else { return Err(Failure::unknown_path(&request.method, route)) };
    if request.method != "POST" {
        return Err(Failure::method_not_allowed());
    }
    match protocol {
        Protocol::Images => images::reply(request),
        Protocol::Responses => responses::reply(request, &object(request)?),
        Protocol::Chat => chat::reply(request, &object(request)?),
        Protocol::Messages if route.ends_with("/count_tokens") => messages::count(&object(request)?),
        Protocol::Messages => messages::reply(request, &object(request)?),
    }
}

/// Parses the body, which must be a JSON object.
fn object(request: &Request) -> Result<Value, Failure> {
    match request.json() {
        body @ Value::Object(_) => Ok(body),
        _ => Err(Failure::not_json()),
    }
}

/// The part of all ids in the reply to a request that distinguishes them from those of other replies.
fn nonce(request: &Request) -> String {
    format!("{:016x}", request.number)
}

/// The creation time of the reply to a request, in Unix seconds.
fn created(request: &Request) -> usize {
    1_789_000_000 + request.number
}
