#![doc = include_str!("../README.md")]

mod chat;
mod forms;
mod frequent_reply;
mod image_scanner;
mod images;
mod messages;
mod response_pictures;
mod responses;
pub mod seals;

use std::ops::ControlFlow;

use bytes::Bytes;
use engine::{EngineError, Usage};
use sse::{Decoder, EventName, Limits};
use vendor::{MAX_EVENT, engine_error, in_stream, malformed, unreadable};
use wire::lenient::{Halves, TextPlace, Values, Varying};
use wire::{ApiError, Splice};

pub use self::chat::Chat;
use self::forms::Forms;
pub use self::image_scanner::ImageScanner;
pub use self::images::{Images, pictures_of_reply, reply_as_stream};
pub use self::messages::Messages;
pub use self::responses::{Responses, background_reply};
use self::seals::Marker;

/// A protocol that can be relayed: its grammar and its edits.
pub trait RelayProtocol: Send {
    /// True if events are named after their `type`, false if they are unnamed. Some clients
    /// dispatch on the name, others on the `type`, so both have to agree.
    const NAMED: bool = true;

    /// The members that may differ between the events that continue one text.
    const VARYING: &'static [Varying] = &[];

    /// Reads the data of the next event, and records its edits. `model` is the name that the client
    /// knows, as JSON.
    ///
    /// # Errors
    /// When it contradicts an earlier event, or reports a failure.
    fn event(
        &mut self,
        data: &str,
        model: &[u8],
        edits: &mut Splice<'_>,
    ) -> Result<Action, EngineError>;

    /// Returns the place of the text that the last event, which has this data, continues. `None` if
    /// it does anything else, or if its edits depend on the values of [`RelayProtocol::VARYING`].
    fn text_place(&self, data: &str) -> Option<TextPlace> {
        let _ = data;
        None
    }

    /// Reads another event of the form of the one that continued the text at this place, which has
    /// these values of [`RelayProtocol::VARYING`]. Returns false, and reads nothing, if it has to be
    /// read as any event, because it may be an error or need other edits by now.
    fn continue_text(&mut self, place: TextPlace, values: &Values<'_>) -> bool {
        let _ = (place, values);
        false
    }

    /// Returns true if the events so far have content, or the end of it. Until then nothing is lost
    /// if another upstream answers instead: events that only open a stream, report its progress or
    /// keep it alive are no content.
    fn has_content(&self) -> bool;

    /// Handles the end of the body. May append a missing terminal event to `out`.
    ///
    /// # Errors
    /// When the stream is not complete.
    fn end(&mut self, out: &mut Vec<u8>) -> Result<End, EngineError>;

    /// Returns the token usage that the events so far have reported.
    fn usage(&self) -> Option<Usage>;

    /// Returns the length of all texts, thoughts and arguments of the events so far, in bytes.
    fn content_length(&self) -> u64 {
        0
    }

    /// Returns the images of the events so far.
    fn pictures(&self) -> Delivered {
        Delivered::default()
    }

    /// Returns the token usage that a complete reply reports, also one that
    /// [`RelayProtocol::reply`] rejects.
    fn usage_of_reply(body: &[u8]) -> Option<Usage>;

    /// Writes the failure event that ends a stream whose events so far were all forwarded.
    fn fail(&mut self, model: &str, error: &ApiError, out: &mut Vec<u8>);

    /// Marks the seals of the events from now on, if the protocol has any.
    fn mark_seals(&mut self, marker: Marker) {
        let _ = marker;
    }

    /// Writes a keep-alive event or comment.
    fn keep_alive(&self, out: &mut Vec<u8>) {
        sse::comment("keep-alive", out);
    }

    /// Parses a complete reply with status 200, and records its edits in `splice`.
    ///
    /// # Errors
    /// When it is not a reply of this protocol, or reports a failure.
    fn reply(body: &[u8], model: &str, splice: &mut Splice<'_>) -> Result<End, EngineError>;

    /// Reads and edits a complete reply of the most frequent form in one pass. Returns `None` for
    /// every other form. [`RelayProtocol::reply`] accepts every body that this function accepts,
    /// with the same end and the same edits.
    #[must_use]
    fn frequent_reply(_body: &[u8], _model: &str) -> Option<(Vec<u8>, End)> {
        None
    }
}

/// The handling of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// It is forwarded, with its edits.
    Forward,
    /// It is dropped.
    Drop,
    /// It is forwarded, and ends the answer successfully.
    End(End),
}

/// The successful end of a stream or a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// True if the answer was truncated.
    pub incomplete: bool,
    /// The token usage, if the upstream reported it.
    pub usage: Option<Usage>,
}

/// The images of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// The number of complete images.
    pub count: u64,
    /// Width and height, such as `1024x1024`; blank if the answer does not state them.
    pub size: String,
    /// The quality, such as `high`; blank if the answer does not state it.
    pub quality: String,
}

