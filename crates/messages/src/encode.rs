//! Encodes model output as the events of a stream, always within the stream grammar.

use serde_json::{Value, json};
use wire::{ApiError, Object};

use crate::arguments::Arguments;
use crate::event::{
    BlockDelta, BlockStart, BlockStop, Delta, Event, InputJsonDelta, MessageDelta, MessageStart,
    Plain, SignatureDelta, StopDelta, StreamFailure, TextDelta, ThinkingDelta, UsageDelta,
};
use crate::input::input;
use crate::response::{
    Block, Message, RedactedThinkingBlock, StopReason, TextBlock, ThinkingBlock, ToolUseBlock,
    Usage,
};

/// The fields that identify a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The id of the message, `msg_…`.
    pub id: String,
    /// The id of the model, as requested.
    pub model: String,
}

/// Encodes model output as events.
///
/// Any order of calls yields a stream within the grammar: the message and its blocks are opened and
/// closed automatically, and calls after the terminal event have no effect. The input of a tool
/// call is streamed as it arrives and always ends as a JSON object, whatever the model wrote,
/// unless the model was truncated within it.
#[derive(Debug)]
pub struct Encoder {
    head: Head,
    input_tokens: u64,
    blocks: u32,
    open: Option<Open>,
    called: bool,
    refused: bool,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    Before,
    Started,
    Ended,
}

/// The content of the open block.
#[derive(Debug, PartialEq)]
enum Open {
    Text,
    Refusal,
    Thinking,
    SignedThinking,
    RedactedThinking,
    /// A tool call, with its arguments so far.
    Call(Arguments),
}

impl Encoder {
    /// Creates an encoder that has emitted nothing yet. If known, the prompt's token count is
    /// reported in `message_start`.
    #[must_use]
    pub fn new(head: Head, input_tokens_at_start: Option<u64>) -> Self {
        Self {
            head,
            input_tokens: input_tokens_at_start.unwrap_or_default(),
            blocks: 0,
            open: None,
            called: false,
            refused: false,
            state: State::Before,
        }
    }

    /// Opens the stream. Optional: the first output opens it as well.
    pub fn open(&mut self, out: &mut Vec<Event>) {
        if self.state == State::Before {
            self.state = State::Started;
            out.push(Event::MessageStart(MessageStart::new(self.blank())));
        }
    }

    /// Appends output text.
    pub fn text(&mut self, text: &str, out: &mut Vec<Event>) {
        self.push_text(Open::Text, text, out);
    }

    /// Appends reasoning text.
    pub fn reasoning(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.accepts(text) {
            self.open_thinking(out);
            self.delta(Delta::Thinking(ThinkingDelta::new(text.to_owned())), out);
        }
    }

    /// Ends the thinking block with its signature. Opens an empty thinking block if none is open.
    pub fn signature(&mut self, signature: &str, out: &mut Vec<Event>) {
        if self.accepts(signature) {
            self.open_thinking(out);
            self.push_signature(signature, out);
            self.open = Some(Open::SignedThinking);
        }
    }

    /// Adds a block of redacted thinking, which only the model can decrypt.
    pub fn redacted_thinking(&mut self, data: &str, out: &mut Vec<Event>) {
        if self.accepts(data) {
            let thinking = RedactedThinkingBlock::new(data.to_owned());
            self.open_block(
                Open::RedactedThinking,
                Block::RedactedThinking(thinking),
                out,
            );
        }
    }

    /// Appends refusal text, in a text block of its own.
    pub fn refusal(&mut self, text: &str, out: &mut Vec<Event>) {
        self.refused |= !text.is_empty();
        self.push_text(Open::Refusal, text, out);
    }

    /// Starts a tool call.
    pub fn call(&mut self, id: &str, name: &str, out: &mut Vec<Event>) {
        if self.state != State::Ended {
            let mut call = ToolUseBlock::new(id.to_owned(), name.to_owned(), input(""));
            call.extra
                .insert("caller".to_owned(), json!({"type": "direct"}));
            self.open_block(Open::Call(Arguments::default()), Block::ToolUse(call), out);
            self.called = true;
        }
    }

    /// Appends to the arguments of the last call. Has no effect once another block has started.
    ///
    /// A JSON object is emitted as it arrives. Other text is held back until the call ends, and
    /// then emitted as the field `_raw`. Nothing is completed: end the stream with
    /// [`fail`](Self::fail) if the arguments turn out to be truncated, unless
    /// [`finish`](Self::finish) reports that as the reason.
    pub fn arguments(&mut self, text: &str, out: &mut Vec<Event>) {
        if let Some(Open::Call(arguments)) = &mut self.open {
            let piece = arguments.push(text);
            self.push_input(piece, out);
        }
    }

    /// Emits a ping that keeps the connection alive, if the stream is open.
    pub fn ping(&self, out: &mut Vec<Event>) {
        if self.state == State::Started {
            out.push(Event::Ping(Plain::default()));
        }
    }

