//! The stream grammar as a state machine, and the fold that assembles a stream into its message.
//!
//! ```text
//! stream = message_start block* message_delta message_stop
//!        | … error                                at any point before message_stop
//! block  = start delta* stop                      index 0, 1, 2, …; one open at a time
//! delta  = text                                   of a text block
//!        | thinking* signature?                   of a thinking block
//!        | input_json*                            of a tool_use block: together one JSON object, or nothing
//! ```
//!
//! A ping may occur anywhere after `message_start`, and an event or a delta of an unrecognized type
//! anywhere. The last call may be incomplete if the stop reason shows that the model was truncated.
//! See <https://docs.anthropic.com/en/docs/build-with-claude/streaming>.

use wire::Json;

use crate::ErrorDetail;
use crate::event::{BlockDelta, BlockStart, Delta, Event, MessageDelta, MessageStart, UsageDelta};
use crate::input::{input, is_object};
use crate::response::{Block, Message, Usage};

/// A state machine that checks a stream against the grammar, event by event.
#[derive(Clone, Debug, Default)]
pub struct Grammar {
    state: State,
    /// Number of closed blocks.
    blocks: u32,
    /// True if the last closed block is a call with incomplete input.
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
    Stopping,
    /// After the terminal event.
    Ended,
}

/// The open block.
#[derive(Clone, Debug)]
enum Open {
    Text,
    Thinking {
        signed: bool,
    },
    /// A call, with the text of its input so far.
    ToolUse(String),
    RedactedThinking,
    Other,
}

wire::text_enum! {
    /// A violation of the stream grammar.
    #[non_exhaustive]
    pub enum Offence {
        Opening = "an event before message_start, or a message_start that is repeated or has content",
        /// A block that starts within another, at the wrong index, or after `message_delta`.
        BlockStart = "a block that starts out of order",
        /// A delta for a block that is not open, or of the wrong type for the block.
        Delta = "a delta that does not belong to the open block",
        Signature = "a second signature, or thinking after the signature",
        BlockStop = "the end of a block that is not open",
        /// A call whose input is not a JSON object, although the model was not truncated within it.
        Input = "a call whose input is not a JSON object",
        MessageDelta = "a message_delta within a block, a second one, or one without a stop reason",
        Unfinished = "a message_stop before message_delta",
        AfterEnd = "an event after the terminal event",
        Truncated = "the stream ended without a terminal event: neither message_stop nor an error",
    }
}

impl std::error::Error for Offence {}

impl Grammar {
    /// Checks the next event.
    ///
    /// # Errors
    /// Returns the violation, if any. The state machine is unusable afterwards.
    pub fn push(&mut self, event: &Event) -> Result<(), Offence> {
        match (&mut self.state, event) {
            (State::Ended, _) => return Err(Offence::AfterEnd),
            (_, Event::Error(_)) | (State::Stopping, Event::MessageStop(_)) => {
                self.state = State::Ended;
            }
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

    /// Returns true if the terminal event was received.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// Returns [`Offence::Truncated`] if no terminal event was received.
    pub fn finish(self) -> Result<(), Offence> {
        if self.is_ended() {
            Ok(())
        } else {
            Err(Offence::Truncated)
        }
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
            Block::Thinking(_) => Open::Thinking { signed: false },
            Block::RedactedThinking(_) => Open::RedactedThinking,
            Block::Other(_) => Open::Other,
        });
        Ok(())
    }

    fn delta(&mut self, delta: &MessageDelta) -> Result<(), Offence> {
        let reason = delta
            .delta
            .stop_reason
            .as_ref()
            .ok_or(Offence::MessageDelta)?;
        if self.incomplete && !reason.is_cut() {
            return Err(Offence::Input);
        }
        self.state = State::Stopping;
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
            (Self::Thinking { signed: false }, Delta::Thinking(_)) => Ok(()),
            (Self::Thinking { signed }, Delta::Signature(_)) if !*signed => {
                *signed = true;
                Ok(())
            }
            (Self::Thinking { .. }, Delta::Thinking(_) | Delta::Signature(_)) => {
                Err(Offence::Signature)
            }
            _ => Err(Offence::Delta),
        }
    }

    fn is_incomplete(&self) -> bool {
        matches!(self, Self::ToolUse(pieces) if !pieces.trim().is_empty() && !is_object(pieces))
    }
}

