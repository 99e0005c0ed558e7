//! The stream grammar as a state machine, and the fold that assembles a stream into its completion.
//!
//! ```text
//! stream = first delta* last usage? [DONE]         one choice; several may interleave
//!        | … error                                 at any point before [DONE]
//! first  = role, optionally with text              once per choice, in the order of their index
//! delta  = text | reasoning | refusal | calls      calls start in the order of their index
//! last   = finish_reason                           no delta of that choice after it
//! usage  = usage without choices                   at most once, after every choice's last
//! ```
//!
//! See <https://platform.openai.com/docs/api-reference/chat-streaming>.

use serde_json::{Value, json};
use wire::ErrorBody;

use crate::event::{CUSTOM, Chunk, ChunkChoice, Event, FunctionDelta, ToolCallDelta};
use crate::logprobs::Logprobs;
use crate::request::{CustomToolCall, FunctionCall, FunctionToolCall, ToolCall};
use crate::response::{Choice, ChoiceMessage, Completion};

/// A state machine that checks a stream against the grammar, event by event.
#[derive(Clone, Debug, Default)]
pub struct Grammar {
    identity: Option<(String, i64, String)>,
    choices: Vec<ChoiceState>,
    usage_received: bool,
    ended: bool,
}

#[derive(Clone, Debug, Default)]
struct ChoiceState {
    calls: u32,
    finished: bool,
}

wire::text_enum! {
    /// A violation of the stream grammar.
    #[non_exhaustive]
    pub enum Offence {
        Identity = "a chunk whose id, creation time or model differs from the first",
        /// A choice that starts without a role, or whose index skips one.
        Opening = "a choice that starts without a role or out of order",
        RepeatedRole = "a role after the first chunk of a choice",
        /// A delta after the finish reason of its choice.
        AfterFinish = "a delta after the finish reason",
        /// A call whose index skips one, that starts without id and name, or that repeats them.
        Call = "a fragment of a call that was not started, or started twice",
        Usage = "usage before every choice has finished, or twice",
        AfterEnd = "an event after the terminal event",
        /// `[DONE]` before every choice has finished.
        Unfinished = "[DONE] before the finish reason",
        Truncated = "the stream ended without a terminal event: neither [DONE] nor an error",
    }
}

impl std::error::Error for Offence {}

impl Grammar {
    /// Checks the next event.
    ///
    /// # Errors
    /// Returns the violation, if any. The state machine is unusable afterwards.
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

    /// Returns true if the terminal event was received.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Returns true if every choice has finished, so that `[DONE]` may follow.
    #[must_use]
    pub fn may_end(&self) -> bool {
        !self.ended && self.all_finished()
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// Returns [`Offence::Truncated`] if no terminal event was received.
    pub fn finish(self) -> Result<(), Offence> {
        if self.ended {
            Ok(())
        } else {
            Err(Offence::Truncated)
        }
    }

    fn all_finished(&self) -> bool {
        !self.choices.is_empty() && self.choices.iter().all(|state| state.finished)
    }

    fn chunk(&mut self, chunk: &Chunk) -> Result<(), Offence> {
        match &self.identity {
            Some((id, created, model))
                if (id, created, model) != (&chunk.id, &chunk.created, &chunk.model) =>
            {
                return Err(Offence::Identity);
            }
            Some(_) => {}
            None => self.identity = Some((chunk.id.clone(), chunk.created, chunk.model.clone())),
        }
        if matches!(chunk.usage, Some(Some(_))) || chunk.choices.is_empty() {
            return self.usage(chunk);
        }
        chunk
            .choices
            .iter()
            .try_for_each(|choice| self.choice(choice))
    }

    fn usage(&mut self, chunk: &Chunk) -> Result<(), Offence> {
        if self.usage_received || !self.all_finished() || !chunk.choices.is_empty() {
            return Err(Offence::Usage);
        }
        // A null usage means that the usage chunk is still to come.
        self.usage_received = chunk.usage != Some(None);
        Ok(())
    }

    fn choice(&mut self, choice: &ChunkChoice) -> Result<(), Offence> {
        let at = choice.index as usize;
        let open = self.choices.len();
        match &choice.delta.role {
            Some(_) if at == open && at < MAX_CHOICES => self.choices.push(ChoiceState::default()),
            Some(_) if at < open => return Err(Offence::RepeatedRole),
            None if at < open => {}
            _ => return Err(Offence::Opening),
        }
        let state = &mut self.choices[at];
        if state.finished || self.usage_received {
            return Err(Offence::AfterFinish);
        }
        choice
            .delta
            .tool_calls
            .iter()
            .flatten()
            .try_for_each(|call| state.call(call))?;
        state.finished = choice.finish_reason.is_some();
        Ok(())
    }
}

impl ChoiceState {
    fn call(&mut self, call: &ToolCallDelta) -> Result<(), Offence> {
        let named = call
            .function
            .as_ref()
            .is_some_and(|function| function.name.is_some())
            || call.custom("name").is_some();
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

/// Assembles a stream into its completion.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    grammar: Grammar,
    completion: Option<Completion>,
    /// The log probabilities of each choice.
    logprobs: Vec<Logprobs>,
    failure: Option<ErrorBody>,
}

/// The reason why a stream yields no completion.
pub type StreamError = wire::StreamError<Offence, ErrorBody>;

impl Fold {
    /// Adds the next event.
    ///
    /// # Errors
    /// Returns an error if the event violates the grammar.
    pub fn push(&mut self, event: &Event) -> Result<(), StreamError> {
        self.grammar.push(event).map_err(StreamError::Offence)?;
        match event {
            Event::Chunk(chunk) => self.chunk(chunk),
            Event::Error(body) => self.failure = Some(body.clone()),
            Event::Done => {}
        }
        Ok(())
    }

