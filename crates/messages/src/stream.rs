//! The grammar of a stream as a state machine, and the fold from a stream to the message that it amounts to.
//!
//! ```text
//! stream = message_start block* message_delta message_stop
//!        | … error                                anywhere before the end
//! block  = start delta* stop                      index 0, 1, 2, …; one open at a time
//! delta  = text                                   of a text block
//!        | thoughts* signature?                   of a thinking block
//!        | input_json*                            of a tool_use block: one JSON object in sum, or nothing
//! ```
//!
//! A ping may come anywhere after `message_start`, and an event or a delta of an unknown type anywhere. The last
//! call may be incomplete when the model was cut off, which its stop reason tells. See wire-reference §3.4.

use std::fmt;

use wire::Json;

use crate::ErrorDetail;
use crate::event::{BlockDelta, BlockStart, Delta, Event, MessageDelta, MessageStart, UsageDelta};
use crate::input::{input, is_object};
use crate::response::{Block, Message, Usage};

/// Reads along with a stream and says when it leaves the grammar.
#[derive(Clone, Debug, Default)]
pub struct Grammar {
    state: State,
    /// Blocks that were closed.
    blocks: u32,
    /// Whether the last of them is a call with incomplete input.
    incomplete: bool,
}

#[derive(Clone, Debug, Default)]
enum State {
    /// Before `message_start`.
    #[default]
    Before,
    /// Between two blocks.
    Between,
    /// Within a block.
    Within(Open),
    /// After `message_delta`.
    Told,
    /// After the terminal event.
    Ended,
}

/// The block that is open.
#[derive(Clone, Debug)]
enum Open {
    Text,
    Thinking {
        sealed: bool,
    },
    /// A call, with its input's text so far.
    ToolUse(String),
    RedactedThinking,
    Other,
}

/// How a stream leaves the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offence {
    /// Anything before `message_start`, or a second one, or one that has content already.
    Opening,
    /// A block that opens within another, out of order, or after `message_delta`.
    BlockStart,
    /// A delta of a block that is not open, or of another kind of block.
    Delta,
    /// A second signature, or thoughts after it.
    Signature,
    /// The end of a block that is not open.
    BlockStop,
    /// A call whose input is no JSON object, though the model was not cut off in it.
    Input,
    /// `message_delta` within a block, a second time, or without a stop reason.
    MessageDelta,
    /// `message_stop` before `message_delta`.
    Unfinished,
    /// Anything after the end.
    AfterEnd,
    /// No end: neither `message_stop` nor an error.
    Truncated,
}

impl Grammar {
    /// The grammar before the first event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// How the event leaves the grammar. The machine is then of no more use.
    pub fn push(&mut self, event: &Event) -> Result<(), Offence> {
        match (&mut self.state, event) {
            (State::Ended, _) => return Err(Offence::AfterEnd),
            (_, Event::Error(_)) | (State::Told, Event::MessageStop(_)) => self.state = State::Ended,
            (_, Event::Other(_)) => {}
            (State::Before, Event::MessageStart(start)) if start.message.content.is_empty() => {
                self.state = State::Between;
            }
            (State::Before, _) | (_, Event::MessageStart(_)) => return Err(Offence::Opening),
            (_, Event::Ping(_)) => {}
            (State::Between, Event::BlockStart(start)) => return self.start(start),
            (_, Event::BlockStart(_)) => return Err(Offence::BlockStart),
            (State::Within(open), Event::BlockDelta(delta)) if delta.index == self.blocks => {
                return open.take(&delta.delta);
            }
            (_, Event::BlockDelta(_)) => return Err(Offence::Delta),
            (State::Within(open), Event::BlockStop(stop)) if stop.index == self.blocks => {
                self.incomplete = open.is_incomplete();
                self.blocks += 1;
                self.state = State::Between;
            }
            (_, Event::BlockStop(_)) => return Err(Offence::BlockStop),
            (State::Between, Event::MessageDelta(delta)) => return self.delta(delta),
            (_, Event::MessageDelta(_)) => return Err(Offence::MessageDelta),
            (_, Event::MessageStop(_)) => return Err(Offence::Unfinished),
        }
        Ok(())
    }

    /// Whether the end was seen.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Takes the end of the bytes.
    ///
    /// # Errors
    /// [`Offence::Truncated`] when the stream had not ended.
    pub fn finish(self) -> Result<(), Offence> {
        if self.is_ended() { Ok(()) } else { Err(Offence::Truncated) }
    }

    fn start(&mut self, start: &BlockStart) -> Result<(), Offence> {
        if start.index != self.blocks {
            return Err(Offence::BlockStart);
        }
        if self.incomplete {
            return Err(Offence::Input);
        }
        self.state = State::Within(match &start.content_block {
            Block::Text(_) => Open::Text,
            Block::ToolUse(_) => Open::ToolUse(String::new()),
            Block::Thinking(_) => Open::Thinking { sealed: false },
            Block::RedactedThinking(_) => Open::RedactedThinking,
            Block::Other(_) => Open::Other,
        });
        Ok(())
    }

    fn delta(&mut self, delta: &MessageDelta) -> Result<(), Offence> {
        let reason = delta.delta.stop_reason.as_ref().ok_or(Offence::MessageDelta)?;
        if self.incomplete && !reason.is_cut() {
            return Err(Offence::Input);
        }
        self.state = State::Told;
        Ok(())
    }
}

