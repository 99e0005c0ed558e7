//! From what a model does to the events of a stream, never outside the grammar.

use wire::{ApiError, Object};

use crate::event::{Chunk, ChunkChoice, Delta, Event, FunctionDelta, ToolCallDelta};
use crate::response::{FinishReason, Usage};

/// What every chunk of a stream repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// `chatcmpl-…`.
    pub id: String,
    /// When the completion was begun, in Unix seconds.
    pub created: i64,
    /// The model that the caller asked for.
    pub model: String,
}

/// Turns what a model does into events.
///
/// Any order of calls gives a stream within the grammar: the opening chunk comes by itself, and after the end
/// nothing more is said.
#[derive(Debug)]
pub struct Encoder {
    head: Head,
    include_usage: bool,
    calls: u32,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    Before,
    Open,
    Ended,
}

impl Encoder {
    /// An encoder before its first event. With `include_usage` the stream tells the usage at its end.
    #[must_use]
    pub fn new(head: Head, include_usage: bool) -> Self {
        Self { head, include_usage, calls: 0, state: State::Before }
    }

    /// Opens the stream; by itself with the first thing that is said otherwise.
    pub fn open(&mut self, out: &mut Vec<Event>) {
        if self.state == State::Before {
            self.state = State::Open;
            let delta = Delta { role: Some("assistant".to_owned()), content: Some(String::new()), ..Delta::default() };
            out.push(self.chunk(delta, None));
        }
    }

    /// More of the answer.
    pub fn text(&mut self, text: &str, out: &mut Vec<Event>) {
        self.delta(Delta { content: some(text), ..Delta::default() }, out);
    }

    /// More of the thoughts.
    pub fn reasoning(&mut self, text: &str, out: &mut Vec<Event>) {
        self.delta(Delta { reasoning_content: some(text), ..Delta::default() }, out);
    }

    /// More of a refusal.
    pub fn refusal(&mut self, text: &str, out: &mut Vec<Event>) {
        self.delta(Delta { refusal: some(text), ..Delta::default() }, out);
    }

    /// A call begins.
    pub fn call(&mut self, id: &str, name: &str, out: &mut Vec<Event>) {
        let function = FunctionDelta { name: Some(name.to_owned()), arguments: Some(String::new()) };
        let call = ToolCallDelta {
            index: self.calls,
            id: Some(id.to_owned()),
            kind: Some("function".to_owned()),
            function: Some(function),
            extra: Object::new(),
        };
        self.delta(Delta { tool_calls: Some(vec![call]), ..Delta::default() }, out);
        self.calls += 1;
    }

    /// More of the arguments of the call that began last.
    pub fn arguments(&mut self, text: &str, out: &mut Vec<Event>) {
        let Some(index) = self.calls.checked_sub(1).filter(|_| !text.is_empty()) else { return };
        let function = FunctionDelta { name: None, arguments: some(text) };
        let call = ToolCallDelta { index, function: Some(function), ..ToolCallDelta::default() };
        self.delta(Delta { tool_calls: Some(vec![call]), ..Delta::default() }, out);
    }

    /// The end, with success.
    pub fn finish(&mut self, reason: FinishReason, usage: Option<Usage>, out: &mut Vec<Event>) {
        if self.state == State::Ended {
            return;
        }
        self.open(out);
        out.push(self.chunk(Delta::default(), Some(reason)));
        if let Some(usage) = usage.filter(|_| self.include_usage) {
            let mut chunk = self.blank();
            chunk.usage = Some(Some(usage));
            out.push(Event::Chunk(chunk));
        }
        out.push(Event::Done);
        self.state = State::Ended;
    }

    /// The end, with failure.
    pub fn fail(&mut self, error: &ApiError, out: &mut Vec<Event>) {
        if self.state != State::Ended {
            self.state = State::Ended;
            out.push(Event::Error(error.body()));
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<Event>) {
        if self.state != State::Ended && delta != Delta::default() {
            self.open(out);
            out.push(self.chunk(delta, None));
        }
    }

    fn chunk(&self, delta: Delta, finish_reason: Option<FinishReason>) -> Event {
        let choice = ChunkChoice { index: 0, delta, logprobs: None, finish_reason, extra: Object::new() };
        Event::Chunk(Chunk { choices: vec![choice], ..self.blank() })
    }

    fn blank(&self) -> Chunk {
        Chunk {
            id: self.head.id.clone(),
            object: Chunk::OBJECT.to_owned(),
            created: self.head.created,
            model: self.head.model.clone(),
            choices: Vec::new(),
            usage: self.include_usage.then_some(None),
            extra: Object::new(),
        }
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
