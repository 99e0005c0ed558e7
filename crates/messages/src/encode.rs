//! From what a model does to the events of a stream, never outside the grammar.

use wire::{ApiError, Object};

use crate::arguments::Arguments;
use crate::event::{
    BlockDelta, BlockStart, BlockStop, Delta, Event, InputJsonDelta, MessageDelta, MessageStart, Plain, SignatureDelta,
    StopDelta, StreamFailure, TextDelta, ThinkingDelta, UsageDelta,
};
use crate::input::input;
use crate::response::{
    Block, Message, RedactedThinkingBlock, StopReason, TextBlock, ThinkingBlock, ToolUseBlock, Usage,
};

/// What a stream says of itself at its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// `msg_…`.
    pub id: String,
    /// The model that the caller asked for.
    pub model: String,
}

/// Turns what a model does into events.
///
/// Any order of calls gives a stream within the grammar: the message and its blocks open and close by themselves,
/// and after the end nothing more is said. The input of a call is told as it comes and is a JSON object in the end,
/// whatever the model wrote, unless the model was cut off in it.
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
    Begun,
    Ended,
}

/// What the open block holds.
#[derive(Debug, PartialEq)]
enum Open {
    Text,
    Refusal,
    Thoughts,
    SealedThoughts,
    RedactedThoughts,
    /// A call, with its arguments so far.
    Call(Arguments),
}

impl Encoder {
    /// An encoder before its first event. The tokens of the prompt are told at the beginning when they are known.
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

    /// Opens the stream; by itself with the first thing that is said otherwise.
    pub fn open(&mut self, out: &mut Vec<Event>) {
        if self.state == State::Before {
            self.state = State::Begun;
            out.push(Event::MessageStart(MessageStart { message: self.blank(), extra: Object::new() }));
        }
    }

    /// More of the answer.
    pub fn text(&mut self, text: &str, out: &mut Vec<Event>) {
        self.words(Open::Text, text, out);
    }

    /// More of the thoughts.
    pub fn reasoning(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.can_say(text) {
            self.think(out);
            let delta = ThinkingDelta { thinking: text.to_owned(), extra: Object::new() };
            self.delta(Delta::Thinking(delta), out);
        }
    }

    /// The model's seal on the thoughts just told, or on thoughts that are not told.
    pub fn signature(&mut self, signature: &str, out: &mut Vec<Event>) {
        if self.can_say(signature) {
            self.think(out);
            self.seal(signature, out);
            self.open = Some(Open::SealedThoughts);
        }
    }

    /// Thoughts that only the model can read, whole, as a block of their own.
    pub fn redacted_thinking(&mut self, data: &str, out: &mut Vec<Event>) {
        if self.can_say(data) {
            let thoughts = RedactedThinkingBlock { data: data.to_owned(), extra: Object::new() };
            self.begin(Open::RedactedThoughts, Block::RedactedThinking(thoughts), out);
        }
    }

    /// More of a refusal: text in a block of its own.
    pub fn refusal(&mut self, text: &str, out: &mut Vec<Event>) {
        self.refused |= !text.is_empty();
        self.words(Open::Refusal, text, out);
    }

    /// A call begins.
    pub fn call(&mut self, id: &str, name: &str, out: &mut Vec<Event>) {
        if self.state != State::Ended {
            let call =
                ToolUseBlock { id: id.to_owned(), name: name.to_owned(), input: input(""), extra: Object::new() };
            self.begin(Open::Call(Arguments::default()), Block::ToolUse(call), out);
            self.called = true;
        }
    }

    /// More of the arguments of the call that began last; once something else was said, it means nothing.
    ///
    /// What can begin a JSON object is told at once. What cannot is held back until the call ends and is then told
    /// as the member `_raw`, with the whole of the arguments; after a whole object it is left out.
    pub fn arguments(&mut self, text: &str, out: &mut Vec<Event>) {
        if let Some(Open::Call(arguments)) = &mut self.open {
            let piece = arguments.push(text).to_owned();
            self.input_piece(piece, out);
        }
    }