/// Validates the events of an upstream and forwards them.
///
/// ```
/// use sluicegate_relay::{Chat, Guard};
///
/// let (mut guard, mut out) = (Guard::new(Chat::default(), "ours".to_owned()), Vec::new());
/// let chunk = br#"data: {"object":"chat.completion.chunk","model":"theirs","#;
/// guard.feed(chunk[..].into(), &mut out).unwrap();
/// assert!(out.is_empty());
/// // An event is forwarded when it is complete, with the model's name in the client's request.
/// guard.feed("\"choices\":[]}\n\n".into(), &mut out).unwrap();
/// let event = br#"data: {"object":"chat.completion.chunk","model":"ours","choices":[]}"#;
/// assert_eq!(out, [&event[..], b"\n\n"].concat());
/// // The stream ends without a finish reason.
/// assert!(guard.finish(&mut out).is_err());
/// ```
#[derive(Debug)]
pub struct Guard<S> {
    decoder: Decoder,
    relayed: Relayed<S>,
    ended: bool,
    /// The number of events that were read.
    events: u64,
}

/// The state that the relay of an event needs and changes.
#[derive(Debug)]
struct Relayed<S> {
    protocol: S,
    /// The model's name in the client's request, as text and as JSON.
    model: (String, Vec<u8>),
    forms: Forms,
    halves: Halves,
}

impl<S: RelayProtocol> Guard<S> {
    /// Creates a guard that reports `model` as the model's name to the client.
    #[must_use]
    pub fn new(protocol: S, model: String) -> Self {
        let limits = Limits {
            line: MAX_EVENT,
            event: MAX_EVENT,
        };
        let json = json_string(&model);
        Self {
            decoder: Decoder::with_limits(limits),
            relayed: Relayed {
                protocol,
                model: (model, json),
                forms: Forms::new(),
                halves: Halves::default(),
            },
            ended: false,
            events: 0,
        }
    }

    /// Creates a guard that parses every event, to compare others with it.
    #[doc(hidden)]
    #[must_use]
    pub fn that_parses_all(protocol: S, model: String) -> Self {
        let mut this = Self::new(protocol, model);
        this.relayed.forms = Forms::none();
        this
    }

    /// Adds bytes from the upstream and appends the events that they complete to `out`. Bytes after
    /// the end are discarded.
    ///
    /// # Errors
    /// When an event violates the grammar or reports a failure. `out` then holds the events before
    /// it, and the caller reports the failure with [`Guard::fail`].
    pub fn feed(&mut self, bytes: Bytes, out: &mut Vec<u8>) -> Result<Option<End>, EngineError> {
        if self.ended {
            return Ok(None);
        }
        let read = self.decoder.each(bytes, |event| {
            self.events += 1;
            match self.relayed.event(&event, out) {
                Ok(Action::End(end)) => ControlFlow::Break(Ok(end)),
                Ok(Action::Forward | Action::Drop) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(Err(error)),
            }
        });
        match read.map_err(malformed)? {
            ControlFlow::Continue(()) => Ok(None),
            ControlFlow::Break(end) => {
                let end = end?;
                self.ended = true;
                Ok(Some(end))
            }
        }
    }

    /// Returns the token usage that the upstream has reported so far, for a stream that does not
    /// reach its end.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.relayed.protocol.usage()
    }

    /// Returns the length of all texts, thoughts and arguments that were read, in bytes, for a stream
    /// that does not report its usage.
    #[must_use]
    pub fn content_length(&self) -> u64 {
        self.relayed.protocol.content_length()
    }

    /// Returns the complete images that were read.
    #[must_use]
    pub fn pictures(&self) -> Delivered {
        self.relayed.protocol.pictures()
    }

    /// Returns the number of events that were read.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns true if the events so far have content, or the end of it.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.ended || self.relayed.protocol.has_content()
    }

    /// Returns the number of events and comments that were read. Servers that think for minutes
    /// send some that have no content.
    #[must_use]
    pub fn signs_of_life(&self) -> u64 {
        self.events + self.decoder.comments()
    }

    /// Returns the bytes of the incomplete event that are buffered.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.decoder.buffered()
    }

    /// Handles the end of the body of a stream that has not ended yet.
    ///
    /// # Errors
    /// When the stream is not complete.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<End, EngineError> {
        self.relayed.halves.finish().map_err(engine_error)?;
        let end = self.relayed.protocol.end(out)?;
        self.ended = true;
        Ok(end)
    }

    /// Writes the failure event that ends the stream. Does nothing if the stream has ended.
    pub fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        if !self.ended {
            self.ended = true;
            let Relayed {
                protocol, model, ..
            } = &mut self.relayed;
            protocol.fail(&model.0, &in_stream(error), out);
        }
    }

    /// Writes a keep-alive event or comment.
    pub fn keep_alive(&self, out: &mut Vec<u8>) {
        self.relayed.protocol.keep_alive(out);
    }
}

