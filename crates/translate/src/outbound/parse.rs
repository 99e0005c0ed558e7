//! From what an upstream says to what its model does: the events of a stream, and whole replies.
//!
//! Upstreams leave out members that our own protocol types require, so each protocol is read here by small types of
//! its own that ask only for what is needed (wire-reference §2.5, §9.5).

mod call_sequencer;
mod chat;
mod json;
mod messages;
mod responses;

use std::sync::LazyLock;

use engine::{EngineError, TextEvent};
use memchr::memmem::Finder;

pub(crate) use self::chat::check_finish;
use self::json::ErrorMarkers;
use super::Protocol;

/// Listens to the stream of an upstream.
///
/// Nothing is told of an event that fails, and nothing after the end or a failure.
#[derive(Debug)]
pub struct Reader {
    ear: StreamParser,
    state: State,
}

#[derive(Debug)]
enum StreamParser {
    Responses(responses::StreamParser),
    Chat(chat::StreamParser),
    Messages(messages::StreamParser),
}

#[derive(Debug, PartialEq)]
enum State {
    Listening,
    Finished,
    Failed,
}

impl Reader {
    /// A reader before the first event.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        let ear = match protocol {
            Protocol::Responses => StreamParser::Responses(responses::StreamParser::default()),
            Protocol::Chat => StreamParser::Chat(chat::StreamParser::default()),
            Protocol::Messages => StreamParser::Messages(messages::StreamParser::default()),
        };
        Self { ear, state: State::Listening }
    }

    /// Takes the data of one server-sent event and appends what the model did. After the end or a failure the data
    /// is ignored.
    ///
    /// # Errors
    /// What the upstream says of its own failure, or [`EngineError::Upstream`] when the data is no event of the
    /// protocol.
    pub fn event(&mut self, data: &[u8], out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let data = trimmed(data);
        if data.is_empty() {
            return Ok(());
        }
        self.listen(out, |ear, out| ear.event(data, out))
    }

    /// Takes the end of the bytes. A Chat stream that had told its finish reason ends well without `[DONE]`.
    ///
    /// # Errors
    /// [`EngineError::Truncated`] when the upstream had not said that the model was done.
    pub fn end(&mut self, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        self.listen(out, StreamParser::end)?;
        match self.state {
            State::Finished => Ok(()),
            _ => Err(EngineError::Truncated("the stream ended before the model had".to_owned())),
        }
    }

    /// Whether [`TextEvent::Finished`] was told.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    fn listen(
        &mut self,
        out: &mut Vec<TextEvent>,
        take: impl FnOnce(&mut StreamParser, &mut Vec<TextEvent>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        if self.state != State::Listening {
            return Ok(());
        }
        let before = out.len();
        let taken = take(&mut self.ear, out);
        if taken.is_err() {
            self.state = State::Failed;
            out.truncate(before);
        } else if matches!(out[before..].last(), Some(TextEvent::Finished { .. })) {
            self.state = State::Finished;
        }
        taken
    }
}

impl StreamParser {
    fn event(&mut self, data: &[u8], out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        match self {
            Self::Chat(ear) => ear.event(data, out),
            // Some upstreams end every stream with it, whatever the protocol.
            _ if data == DONE => Ok(()),
            Self::Responses(ear) => ear.event(data, out),
            Self::Messages(ear) => ear.event(data, out),
        }
    }

    fn end(&mut self, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        match self {
            Self::Chat(ear) => ear.end(out),
            Self::Responses(_) | Self::Messages(_) => Ok(()),
        }
    }
}

/// Reads the body of a reply with status 200: the same events as the stream of it would give.
///
/// # Errors
/// What the upstream says of its failure when the body is an error object, or [`EngineError::Upstream`] when it is no
/// finished reply of the protocol.
pub fn reply(protocol: Protocol, body: &[u8]) -> Result<Vec<TextEvent>, EngineError> {
    ErrorMarkers::read(body)?;
    match protocol {
        Protocol::Responses => responses::reply(body),
        Protocol::Chat => chat::reply(body),
        Protocol::Messages => messages::reply(body),
    }
}

/// Looks for a failure in an event, or in a whole reply, that is read elsewhere.
///
/// # Errors
/// What the upstream says of its failure, if this is one.
pub(crate) fn check(data: &[u8]) -> Result<(), EngineError> {
    // Every event is asked, and few have the word at all, be it in escapes.
    if TRACES.iter().any(|trace| trace.find(data).is_some()) {
        ErrorMarkers::read(data)?;
    }
    Ok(())
}

/// Without any of these nothing tells of a failure: the word, or an escape in which it may be.
static TRACES: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [Finder::new("error"), Finder::new("\\u")]);

/// `data` without the white space that JSON allows around a value: a form feed is none.
fn trimmed(data: &[u8]) -> &[u8] {
    let is_word = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = data.iter().position(is_word).unwrap_or(data.len());
    let end = data.iter().rposition(is_word).map_or(start, |last| last + 1);
    &data[start..end]
}

/// The data that ends a Chat stream.
const DONE: &[u8] = b"[DONE]";

/// The largest index of an item, a block, an answer or a call, and the most of them in one reply.
const MAX_INDEX: u64 = 127;