    /// Keeps a stream open that has begun and not ended.
    pub fn ping(&self, out: &mut Vec<Event>) {
        if self.state == State::Begun {
            out.push(Event::Ping(Plain::default()));
        }
    }

    /// The end, with success. `stop_sequence` is the stop text that came up, when that is the reason.
    ///
    /// A natural end after a refusal is told as a refusal, and one after a call as waiting for its result.
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
        self.end(reason.is_cut(), out);
        let stop_sequence = stop_sequence.filter(|_| reason == StopReason::StopSequence);
        let delta = StopDelta { stop_reason: Some(reason), stop_sequence, extra: Object::new() };
        let usage = usage.map(UsageDelta::from).unwrap_or_default();
        out.push(Event::MessageDelta(MessageDelta { delta, usage, extra: Object::new() }));
        out.push(Event::MessageStop(Plain::default()));
        self.state = State::Ended;
    }

    /// The end, with failure.
    pub fn fail(&mut self, error: &ApiError, out: &mut Vec<Event>) {
        if self.state != State::Ended {
            self.state = State::Ended;
            self.open = None;
            out.push(Event::Error(StreamFailure { error: error.into(), extra: Object::new() }));
        }
    }

    fn can_say(&self, text: &str) -> bool {
        !text.is_empty() && self.state != State::Ended
    }

    fn words(&mut self, kind: Open, text: &str, out: &mut Vec<Event>) {
        if self.can_say(text) {
            if self.open.as_ref() != Some(&kind) {
                self.begin(kind, Block::Text(TextBlock::default()), out);
            }
            self.delta(Delta::Text(TextDelta { text: text.to_owned(), extra: Object::new() }), out);
        }
    }

    fn think(&mut self, out: &mut Vec<Event>) {
        if self.open != Some(Open::Thoughts) {
            self.begin(Open::Thoughts, Block::Thinking(ThinkingBlock::default()), out);
        }
    }

    fn seal(&self, signature: &str, out: &mut Vec<Event>) {
        let delta = SignatureDelta { signature: signature.to_owned(), extra: Object::new() };
        self.delta(Delta::Signature(delta), out);
    }

    /// Opens a block in the place of the one that is open.
    fn begin(&mut self, kind: Open, content_block: Block, out: &mut Vec<Event>) {
        self.open(out);
        self.end(false, out);
        self.open = Some(kind);
        out.push(Event::BlockStart(BlockStart { index: self.blocks, content_block, extra: Object::new() }));
    }

    /// Closes the open block, if there is one; `cut` when the model was cut off in it.
    fn end(&mut self, cut: bool, out: &mut Vec<Event>) {
        match self.open.take() {
            Some(Open::Call(mut arguments)) => self.input_piece(arguments.finish(cut), out),
            Some(Open::Thoughts) => self.seal("", out),
            Some(_) => {}
            None => return,
        }
        out.push(Event::BlockStop(BlockStop { index: self.blocks, extra: Object::new() }));
        self.blocks += 1;
    }

    fn input_piece(&self, partial_json: String, out: &mut Vec<Event>) {
        if !partial_json.is_empty() {
            self.delta(Delta::InputJson(InputJsonDelta { partial_json, extra: Object::new() }), out);
        }
    }

    fn delta(&self, delta: Delta, out: &mut Vec<Event>) {
        out.push(Event::BlockDelta(BlockDelta { index: self.blocks, delta, extra: Object::new() }));
    }

    fn blank(&self) -> Message {
        Message {
            id: self.head.id.clone(),
            kind: Message::KIND.to_owned(),
            role: Message::ROLE.to_owned(),
            model: self.head.model.clone(),
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            usage: Usage::new(self.input_tokens, 1),
            extra: Object::new(),
        }
    }
}

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
