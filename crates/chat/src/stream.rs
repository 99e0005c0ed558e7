//! The grammar of a stream as a state machine, and the fold from a stream to the completion that it amounts to.
//!
//! ```text
//! stream = first delta* last usage? [DONE]         one answer; several may interleave
//!        | … error                                 anywhere before the end
//! first  = role, perhaps with text                 once for each answer, in the order of their index
//! delta  = text | thoughts | refusal | calls       calls open in the order of their index
//! last   = finish_reason                           nothing of that answer after it
//! usage  = no choices, the usage                   at most once, after every answer's last
//! ```
//!
//! See spec §6.2 and wire-reference §2.4.

use std::fmt;

use wire::{ErrorBody, Object};

use crate::event::{Chunk, ChunkChoice, Event, FunctionDelta, ToolCallDelta};
use crate::request::{FunctionCall, FunctionToolCall, ToolCall};
use crate::response::{Choice, ChoiceMessage, Completion};

/// Reads along with a stream and says when it leaves the grammar.
#[derive(Clone, Debug, Default)]
pub struct Grammar {
    identity: Option<(String, i64, String)>,
    answers: Vec<Answer>,
    usage_told: bool,
    ended: bool,
}

#[derive(Clone, Debug, Default)]
struct Answer {
    calls: u32,
    finished: bool,
}

/// How a stream leaves the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offence {
    /// A chunk with another id, time or model than the first.
    Identity,
    /// An answer that begins without a role, or whose index skips one.
    Opening,
    /// A role after the first chunk of an answer.
    RepeatedRole,
    /// Something new of an answer after its finish reason.
    AfterFinish,
    /// A call whose index skips one, that opens without id and name, or that repeats them.
    Call,
    /// Usage before every answer has finished, or twice.
    Usage,
    /// Anything after the end.
    AfterEnd,
    /// `[DONE]` before every answer has finished.
    Unfinished,
    /// No end: neither `[DONE]` nor an error.
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
        if self.ended {
            return Err(Offence::AfterEnd);
        }
        match event {
            Event::Chunk(chunk) => self.chunk(chunk),
            Event::Error(_) => {
                self.ended = true;
                Ok(())
            }
            Event::Done if self.all_finished() => {
                self.ended = true;
                Ok(())
            }
            Event::Done => Err(Offence::Unfinished),
        }
    }

    /// Whether the end was seen.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether every answer has finished, so that `[DONE]` may follow.
    #[must_use]
    pub fn may_end(&self) -> bool {
        !self.ended && self.all_finished()
    }

    /// Takes the end of the bytes.
    ///
    /// # Errors
    /// [`Offence::Truncated`] when the stream had not ended.
    pub fn finish(self) -> Result<(), Offence> {
        if self.ended { Ok(()) } else { Err(Offence::Truncated) }
    }

    fn all_finished(&self) -> bool {
        !self.answers.is_empty() && self.answers.iter().all(|answer| answer.finished)
    }

    fn chunk(&mut self, chunk: &Chunk) -> Result<(), Offence> {
        match &self.identity {
            Some((id, created, model)) if (id, created, model) != (&chunk.id, &chunk.created, &chunk.model) => {
                return Err(Offence::Identity);
            }
            Some(_) => {}
            None => self.identity = Some((chunk.id.clone(), chunk.created, chunk.model.clone())),
        }
        if matches!(chunk.usage, Some(Some(_))) || chunk.choices.is_empty() {
            return self.usage(chunk);
        }
        chunk.choices.iter().try_for_each(|choice| self.choice(choice))
    }

    fn usage(&mut self, chunk: &Chunk) -> Result<(), Offence> {
        if self.usage_told || !self.all_finished() || !chunk.choices.is_empty() {
            return Err(Offence::Usage);
        }
        // With `null` for it, it is still to come.
        self.usage_told = chunk.usage != Some(None);
        Ok(())
    }

    fn choice(&mut self, choice: &ChunkChoice) -> Result<(), Offence> {
        let (at, open) = (choice.index as usize, self.answers.len());
        match &choice.delta.role {
            Some(_) if at == open && at < MAX_ANSWERS => self.answers.push(Answer::default()),
            Some(_) if at < open => return Err(Offence::RepeatedRole),
            None if at < open => {}
            _ => return Err(Offence::Opening),
        }
        let answer = &mut self.answers[at];
        if answer.finished || self.usage_told {
            return Err(Offence::AfterFinish);
        }
        choice.delta.tool_calls.iter().flatten().try_for_each(|call| answer.call(call))?;
        answer.finished = choice.finish_reason.is_some();
        Ok(())
    }
}

