//! The same protocol on both sides: what an upstream says goes to the client byte for byte, but for a closed list of
//! edits, while a guard reads the grammar alongside.
//!
//! A [`Guard`] holds at most the one event that is still incomplete. What it lets out are whole events, each as it came
//! but for the model's name. It lets a success out only after it has read the upstream's own, and a failure only once.
//!
//! Sans-IO: bytes go in, bytes come out. See spec §6 and wire-reference §7.1.

mod chat;
mod images;
mod messages;
mod responses;

use std::fmt::Display;

use bytes::Bytes;
use engine::{EngineError, Usage};
use sse::{Decoder, EventName, Limits};
use wire::{ApiError, Splice};

pub use self::chat::Chat;
pub use self::images::{Images, stream_of, usage};
pub use self::messages::Messages;
pub use self::responses::Responses;
use crate::error::in_stream;
use crate::outbound;

/// A protocol that is relayed: its grammar, and what of it is not passed on as it came.
pub trait RelayProtocol: Send {
    /// The longest event that is taken, in bytes.
    const MAX_EVENT: usize = MAX_TEXT_EVENT;
    /// Whether events are named, as their `type` says, or not at all: some clients go by the one, some by the other.
    const NAMED: bool = true;

    /// Reads the data of the next event.
    ///
    /// # Errors
    /// When it leaves the grammar, or tells of a failure.
    fn event(&mut self, data: &str) -> Result<EventAction, EngineError>;

    /// Reads the end of the bytes; what is still missing for a success may be added to `out`.
    ///
    /// # Errors
    /// When the stream has not ended with a success.
    fn end(&mut self, out: &mut Vec<u8>) -> Result<End, EngineError>;

    /// Writes the failure that ends a stream in which all events so far were let out.
    fn fail(&mut self, model: &str, error: &ApiError, out: &mut Vec<u8>);

    /// Writes what keeps a silent stream open.
    fn keep_alive(&self, out: &mut Vec<u8>) {
        sse::comment("keep-alive", out);
    }

    /// Reads a whole reply, of status 200, and marks in `splice` what is edited in it.
    ///
    /// # Errors
    /// When it is no reply of this protocol, or tells of a failure.
    fn reply(body: &[u8], model: &str, splice: &mut Splice<'_>) -> Result<End, EngineError>;
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventAction {
    /// Whether it is let out at all.
    pub passes: bool,
    /// Where it names the model, as a chain of members.
    pub model: Option<&'static [&'static str]>,
    /// What is taken out of it: an object, and members of that.
    pub without: Option<(&'static [&'static str], &'static [&'static str])>,
    /// The end, when it is the success that ends the stream.
    pub end: Option<End>,
}

impl EventAction {
    /// An event that goes out as it came.
    const PLAIN: Self = Self { passes: true, model: None, without: None, end: None };
    /// An event that nobody misses.
    const HELD_BACK: Self = Self { passes: false, ..Self::PLAIN };
}

/// How a stream, or a reply, ended well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Whether the answer was cut.
    pub incomplete: bool,
    /// What it took, when that was told.
    pub usage: Option<Usage>,
}

/// Lets the events of an upstream through.
#[derive(Debug)]
pub struct Guard<S> {
    decoder: Decoder,
    speech: S,
    /// The name that the client asked for, and the same as JSON.
    model: (String, Vec<u8>),
    ended: bool,
}

impl<S: RelayProtocol> Guard<S> {
    /// A guard before the first byte; clients are told that the model is `model`.
    #[must_use]
    pub fn new(speech: S, model: String) -> Self {
        let limits = Limits { line: S::MAX_EVENT, event: S::MAX_EVENT };
        let json = json_string(&model);
        Self { decoder: Decoder::with_limits(limits), speech, model: (model, json), ended: false }
    }

    /// Takes bytes of the upstream and appends the whole events in them to `out`. Bytes after the end are dropped.
    ///
    /// # Errors
    /// When an event leaves the grammar, or tells of a failure. What came before it is in `out`; the failure is still to
    /// be told, by [`Guard::fail`].
    pub fn feed(&mut self, bytes: Bytes, out: &mut Vec<u8>) -> Result<Option<End>, EngineError> {
        if self.ended {
            return Ok(None);
        }
        self.decoder.feed(bytes);
        while let Some(event) = self.decoder.poll() {
            let event = event.map_err(|error| malformed(&error))?;
            if event.is_replaced() {
                return Err(malformed(&"invalid UTF-8"));
            }
            let data = event.data();
            if data.is_empty() {
                continue;
            }
            let heard = self.speech.event(&data)?;
            if heard.passes {
                let name = misnamed(&event.name(), &data, S::NAMED);
                write(&event, &data, &heard, (&self.model.1, name), out);
            }
            if heard.end.is_some() {
                self.ended = true;
                return Ok(heard.end);
            }
        }
        Ok(None)
    }