/// Assembles a stream into its message.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    grammar: Grammar,
    message: Option<Message>,
    /// The input text of the open call.
    pieces: String,
    failure: Option<Box<ErrorDetail>>,
}

/// The reason why a stream yields no message.
pub type StreamError = wire::StreamError<Offence, Box<ErrorDetail>>;

impl Fold {
    /// Adds the next event.
    ///
    /// # Errors
    /// Returns an error if the event violates the grammar.
    pub fn push(&mut self, event: &Event) -> Result<(), StreamError> {
        self.grammar.push(event).map_err(StreamError::Offence)?;
        match event {
            Event::MessageStart(MessageStart { message, .. }) => {
                self.message = Some(message.clone());
            }
            Event::Error(failure) => self.failure = Some(Box::new(failure.error.clone())),
            _ => {
                if let Some(message) = &mut self.message {
                    add(event, message, &mut self.pieces);
                }
            }
        }
        Ok(())
    }

    /// Returns the message, once the stream has ended.
    ///
    /// # Errors
    /// Returns an error if the stream failed or has no terminal event.
    pub fn finish(self) -> Result<Message, StreamError> {
        if let Some(failure) = self.failure {
            return Err(StreamError::Failed(failure));
        }
        self.grammar.finish().map_err(StreamError::Offence)?;
        self.message.ok_or(StreamError::Offence(Offence::Truncated))
    }
}

/// Adds an event to the message. The grammar guarantees that it belongs to the last block.
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
            if let Some(block) = message
                .content
                .last_mut()
                .filter(|_| !text.trim().is_empty())
            {
                set_input(block, input(&text));
            }
        }
        Event::MessageDelta(delta) => {
            message.stop_reason.clone_from(&delta.delta.stop_reason);
            message.stop_sequence.clone_from(&delta.delta.stop_sequence);
            message.extra.extend(delta.delta.extra.clone());
            message.usage.update(&delta.usage);
        }
        _ => {}
    }
}

fn add_delta(delta: &BlockDelta, block: &mut Block, pieces: &mut String) {
    match (&delta.delta, block) {
        (Delta::Text(delta), Block::Text(block)) => block.text.push_str(&delta.text),
        (Delta::Thinking(delta), Block::Thinking(block)) => {
            block.thinking.push_str(&delta.thinking);
        }
        (Delta::Signature(delta), Block::Thinking(block)) => {
            block.signature.push_str(&delta.signature);
        }
        (Delta::InputJson(delta), _) => pieces.push_str(&delta.partial_json),
        _ => {}
    }
}

/// Sets the input of a call. The calls of the vendor's own tools are streamed in fragments as well.
fn set_input(block: &mut Block, input: Json) {
    match block {
        Block::ToolUse(call) => call.input = input,
        Block::Other(members) => {
            members.insert("input".to_owned(), input.value());
        }
        _ => {}
    }
}

impl Usage {
    /// Replaces the counts that `delta` has.
    pub fn update(&mut self, delta: &UsageDelta) {
        let set = |count: &mut u64, new: Option<u64>| *count = new.unwrap_or(*count);
        set(&mut self.input_tokens, delta.input_tokens);
        set(
            &mut self.cache_creation_input_tokens,
            delta.cache_creation_input_tokens,
        );
        set(
            &mut self.cache_read_input_tokens,
            delta.cache_read_input_tokens,
        );
        self.output_tokens = delta.output_tokens;
        self.extra.extend(delta.extra.clone());
    }
}