impl Answer {
    fn call(&mut self, call: &ToolCallDelta) -> Result<(), Offence> {
        let named = call.function.as_ref().is_some_and(|function| function.name.is_some());
        match (call.id.is_some(), named) {
            (true, true) if call.index == self.calls => {
                self.calls += 1;
                Ok(())
            }
            (false, false) if call.index < self.calls => Ok(()),
            _ => Err(Offence::Call),
        }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Identity => "a chunk with another id, time or model than the first",
            Self::Opening => "an answer that begins without a role or out of order",
            Self::RepeatedRole => "a role after the first chunk of an answer",
            Self::AfterFinish => "something new after the finish reason",
            Self::Call => "a piece of a call that was not opened, or opened twice",
            Self::Usage => "usage before the end or twice",
            Self::AfterEnd => "something after the end of the stream",
            Self::Unfinished => "[DONE] before the finish reason",
            Self::Truncated => "no [DONE] and no error at the end of the stream",
        })
    }
}

impl std::error::Error for Offence {}

/// Gathers a stream into the completion that it amounts to.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    grammar: Grammar,
    completion: Option<Completion>,
    failure: Option<ErrorBody>,
}

/// Why a stream amounts to no completion.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamError {
    /// It left the grammar.
    Offence(Offence),
    /// It told of a failure.
    Failed(ErrorBody),
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
            Event::Chunk(chunk) => self.chunk(chunk),
            Event::Error(body) => self.failure = Some(body.clone()),
            Event::Done => {}
        }
        Ok(())
    }

    /// The completion, once the stream has ended.
    ///
    /// # Errors
    /// When the stream failed or did not end.
    pub fn finish(self) -> Result<Completion, StreamError> {
        if let Some(body) = self.failure {
            return Err(StreamError::Failed(body));
        }
        self.grammar.finish().map_err(StreamError::Offence)?;
        let mut completion = self.completion.ok_or(StreamError::Offence(Offence::Truncated))?;
        for choice in &mut completion.choices {
            let message = &mut choice.message;
            // The opening chunk has an empty text before it is known whether there will be any.
            if message.content.as_deref() == Some("") && (!message.tool_calls.is_empty() || message.refusal.is_some()) {
                message.content = None;
            }
        }
        Ok(completion)
    }

    fn chunk(&mut self, chunk: &Chunk) {
        let completion = self.completion.get_or_insert_with(|| Completion {
            id: chunk.id.clone(),
            object: Completion::OBJECT.to_owned(),
            created: chunk.created,
            model: chunk.model.clone(),
            choices: Vec::new(),
            usage: None,
            extra: Object::new(),
        });
        completion.extra.extend(chunk.extra.clone());
        completion.usage = chunk.usage.flatten().or(completion.usage);
        for choice in &chunk.choices {
            // The grammar has seen to it that answers open in order.
            if choice.index as usize == completion.choices.len() {
                completion.choices.push(blank(choice.index));
            }
            if let Some(answer) = completion.choices.get_mut(choice.index as usize) {
                add(choice, answer);
            }
        }
    }
}

fn blank(index: u32) -> Choice {
    let message = ChoiceMessage {
        role: "assistant".to_owned(),
        content: None,
        reasoning_content: None,
        refusal: None,
        tool_calls: Vec::new(),
        extra: Object::new(),
    };
    Choice { index, message, logprobs: None, finish_reason: None, extra: Object::new() }
}

fn add(piece: &ChunkChoice, answer: &mut Choice) {
    let (delta, message) = (&piece.delta, &mut answer.message);
    append(&mut message.content, delta.content.as_deref());
    append(&mut message.reasoning_content, delta.reasoning_content.as_deref());
    append(&mut message.refusal, delta.refusal.as_deref());
    message.extra.extend(delta.extra.clone());
    for call in delta.tool_calls.iter().flatten() {
        add_call(call, &mut message.tool_calls);
    }
    answer.extra.extend(piece.extra.clone());
    answer.finish_reason = piece.finish_reason.clone().or(answer.finish_reason.take());
}

fn append(text: &mut Option<String>, more: Option<&str>) {
    if let Some(more) = more {
        text.get_or_insert_default().push_str(more);
    }
}

fn add_call(piece: &ToolCallDelta, calls: &mut Vec<ToolCall>) {
    let FunctionDelta { name, arguments } = piece.function.clone().unwrap_or_default();
    let arguments = arguments.unwrap_or_default();
    match calls.get_mut(piece.index as usize) {
        Some(ToolCall::Function(call)) => call.function.arguments.push_str(&arguments),
        Some(_) => {}
        None => calls.push(ToolCall::Function(FunctionToolCall {
            id: piece.id.clone().unwrap_or_default(),
            function: FunctionCall { name: name.unwrap_or_default(), arguments },
            extra: piece.extra.clone(),
        })),
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offence(offence) => offence.fmt(f),
            Self::Failed(body) => write!(f, "the stream failed: {}", body.error.message),
        }
    }
}

impl std::error::Error for StreamError {}

/// As many answers as a request may ask for.
const MAX_ANSWERS: usize = 128;
