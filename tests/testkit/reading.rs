//! Reads replies and streams, of clients and of upstreams, without any type of the gateway.
//!
//! It is as lenient as the official SDKs. A contradiction is noted in [`Reading::contradiction`] if
//! no client may take the response for a success, and in [`Reading::problems`] if the gateway must
//! not send it.

mod chat;
mod finish;
mod images;
mod json;
mod messages;
mod responses;
mod usage;

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use simulator::Protocol;

use self::finish::Finish;
pub use self::usage::Usage;
use crate::client::Response;
use crate::events::events;

/// The content of a response with status 200, up to its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The end of the response.
    pub end: End,
    /// The reason for the end in the words of the protocol; empty without a reason.
    pub word: String,
    /// Texts and refusals; of Images the pictures of a reply, or the last one of a stream.
    pub text: String,
    /// Reasoning.
    pub reasoning: String,
    /// Function calls.
    pub calls: Vec<Call>,
    /// Reasoning, texts, refusals and arguments, in order. For Images the pictures.
    pub words: String,
    /// True if the output limit truncated it.
    pub is_cut: bool,
    /// True if a filter truncated it, or the model refused.
    pub is_filtered: bool,
    /// True if it says that it is incomplete, for that reason or another.
    pub is_incomplete: bool,
    /// Token counts.
    pub usage: Option<Usage>,
    /// Every model that it names.
    pub models: BTreeSet<String>,
    /// The number of events before its end.
    pub events: usize,
    /// True if there are events after its end.
    pub has_more: bool,
    /// The contradiction that makes it a failure.
    pub contradiction: Option<&'static str>,
    /// Contradictions, and events outside of the protocol.
    pub problems: Vec<String>,
}

/// The end of a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum End {
    /// None: it is truncated.
    #[default]
    Missing,
    /// The terminal event of a success, or a finished reply.
    Success,
    /// A failure with its code, or data outside of the protocol, without one.
    Failure(Option<String>),
}

/// The end of a response as a client acts upon it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// None, or one without a reason.
    Missing,
    /// The answer is complete.
    Complete,
    /// The answer is truncated for this reason.
    Incomplete(Reason),
    /// A reason that the protocol does not have.
    Other(String),
    /// An error.
    Failure,
}

/// The reason of an incomplete answer.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The limit on the output.
    MaxOutputTokens,
    /// A filter, or a refusal of the model.
    ContentFilter,
}

/// A function call.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The name of the function.
    pub name: String,
    /// JSON.
    pub arguments: String,
}

impl Reading {
    /// Parses a body, which is a JSON object or else a stream of events. It is only a success with
    /// `pictures` pictures.
    pub fn of(protocol: Protocol, body: &[u8], is_whole: bool, pictures: u32) -> Self {
        let read = json::read(body).or_else(|error| match protocol {
            Protocol::Images => json::read(&images::without_line_breaks(body)),
            _ => Err(error),
        });
        match read {
            Ok(reply @ Value::Object(_)) if is_whole => Self::of_reply(protocol, &reply),
            Ok(Value::Object(_)) => Self::default(),
            _ => Self::of_stream(protocol, body, is_whole, pictures),
        }
    }

    /// Parses a response to a client, by its status and its content type. It has one picture.
    pub fn of_response(client: Protocol, response: &Response) -> Self {
        let body = &response.body;
        let mut reading = if response.is_stream() {
            Self::of_stream(client, body, response.is_complete(), 1)
        } else {
            match serde_json::from_slice(body) {
                Ok(error) if response.status != 200 => Self::of_error(&error),
                Ok(reply) => Self::of_reply(client, &reply),
                Err(error) => Self::of_problem(format!("a reply that is no JSON: {error}")),
            }
        };
        if !response.is_complete() && reading.end == End::Success {
            reading.problem("a success in a truncated body");
        }
        reading
    }

    /// Parses the body of an error status.
    fn of_error(body: &Value) -> Self {
        let mut reading = Self {
            end: End::Failure(None),
            ..Self::default()
        };
        reading.check_message(&body["error"]);
        reading
    }

    fn of_problem(what: String) -> Self {
        Self {
            problems: vec![what],
            ..Self::default()
        }
    }

    fn of_reply(protocol: Protocol, reply: &Value) -> Self {
        let mut reading = Self {
            usage: Usage::of(&reply["usage"]),
            ..Self::default()
        };
        reading.name(&reply["model"]);
        let is_finished = match protocol {
            Protocol::Responses => responses::reply(reply, &mut reading),
            Protocol::Chat => chat::reply(reply, &mut reading),
            Protocol::Messages => messages::reply(reply, &mut reading),
            Protocol::Images => images::reply(reply, &mut reading),
        };
        if is_finished {
            reading.end = End::Success;
        }
        reading.take_failure(protocol, reply);
        reading
    }

    /// Parses a stream up to the first event that ends it.
    fn of_stream(protocol: Protocol, body: &[u8], is_whole: bool, pictures: u32) -> Self {
        let mut stream: Box<dyn Stream> = match protocol {
            Protocol::Responses => Box::<responses::Stream>::default(),
            Protocol::Chat => Box::<chat::Stream>::default(),
            Protocol::Messages => Box::<messages::Stream>::default(),
            Protocol::Images => Box::new(images::Stream::new(pictures)),
        };
        let mut reading = Self::default();
        for data in events(body) {
            if reading.end != End::Missing {
                reading.has_more = true;
                reading.problem(format!(
                    "an event after the end: {}",
                    String::from_utf8_lossy(&data)
                ));
                break;
            }
            reading.take_event(protocol, &data, &mut *stream);
            reading.events += 1;
        }
        stream.finish(is_whole, &mut reading);
        reading
    }