    /// Returns the completion, once the stream has ended.
    ///
    /// # Errors
    /// Returns an error if the stream failed or has no terminal event.
    pub fn finish(self) -> Result<Completion, StreamError> {
        if let Some(body) = self.failure {
            return Err(StreamError::Failed(body));
        }
        self.grammar.finish().map_err(StreamError::Offence)?;
        let mut completion = self
            .completion
            .ok_or(StreamError::Offence(Offence::Truncated))?;
        for (choice, logprobs) in completion.choices.iter_mut().zip(&self.logprobs) {
            choice.logprobs = logprobs.json();
            let message = &mut choice.message;
            let calls = std::mem::take(&mut message.tool_calls);
            message.tool_calls = calls.into_iter().map(completed).collect();
            // The opening chunk has empty content, sent before it is known whether any content
            // follows.
            if message.content.as_deref() == Some("")
                && (!message.tool_calls.is_empty() || message.refusal.is_some())
            {
                message.content = None;
            }
        }
        Ok(completion)
    }

    fn chunk(&mut self, chunk: &Chunk) {
        let completion = self.completion.get_or_insert_with(|| {
            let object = Completion::OBJECT.to_owned();
            Completion::new(
                chunk.id.clone(),
                object,
                chunk.created,
                chunk.model.clone(),
                Vec::new(),
            )
        });
        completion.extra.extend(chunk.extra.clone());
        completion.usage = chunk.usage.flatten().or(completion.usage);
        for choice in &chunk.choices {
            // The grammar guarantees that choices start in order.
            if choice.index as usize == completion.choices.len() {
                let message = ChoiceMessage {
                    role: "assistant".to_owned(),
                    ..ChoiceMessage::default()
                };
                completion.choices.push(Choice {
                    index: choice.index,
                    message,
                    ..Choice::default()
                });
                self.logprobs.push(Logprobs::default());
            }
            let logprobs = self.logprobs.get_mut(choice.index as usize);
            if let Some((known, more)) = logprobs.zip(choice.logprobs.as_ref()) {
                known.append(more);
            }
            if let Some(target) = completion.choices.get_mut(choice.index as usize) {
                add(choice, target);
            }
        }
    }
}

fn add(piece: &ChunkChoice, target: &mut Choice) {
    let delta = &piece.delta;
    let message = &mut target.message;
    append(&mut message.content, delta.content.as_deref());
    append(
        &mut message.reasoning_content,
        delta.reasoning_content.as_deref(),
    );
    append(&mut message.refusal, delta.refusal.as_deref());
    for (name, value) in &delta.extra {
        match (message.extra.get_mut(name), value) {
            (Some(Value::Array(list)), Value::Array(more)) => list.extend_from_slice(more),
            _ => {
                message.extra.insert(name.clone(), value.clone());
            }
        }
    }
    for call in delta.tool_calls.iter().flatten() {
        add_call(call, &mut message.tool_calls);
    }
    target.extra.extend(piece.extra.clone());
    target.finish_reason = piece.finish_reason.clone().or(target.finish_reason.take());
}

fn append(text: &mut Option<String>, more: Option<&str>) {
    if let Some(more) = more {
        text.get_or_insert_default().push_str(more);
    }
}

fn add_call(piece: &ToolCallDelta, calls: &mut Vec<ToolCall>) {
    let FunctionDelta { name, arguments } = piece.function.clone().unwrap_or_default();
    let text = |name| piece.custom(name).map(str::to_owned);
    let name = name.or_else(|| text("name"));
    let arguments = arguments.or_else(|| text("input")).unwrap_or_default();
    match calls.get_mut(piece.index as usize) {
        Some(ToolCall::Function(call)) => call.function.arguments.push_str(&arguments),
        Some(_) => {}
        None => calls.push(ToolCall::Function(FunctionToolCall {
            id: piece.id.clone().unwrap_or_default(),
            function: FunctionCall {
                name: name.unwrap_or_default(),
                arguments,
            },
            extra: piece.extra.clone(),
        })),
    }
}

/// Returns a call of a custom tool in its own form. Until the stream ends it is kept as one of a
/// function, whose arguments grow.
fn completed(call: ToolCall) -> ToolCall {
    match call {
        ToolCall::Function(mut call) if call.extra.contains_key(CUSTOM) => {
            call.extra.remove(CUSTOM);
            let FunctionCall { name, arguments } = call.function;
            ToolCall::Custom(CustomToolCall {
                id: call.id,
                custom: json!({ "name": name, "input": arguments }).into(),
                extra: call.extra,
            })
        }
        call => call,
    }
}

/// Maximum number of choices: the largest `n` that a request may have.
const MAX_CHOICES: usize = 128;
