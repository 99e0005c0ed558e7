//! Parses the streams and complete replies of upstreams into neutral events.
//!
//! Upstreams bend their protocols, so they are read with the lenient readers of the protocol crates.

mod call_sequencer;
mod readers;
mod stream_parser;

use engine::{EngineError, TextEvent, Usage};
use vendor::{ErrorMarkers, Protocol, engine_error, unreadable, usage};
use wire::lenient::Halves;

use self::stream_parser::StreamParser;

/// Parses the stream of an upstream.
///
/// An event that fails produces no neutral events, and neither does any event after the end or a
/// failure.
#[derive(Debug)]
pub struct Reader {
    parser: Parser,
    halves: Halves,
    state: State,
}

#[derive(Debug)]
enum Parser {
    Responses(StreamParser<responses::lenient::Reader>),
    Chat(StreamParser<chat::lenient::Reader>),
    Messages(StreamParser<messages::lenient::Reader>),
}

#[derive(Debug, PartialEq)]
enum State {
    Reading,
    Finished,
    Failed,
}

impl Reader {
    /// Creates a reader for a stream of `protocol`.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        let parser = match protocol {
            Protocol::Responses => Parser::Responses(StreamParser::default()),
            Protocol::Chat => Parser::Chat(StreamParser::default()),
            Protocol::Messages => Parser::Messages(StreamParser::default()),
        };
        Self {
            parser,
            halves: Halves::default(),
            state: State::Reading,
        }
    }

    /// Parses the data of one server-sent event and appends its neutral events. Ignores data after
    /// the end or a failure.
    ///
    /// # Errors
    /// The failure that the upstream reports, or [`EngineError::Upstream`] when the data is not a
    /// valid event of the protocol.
    pub fn event(&mut self, data: &[u8], out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let data = trimmed(data);
        if data.is_empty() {
            return Ok(());
        }
        self.advance(out, |parser, halves, out| {
            match halves.join(data).map_err(engine_error)? {
                None => parser.event(data, out),
                Some(joined) => parser.event(&joined, out),
            }
        })
    }

    /// Handles the end of the body. A Chat Completions stream with a finish reason is complete
    /// without `[DONE]`.
    ///
    /// # Errors
    /// [`EngineError::Truncated`] when the stream is not complete.
    pub fn end(&mut self, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        self.advance(out, |parser, _, out| parser.end(out))?;
        match self.state {
            State::Finished => Ok(()),
            _ => Err(EngineError::Truncated(
                "the stream ended without a terminal event".to_owned(),
            )),
        }
    }

    /// Returns true if [`TextEvent::Finished`] was emitted.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// Returns the token usage that the upstream has reported so far, also after a failure.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.parser.usage()
    }

    fn advance(
        &mut self,
        out: &mut Vec<TextEvent>,
        parse: impl FnOnce(&mut Parser, &mut Halves, &mut Vec<TextEvent>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        if self.state != State::Reading {
            return Ok(());
        }
        let before = out.len();
        let result = parse(&mut self.parser, &mut self.halves, out);
        let is_end = matches!(out[before..].last(), Some(TextEvent::Finished { .. }));
        let result = result.and_then(|()| match is_end {
            true => self.halves.finish().map_err(engine_error),
            false => Ok(()),
        });
        if result.is_err() {
            self.state = State::Failed;
            out.truncate(before);
        } else if is_end {
            self.state = State::Finished;
        }
        result
    }
}

impl Parser {
    fn event(&mut self, data: &[u8], out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        match self {
            Self::Responses(parser) => parser.event(data, out),
            Self::Chat(parser) => parser.event(data, out),
            Self::Messages(parser) => parser.event(data, out),
        }
    }

    fn usage(&self) -> Option<Usage> {
        match self {
            Self::Responses(parser) => parser.usage(),
            Self::Chat(parser) => parser.usage(),
            Self::Messages(parser) => parser.usage(),
        }
    }

    fn end(&mut self, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        match self {
            Self::Responses(parser) => parser.end(out),
            Self::Chat(parser) => parser.end(out),
            Self::Messages(parser) => parser.end(out),
        }
        Ok(())
    }
}

/// Parses the body of a reply with status 200 into the events that its stream would contain.
///
/// # Errors
/// The failure that the upstream reports if the body is an error object, or
/// [`EngineError::Upstream`] when it is not a complete reply of the protocol.
pub fn reply(protocol: Protocol, body: &[u8]) -> Result<Vec<TextEvent>, EngineError> {
    ErrorMarkers::read(body)?;
    let read = match protocol {
        Protocol::Responses => stream_parser::reply::<responses::lenient::Reader>(body),
        Protocol::Chat => stream_parser::reply::<chat::lenient::Reader>(body),
        Protocol::Messages => stream_parser::reply::<messages::lenient::Reader>(body),
    };
    read.map_err(|error| unreadable(body, error))
}

/// Returns the token usage that a complete reply reports, also one that [`reply`] rejects.
#[must_use]
pub fn usage_of_reply(protocol: Protocol, body: &[u8]) -> Option<Usage> {
    let body = vendor::text(body).ok()?;
    let tokens = match protocol {
        Protocol::Responses => responses::lenient::reported_tokens(body),
        Protocol::Chat => chat::lenient::reported_tokens(body),
        Protocol::Messages => messages::lenient::reported_tokens(body),
    };
    tokens.map(usage)
}

/// Strips the white space that JSON allows around a value, which excludes the form feed.
fn trimmed(data: &[u8]) -> &[u8] {
    let is_content = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = data.iter().position(is_content).unwrap_or(data.len());
    let end = data
        .iter()
        .rposition(is_content)
        .map_or(start, |last| last + 1);
    &data[start..end]
}