    /// Takes the end of the bytes, when no end was read before.
    ///
    /// # Errors
    /// When the stream has not ended with a success.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<End, EngineError> {
        let end = self.speech.end(out)?;
        self.ended = true;
        Ok(end)
    }

    /// Writes the failure that ends the stream, once; after an end nothing.
    pub fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        if !self.ended {
            self.ended = true;
            self.speech.fail(&self.model.0, &in_stream(error), out);
        }
    }

    /// Writes what keeps a silent stream open.
    pub fn keep_alive(&self, out: &mut Vec<u8>) {
        self.speech.keep_alive(out);
    }
}

/// A whole reply as the client gets it: the upstream's bytes, but for the closed list of edits.
///
/// # Errors
/// When it is no reply of this protocol, or tells of a failure.
pub fn reply<S: RelayProtocol>(body: &[u8], model: &str) -> Result<(Vec<u8>, End), EngineError> {
    let mut splice = Splice::new(body);
    let end = S::reply(body, model, &mut splice)?;
    Ok((splice.to_vec(), end))
}

/// The name of an event that has another: its `type` decides, and an event without a type has none.
fn misnamed(name: &str, data: &str, named: bool) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: Option<String>,
    }
    if !named {
        return (name != DEFAULT_NAME).then(String::new);
    }
    // As nearly every event begins.
    let rest = data.strip_prefix(r#"{"type":"#).map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
    let rest = rest.and_then(|rest| rest.strip_prefix('"')?.strip_prefix(name));
    if rest.is_some_and(|rest| rest.starts_with('"')) {
        return None;
    }
    serde_json::from_str::<Kind>(data).ok()?.kind.filter(|kind| kind != name)
}

/// Appends an event as it came but for its edits: the model's name, and its own where it is given.
fn write(
    event: &sse::Event<'_>,
    data: &str,
    heard: &EventAction,
    (model, renamed): (&[u8], Option<String>),
    out: &mut Vec<u8>,
) {
    let raw = event.raw();
    let mut splice = Splice::new(data.as_bytes());
    if let Some(path) = heard.model {
        splice.replace(path, model);
    }
    if let Some((path, names)) = heard.without {
        splice.remove(path, names);
    }
    if let Some(name) = renamed {
        anew(&name, &splice, out);
    } else if splice.is_empty() {
        out.extend_from_slice(raw);
    } else if let Some(line) = event.data_range().filter(|line| raw[line.clone()] == *data.as_bytes()) {
        out.extend_from_slice(&raw[..line.start]);
        splice.write(out);
        out.extend_from_slice(&raw[line.end..]);
    } else {
        // The data is spread over several lines, which JSON allows at its white space, or was mended.
        anew(&event.name(), &splice, out);
    }
}

/// Appends an event of this name and nothing else of how it came.
fn anew(name: &str, splice: &Splice<'_>, out: &mut Vec<u8>) {
    let name = EventName::new(name).ok().filter(|_| !matches!(name, "" | DEFAULT_NAME));
    sse::encode(name, &String::from_utf8_lossy(&splice.to_vec()), out);
}

/// Reads an event as its protocol does, unless it tells of a failure.
fn read_event<E, W: Display>(data: &str, read: fn(&str) -> Result<E, W>) -> Result<E, EngineError> {
    outbound::check(data.as_bytes())?;
    read(data).map_err(|error| malformed(&error))
}

/// Reads a whole reply as a type of its protocol, unless it tells of a failure.
fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, EngineError> {
    outbound::check(body)?;
    // As text that was looked over once, its strings need not be looked over one by one.
    let text = std::str::from_utf8(body).map_err(|error| malformed_reply(&error))?;
    serde_json::from_str(text).map_err(|error| malformed_reply(&wire::json_fault(&error)))
}

/// Puts the client's name of the model in the place of the upstream's.
fn rename(splice: &mut Splice<'_>, path: &[&str], from: &str, to: &str) {
    if from != to {
        splice.replace(path, &json_string(to));
    }
}

fn json_string(text: &str) -> Vec<u8> {
    wire::Json::from(serde_json::Value::from(text)).text().as_bytes().to_vec()
}

fn malformed_reply(why: &dyn Display) -> EngineError {
    EngineError::Upstream(format!("malformed reply: {why}"))
}

/// The failure of an upstream that says what its protocol does not have.
fn malformed(why: &dyn Display) -> EngineError {
    EngineError::Upstream(format!("malformed event: {why}"))
}

/// The failure of an upstream whose stream is not what its protocol says. The log tells operators of the way out.
fn strayed(offence: &dyn Display) -> EngineError {
    let advice = "if it always does so, `repair = true` reads its streams and writes them anew";
    EngineError::Upstream(format!("malformed event: {offence}; {advice}"))
}

/// The failure of an upstream whose stream has no end.
fn truncated() -> EngineError {
    EngineError::Truncated("the stream ended without its last event".to_owned())
}

/// The failure of an upstream whose reply has no end.
fn unfinished() -> EngineError {
    EngineError::Truncated("the reply is not finished".to_owned())
}

/// The name of an event that gives none.
const DEFAULT_NAME: &str = "message";
/// The longest event of a text protocol: the last one of Responses holds the whole answer.
const MAX_TEXT_EVENT: usize = 4 << 20;