    /// Ends the stream successfully. `stop_sequence` is the matched stop sequence, used only if
    /// that is the reason.
    ///
    /// `EndTurn` becomes `Refusal` after a refusal, and `ToolUse` after a call.
    pub fn finish(
        &mut self,
        reason: StopReason,
        stop_sequence: Option<String>,
        usage: Option<Usage>,
        out: &mut Vec<Event>,
    ) {
        if self.state == State::Ended {
            return;
        }
        let reason = match reason {
            StopReason::EndTurn if self.refused => StopReason::Refusal,
            StopReason::EndTurn if self.called => StopReason::ToolUse,
            reason => reason,
        };
        self.open(out);
        self.close_block(reason.is_cut(), out);
        let stop_sequence = stop_sequence.filter(|_| reason == StopReason::StopSequence);
        let delta = StopDelta {
            stop_reason: Some(reason),
            stop_sequence,
            extra: nulls(OF_MESSAGE),
        };
        let known = usage.map(UsageDelta::from).unwrap_or_default();
        let mut usage = UsageDelta {
            extra: nulls(OF_USAGE_DELTA),
            ..known
        };
        usage.extra.extend(known.extra);
        out.push(Event::MessageDelta(MessageDelta::new(delta, usage)));
        out.push(Event::MessageStop(Plain::default()));
        self.state = State::Ended;
    }

    /// Ends the stream with a failure.
    pub fn fail(&mut self, error: &ApiError, out: &mut Vec<Event>) {
        if self.state != State::Ended {
            self.state = State::Ended;
            self.open = None;
            out.push(Event::Error(StreamFailure::new(error.into())));
        }
    }

    fn accepts(&self, text: &str) -> bool {
        !text.is_empty() && self.state != State::Ended
    }

    fn push_text(&mut self, kind: Open, text: &str, out: &mut Vec<Event>) {
        if self.accepts(text) {
            if self.open.as_ref() != Some(&kind) {
                let block = TextBlock {
                    extra: nulls(&["citations"]),
                    ..TextBlock::default()
                };
                self.open_block(kind, Block::Text(block), out);
            }
            self.delta(Delta::Text(TextDelta::new(text.to_owned())), out);
        }
    }

    fn open_thinking(&mut self, out: &mut Vec<Event>) {
        if self.open != Some(Open::Thinking) {
            self.open_block(
                Open::Thinking,
                Block::Thinking(ThinkingBlock::default()),
                out,
            );
        }
    }

    fn push_signature(&self, signature: &str, out: &mut Vec<Event>) {
        self.delta(
            Delta::Signature(SignatureDelta::new(signature.to_owned())),
            out,
        );
    }

    /// Opens a block, closing the open one.
    fn open_block(&mut self, kind: Open, content_block: Block, out: &mut Vec<Event>) {
        self.open(out);
        self.close_block(false, out);
        self.open = Some(kind);
        out.push(Event::BlockStart(BlockStart::new(
            self.blocks,
            content_block,
        )));
    }

    /// Closes the open block, if any. `truncated` is true if the model was truncated within it.
    fn close_block(&mut self, truncated: bool, out: &mut Vec<Event>) {
        match self.open.take() {
            Some(Open::Call(arguments)) => self.push_input(arguments.finish(truncated), out),
            Some(Open::Thinking) => self.push_signature("", out),
            Some(_) => {}
            None => return,
        }
        out.push(Event::BlockStop(BlockStop::new(self.blocks)));
        self.blocks += 1;
    }

    fn push_input(&self, partial_json: String, out: &mut Vec<Event>) {
        if !partial_json.is_empty() {
            self.delta(Delta::InputJson(InputJsonDelta::new(partial_json)), out);
        }
    }

    fn delta(&self, delta: Delta, out: &mut Vec<Event>) {
        out.push(Event::BlockDelta(BlockDelta::new(self.blocks, delta)));
    }

    fn blank(&self) -> Message {
        let mut usage = Usage::new(self.input_tokens, 1);
        usage.extra = nulls(OF_USAGE);
        Message {
            id: self.head.id.clone(),
            kind: Message::KIND.to_owned(),
            role: Message::ROLE.to_owned(),
            model: self.head.model.clone(),
            usage,
            extra: nulls(OF_MESSAGE),
            ..Message::default()
        }
    }
}

/// Returns members without a value, which the vendor's schema requires nevertheless.
fn nulls(names: &[&str]) -> Object {
    let member = |name: &&str| ((*name).to_owned(), Value::Null);
    names.iter().map(member).collect()
}

/// The members of an answer that are about the vendor's own services, in its schema of November 2026
/// (<https://docs.anthropic.com/en/api/messages>).
const OF_MESSAGE: &[&str] = &["container", "stop_details"];
const OF_USAGE: &[&str] = &[
    "cache_creation",
    "inference_geo",
    "output_tokens_details",
    "server_tool_use",
    "service_tier",
];
const OF_USAGE_DELTA: &[&str] = &["output_tokens_details", "server_tool_use"];

impl From<Usage> for UsageDelta {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: Some(usage.input_tokens),
            cache_creation_input_tokens: Some(usage.cache_creation_input_tokens),
            cache_read_input_tokens: Some(usage.cache_read_input_tokens),
            output_tokens: usage.output_tokens,
            extra: usage.extra,
        }
    }
}
