//! A model server that decides by the request what to say, as a real one would.
//!
//! | the request | the answer |
//! |---|---|
//! | says "refuse" | a refusal, in the protocol's shape |
//! | ends with results of tools | a text that quotes them |
//! | must call a tool, or names one in its text | a call with arguments that fit the tool's schema |
//! | has two tools and `parallel_tool_calls: true`, or says "parallel" and has tools | two calls |
//! | wants JSON | a JSON text that fits the schema, when it is a simple one |
//! | says "count to N" | the numbers from 1 to N |
//! | has pictures | how many they are and of which types, then as below |
//! | anything else | `You said: …` |
//!
//! Reasoning comes first where it is asked for. An output cap of 8 or less cuts the text, as does a larger one that it
//! exceeds, and stop texts stop it. A token is a word, roughly. Ids, times and numbers follow from the number of the
//! request alone. Requests that lack what no server does without are refused with 400; keys are not looked at.

mod answer;
mod ask;
mod chat;
mod error;
pub(crate) mod form;
mod images;
mod messages;
mod models;
mod picture;
mod responses;
mod schema;

use bytes::Bytes;
use serde_json::Value;

pub(crate) use error::Failure;

use crate::play::{EVENT_STREAM, Framing, Play, Step};
use crate::request::{Protocol, Request};

/// What a real server does in answer to a request.
#[must_use]
pub fn answer(request: &Request) -> Play {
    reply(request).play(request)
}

/// What a real server says in answer to a request.
#[must_use]
pub fn reply(request: &Request) -> Reply {
    match decide(request) {
        Ok(reply) => reply,
        Err(failure) => Reply::Json(failure.status, failure.body(request)),
    }
}

/// What a real server says when the same is asked without a stream. A form is answered as it asks.
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

/// What a server says.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A status and a JSON body.
    Json(u16, Value),
    /// A stream of events.
    Events(Vec<Event>),
}

impl Reply {
    /// The reply as it is sent.
    #[must_use]
    pub fn play(&self, request: &Request) -> Play {
        let id = format!("req_{:016x}", request.number);
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
    /// Of its `event:` line; Chat has none.
    pub name: Option<String>,
    /// Of its `data:` line: one line of JSON, or `[DONE]`.
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

    /// As it stands on the wire, with its empty line.
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
            _ => Err(Failure::method()),
        };
    }
    let Some(protocol) = request.protocol() else { return Err(Failure::path(&request.method, route)) };
    if request.method != "POST" {
        return Err(Failure::method());
    }
    match protocol {
        Protocol::Images => images::reply(request),
        Protocol::Responses => responses::reply(request, &object(request)?),
        Protocol::Chat => chat::reply(request, &object(request)?),
        Protocol::Messages if route.ends_with("/count_tokens") => messages::count(&object(request)?),
        Protocol::Messages => messages::reply(request, &object(request)?),
    }
}

/// The body, which has to be a JSON object.
fn object(request: &Request) -> Result<Value, Failure> {
    match request.json() {
        body @ Value::Object(_) => Ok(body),
        _ => Err(Failure::not_json()),
    }
}

/// When the answer to a request was made, in Unix seconds.
fn created(request: &Request) -> usize {
    1_789_000_000 + request.number
}