impl<S: RelayProtocol> Relayed<S> {
    /// Validates an event and appends it to `out`.
    fn event(&mut self, event: &sse::Event<'_>, out: &mut Vec<u8>) -> Result<Action, EngineError> {
        if event.is_replaced() {
            return Err(malformed("invalid UTF-8"));
        }
        let data = event.data();
        if data.is_empty() {
            return Ok(Action::Drop);
        }
        let is_whole = self.halves.is_empty();
        if is_whole && self.forms.relay(&mut self.protocol, event, &data, out) {
            return Ok(Action::Forward);
        }
        match self.halves.join(data.as_bytes()).map_err(engine_error)? {
            None => self.read(event, &data, false, out),
            Some(joined) => {
                let joined = String::from_utf8(joined).map_err(malformed)?;
                self.read(event, &joined, true, out)
            }
        }
    }

    /// Validates an event that no form recognizes, and appends it to `out`. `is_joined` is true if
    /// `data` differs from the data that the upstream sent.
    fn read(
        &mut self,
        event: &sse::Event<'_>,
        data: &str,
        is_joined: bool,
        out: &mut Vec<u8>,
    ) -> Result<Action, EngineError> {
        let mut edits = Splice::new(data.as_bytes());
        let action = self.protocol.event(data, &self.model.1, &mut edits)?;
        self.check_end(action)?;
        if action != Action::Drop {
            let renamed = corrected_name(&event.name(), data, S::NAMED)
                .or_else(|| is_joined.then(|| event.name().into()));
            if action == Action::Forward && renamed.is_none() {
                self.forms.learn(&self.protocol, event, data, &edits);
            }
            write(event, data, &edits, renamed, out);
        }
        Ok(action)
    }

    /// Checks that no text is incomplete at the end.
    fn check_end(&self, action: Action) -> Result<(), EngineError> {
        match action {
            Action::End(_) => self.halves.finish().map_err(engine_error),
            Action::Forward | Action::Drop => Ok(()),
        }
    }
}

/// Returns a complete reply for the client: the upstream's bytes with the closed list of edits.
///
/// # Errors
/// When it is not a reply of this protocol, or reports a failure.
pub fn reply<S: RelayProtocol>(body: &[u8], model: &str) -> Result<(Vec<u8>, End), EngineError> {
    if let Some(frequent) = S::frequent_reply(body, model) {
        return Ok(frequent);
    }
    let mut splice = Splice::new(body);
    let end = S::reply(body, model, &mut splice);
    let end = end.map_err(|error| unreadable(body, error))?;
    Ok((splice.to_vec(), end))
}

/// Returns the correct name of an event with a wrong one. The `type` decides; an event without a
/// type keeps its name.
fn corrected_name(name: &str, data: &str, named: bool) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: Option<String>,
    }
    if !named {
        return (name != DEFAULT_NAME).then(String::new);
    }
    // Fast path: nearly every event starts with its type.
    let rest = data
        .strip_prefix(r#"{"type":"#)
        .map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
    let rest = rest.and_then(|rest| rest.strip_prefix('"')?.strip_prefix(name));
    if rest.is_some_and(|rest| rest.starts_with('"')) {
        return None;
    }
    serde_json::from_str::<Kind>(data)
        .ok()?
        .kind
        .filter(|kind| kind != name)
}

/// Appends an event with its edits, and with a new name if one is given.
fn write(
    event: &sse::Event<'_>,
    data: &str,
    splice: &Splice<'_>,
    renamed: Option<String>,
    out: &mut Vec<u8>,
) {
    let raw = event.raw();
    if let Some(name) = renamed {
        encode(&name, splice, out);
    } else if splice.is_empty() {
        out.extend_from_slice(raw);
    } else if let Some(line) = event
        .data_range()
        .filter(|line| raw[line.clone()] == *data.as_bytes())
    {
        out.extend_from_slice(&raw[..line.start]);
        splice.write(out);
        out.extend_from_slice(&raw[line.end..]);
    } else {
        // The data spans several lines, which JSON allows at its white space, or invalid UTF-8 was
        // replaced.
        encode(&event.name(), splice, out);
    }
}

/// Appends an event encoded from its name and data.
fn encode(name: &str, splice: &Splice<'_>, out: &mut Vec<u8>) {
    let name = EventName::new(name)
        .ok()
        .filter(|_| !matches!(name, "" | DEFAULT_NAME));
    sse::encode(name, &String::from_utf8_lossy(&splice.to_vec()), out);
}

/// Writes counts into the usage at `path`, under these names.
fn write_counts(path: &[&str], names: [&str; 3], counts: [u64; 3], edits: &mut Splice<'_>) {
    let counts = counts.map(|count| count.to_string());
    let mut missing = Vec::new();
    for (name, count) in names.into_iter().zip(&counts) {
        if !edits.replace(&[path, &[name]].concat(), count.as_bytes()) {
            missing.push((name, count.as_str()));
        }
    }
    edits.add_missing(path, &missing);
}

/// The text of a complete reply.
fn utf8(body: &[u8]) -> Result<&str, EngineError> {
    std::str::from_utf8(body)
        .map_err(|error| EngineError::Upstream(format!("malformed reply: {error}")))
}

fn json_string(text: &str) -> Vec<u8> {
    wire::Json::from(serde_json::Value::from(text))
        .text()
        .as_bytes()
        .to_vec()
}

/// The name of an event without an `event` field.
const DEFAULT_NAME: &str = "message";
