//! Reads a response of the gateway as a client does, without any type of the gateway's.
//!
//! It is as lenient as the official SDKs, and reports what contradicts itself.

mod chat;
mod images;
mod messages;
mod responses;

use serde_json::Value;
use simulator::Protocol;
use testkit::Response;

use testkit::dialects::{Call, Reason, Usage};
use testkit::events::events;

/// The content of a response.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) end: End,
    /// Texts and refusals; of Images the picture.
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) usage: Option<Usage>,
    /// Contradictions, and events outside of the protocol.
    pub(crate) problems: Vec<String>,
}

/// The end of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// None: the response is truncated.
    #[default]
    Missing,
    Complete,
    Incomplete(Reason),
    /// A word for the end that the protocol does not have.
    Other(String),
    /// An error with this message.
    Failure(String),
}

impl Reading {
    /// Parses a response.
    pub(crate) fn of(client: Protocol, response: &Response) -> Self {
        let mut reading = Self::default();
        if response.status != 200 {
            match serde_json::from_slice::<Value>(&response.body) {
                Ok(body) => reading.fail(&body["error"]),
                Err(_) => reading.problem(format!("status {} without JSON", response.status)),
            }
        } else if response.is_stream() {
            reading.stream(client, &response.body);
        } else {
            match serde_json::from_slice(&response.body) {
                Ok(reply) => reading.reply(client, &reply),
                Err(error) => reading.problem(format!("a reply that is no JSON: {error}")),
            }
        }
        if !response.is_complete() && !matches!(reading.end, End::Missing | End::Failure(_)) {
            reading.problem("a success in a truncated body");
        }
        reading
    }

    fn stream(&mut self, client: Protocol, body: &[u8]) {
        let mut chat = chat::Stream::default();
        let mut responses = responses::Stream::default();
        let mut messages = messages::Stream::default();
        for data in events(body) {
            if self.end != End::Missing {
                return self.problem(format!(
                    "an event after the end: {}",
                    String::from_utf8_lossy(&data)
                ));
            }
            if client == Protocol::Chat && data == b"[DONE]" {
                chat.done(self);
                continue;
            }
            let Ok(event) = serde_json::from_slice::<Value>(&data) else {
                self.problem(format!(
                    "an event that is no JSON: {}",
                    String::from_utf8_lossy(&data)
                ));
                continue;
            };
            match client {
                Protocol::Chat => chat.chunk(&event, self),
                Protocol::Responses => responses.event(&event, self),
                Protocol::Messages => messages.event(&event, self),
                Protocol::Images => images::event(&event, self),
            }
        }
        match client {
            Protocol::Chat => chat.finish(self),
            Protocol::Responses => responses.finish(self),
            Protocol::Messages => messages.finish(self),
            Protocol::Images => {}
        }
    }

    fn reply(&mut self, client: Protocol, reply: &Value) {
        match client {
            Protocol::Chat => chat::reply(reply, self),
            Protocol::Responses => responses::reply(reply, self),
            Protocol::Messages => messages::reply(reply, self),
            Protocol::Images => images::reply(reply, self),
        }
    }

    fn fail(&mut self, error: &Value) {
        match error["message"]
            .as_str()
            .filter(|message| !message.is_empty())
        {
            Some(message) => self.end = End::Failure(message.to_owned()),
            None => self.problem(format!("an error without a message: {error}")),
        }
    }

    fn problem(&mut self, what: impl Into<String>) {
        self.problems.push(what.into());
    }

    fn call(&mut self, name: &Value, arguments: &Value) {
        match (name.as_str(), arguments.as_str()) {
            (Some(name), Some(arguments)) => self.calls.push(Call {
                name: name.into(),
                arguments: arguments.into(),
            }),
            _ => self.problem(format!("a call of {name} with arguments {arguments}")),
        }
    }

    /// Compares what was streamed with what an event says at the end of it.
    fn agree(&mut self, what: &str, streamed: &str, closing: &str) {
        if streamed != closing {
            self.problem(format!(
                "{what}: {streamed:?} was streamed, {closing:?} is at the end"
            ));
        }
    }
}

/// The elements of a list; none if it is absent.
fn list<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    object[name].as_array().into_iter().flatten()
}

/// A text, or the empty one.
fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// Usage with counts of these names; `None` if there are none.
fn usage(
    usage: &Value,
    [input, output]: [&str; 2],
    cached: &Value,
    reasoning: &Value,
) -> Option<Usage> {
    let (input, output) = (usage[input].as_u64()?, usage[output].as_u64()?);
    Some(Usage {
        input,
        output,
        cached: cached.as_u64(),
        reasoning: reasoning.as_u64(),
    })
}