impl Open {
    fn take(&mut self, delta: &Delta) -> Result<(), Offence> {
        match (self, delta) {
            (Self::Text, Delta::Text(_)) | (Self::Other, _) | (_, Delta::Other(_)) => Ok(()),
            (Self::ToolUse(pieces), Delta::InputJson(piece)) => {
                pieces.push_str(&piece.partial_json);
                Ok(())
            }
            (Self::Thinking { sealed: false }, Delta::Thinking(_)) => Ok(()),
            (Self::Thinking { sealed }, Delta::Signature(_)) if !*sealed => {
                *sealed = true;
                Ok(())
            }
            (Self::Thinking { .. }, Delta::Thinking(_) | Delta::Signature(_)) => Err(Offence::Signature),
            _ => Err(Offence::Delta),
        }
    }

    fn is_incomplete(&self) -> bool {
        matches!(self, Self::ToolUse(pieces) if !pieces.trim().is_empty() && !is_object(pieces))
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opening => "something before message_start, or a message_start that is not the beginning",
            Self::BlockStart => "a block that opens out of order",
            Self::Delta => "a delta that does not belong to the open block",
            Self::Signature => "a second signature, or thoughts after the signature",
            Self::BlockStop => "the end of a block that is not open",
            Self::Input => "a call whose input is no JSON object",
            Self::MessageDelta => "message_delta within a block, twice, or without a stop reason",
            Self::Unfinished => "message_stop before message_delta",
            Self::AfterEnd => "something after the end of the stream",
            Self::Truncated => "no message_stop and no error at the end of the stream",
        })
    }
}

impl std::error::Error for Offence {}

/// Gathers a stream into the message that it amounts to.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    grammar: Grammar,
    message: Option<Message>,
    /// The input's text of the open call.
    pieces: String,
    failure: Option<Box<ErrorDetail>>,
}

/// Why a stream amounts to no message.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamError {
    /// It left the grammar.
    Offence(Offence),
    /// It told of a failure.
    Failed(Box<ErrorDetail>),
}

impl Fold {
    /// The fold of no events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// When the event leaves the grammar.
    pub fn push(&mut self, event: &Event) -> Result<(), StreamError> {
        self.grammar.push(event).map_err(StreamError::Offence)?;
        match event {
            Event::MessageStart(MessageStart { message, .. }) => self.message = Some(message.clone()),
            Event::Error(failure) => self.failure = Some(Box::new(failure.error.clone())),
            _ => {
                if let Some(message) = &mut self.message {
                    add(event, message, &mut self.pieces);
                }
            }
        }
        Ok(())
    }

    /// The message, once the stream has ended.
    ///
    /// # Errors
    /// When the stream failed or did not end.
    pub fn finish(self) -> Result<Message, StreamError> {
        if let Some(failure) = self.failure {
            return Err(StreamError::Failed(failure));
        }
        self.grammar.finish().map_err(StreamError::Offence)?;
        self.message.ok_or(StreamError::Offence(Offence::Truncated))
    }
}

/// Adds an event to the message; the grammar has seen to it that it belongs to the block opened last.
fn add(event: &Event, message: &mut Message, pieces: &mut String) {
    match event {
        Event::BlockStart(start) => message.content.push(start.content_block.clone()),
        Event::BlockDelta(delta) => {
            if let Some(block) = message.content.last_mut() {
                add_delta(delta, block, pieces);
            }
        }
        Event::BlockStop(_) => {
            let text = std::mem::take(pieces);
            if let Some(block) = message.content.last_mut().filter(|_| !text.trim().is_empty()) {
                set_input(block, input(&text));
            }
        }
        Event::MessageDelta(delta) => {
            message.stop_reason.clone_from(&delta.delta.stop_reason);
            message.stop_sequence.clone_from(&delta.delta.stop_sequence);
            message.extra.extend(delta.delta.extra.clone());
            add_usage(&delta.usage, &mut message.usage);
        }
        _ => {}
    }
}

fn add_delta(delta: &BlockDelta, block: &mut Block, pieces: &mut String) {
    match (&delta.delta, block) {
        (Delta::Text(delta), Block::Text(block)) => block.text.push_str(&delta.text),
        (Delta::Thinking(delta), Block::Thinking(block)) => block.thinking.push_str(&delta.thinking),
        (Delta::Signature(delta), Block::Thinking(block)) => block.signature.push_str(&delta.signature),
        (Delta::InputJson(delta), _) => pieces.push_str(&delta.partial_json),
        _ => {}
    }
}

/// Calls of the vendor's own tools are told in pieces as well.
fn set_input(block: &mut Block, input: Json) {
    match block {
        Block::ToolUse(call) => call.input = input,
        Block::Other(members) => {
            members.insert("input".to_owned(), input.value());
        }
        _ => {}
    }
}

fn add_usage(told: &UsageDelta, usage: &mut Usage) {
    let set = |count: &mut u64, told: Option<u64>| *count = told.unwrap_or(*count);
    set(&mut usage.input_tokens, told.input_tokens);
    set(&mut usage.cache_creation_input_tokens, told.cache_creation_input_tokens);
    set(&mut usage.cache_read_input_tokens, told.cache_read_input_tokens);
    usage.output_tokens = told.output_tokens;
    usage.extra.extend(told.extra.clone());
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offence(offence) => offence.fmt(f),
            Self::Failed(error) => write!(f, "the stream failed: {}", error.message),
        }
    }
}

impl std::error::Error for StreamError {}