    fn take_event(&mut self, protocol: Protocol, data: &[u8], stream: &mut dyn Stream) {
        let text = || String::from_utf8_lossy(data);
        if data.trim_ascii() == b"[DONE]" {
            if data != b"[DONE]" {
                self.problem(format!("not quite [DONE]: {:?}", text()));
            }
            return stream.done(self);
        }
        let exact = serde_json::from_slice(data);
        if !matches!(exact, Ok(Value::Object(_))) {
            self.problem(format!("an event that is no JSON object: {}", text()));
        }
        match exact.or_else(|_| json::read(data)) {
            Ok(event @ Value::Object(_)) => {
                if !self.take_failure(protocol, &event) {
                    stream.event(&event, self);
                }
            }
            _ => self.end = End::Failure(None),
        }
    }

    /// Takes the failure in a reply or in an event; returns false without a failure.
    fn take_failure(&mut self, protocol: Protocol, object: &Value) -> bool {
        let error = match &object["response"]["error"] {
            Value::Null => &object["error"],
            error => error,
        };
        let is_error = !matches!(error, Value::Null | Value::Bool(false));
        let is_marked = object["type"] == "error"
            || object["object"] == "error"
            || object["type"] == "response.failed";
        if !is_error && !is_marked {
            return false;
        }
        let flat = if error.is_object() { error } else { object };
        let code = flat["code"].as_str().or(flat["type"].as_str());
        self.end = End::Failure(code.map(str::to_owned));
        // Only an event of Responses may be the error itself.
        let is_flat = protocol == Protocol::Responses;
        self.check_message(if is_flat { flat } else { error });
        true
    }

    fn check_message(&mut self, error: &Value) {
        if json::text(error, "message").is_empty() {
            self.problem(format!("an error without a message: {error}"));
        }
    }

    /// Fails if it is a success that contradicts itself. One changed byte may be meant as a
    /// contradiction or as a form that is tolerated, so this is for other changes only.
    #[must_use]
    pub fn checked(mut self) -> Self {
        if self.contradiction.is_some() {
            self.end = End::Failure(None);
        }
        self
    }

    /// Returns the end for a client that knows the documented reasons alone.
    pub fn ending(&self, client: Protocol) -> Ending {
        match (&self.end, Finish::documented(client, &self.word)) {
            (End::Failure(_), _) => Ending::Failure,
            (End::Missing, _) => Ending::Missing,
            (End::Success, None) if self.word.is_empty() => Ending::Missing,
            (End::Success, None) => Ending::Other(self.word.clone()),
            (End::Success, Some(Finish::Whole | Finish::Calls)) => Ending::Complete,
            (End::Success, Some(Finish::Cut)) => Ending::Incomplete(Reason::MaxOutputTokens),
            (End::Success, Some(Finish::Filtered)) => Ending::Incomplete(Reason::ContentFilter),
        }
    }

    /// Notes the meaning of a word for the end.
    fn finish(&mut self, protocol: Protocol, word: &str) {
        let finish = Finish::of(protocol, word);
        self.is_cut |= finish == Some(Finish::Cut);
        self.is_incomplete |= finish == Some(Finish::Cut);
        self.is_filtered |= finish == Some(Finish::Filtered);
    }

    fn name(&mut self, model: &Value) {
        self.models.extend(model.as_str().map(str::to_owned));
    }

    /// Takes a call, whose name and arguments have to be texts.
    fn call(&mut self, name: &Value, arguments: &Value) {
        match (name.as_str(), arguments.as_str()) {
            (Some(name), Some(arguments)) => self.calls.push(Call {
                name: name.into(),
                arguments: arguments.into(),
            }),
            _ => self.problem(format!("a call of {name} with arguments {arguments}")),
        }
    }

    fn problem(&mut self, what: impl Into<String>) {
        self.problems.push(what.into());
    }

    /// Notes the result of a check; the first contradiction is kept.
    fn check<T>(&mut self, result: Result<T, &'static str>) {
        self.contradiction = self.contradiction.or(result.err());
    }

    /// Compares a streamed text with the text of the event at its end.
    fn agree(&mut self, what: &str, streamed: &str, closing: &str) {
        if streamed != closing {
            self.problem(format!(
                "{what}: {streamed:?} was streamed, {closing:?} is at the end"
            ));
        }
    }
}

/// The events of a protocol.
trait Stream {
    /// Takes an event, which is not a failure.
    fn event(&mut self, event: &Value, reading: &mut Reading);

    /// Takes `[DONE]`, which most protocols do not have.
    fn done(&mut self, reading: &mut Reading) {
        reading.problem("[DONE] without a finish reason");
        reading.end = End::Failure(None);
    }

    /// Takes the end of the body.
    fn finish(&mut self, _is_whole: bool, _reading: &mut Reading) {}
}

#[cfg(test)]
mod tests;
