//! Encodes model output as the events of a stream, always within the stream grammar.

use serde_json::json;
use wire::{ApiError, Json, Object};

use crate::event::{CUSTOM, Chunk, ChunkChoice, Delta, Event, FunctionDelta, ToolCallDelta};
use crate::logprobs::Logprobs;
use crate::response::{FinishReason, Usage};

/// The fields that every chunk of a stream repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The id of the completion, `chatcmpl-…`.
    pub id: String,
    /// Creation time, in Unix seconds.
    pub created: i64,
    /// The id of the model, as requested.
    pub model: String,
}

/// Encodes model output as events.
///
/// Any order of calls yields a stream within the grammar: the opening chunk is emitted
/// automatically, and calls after the terminal event have no effect.
#[derive(Debug)]
pub struct Encoder {
    head: Head,
    include_usage: bool,
    calls: u32,
    /// The number of details of the reasoning so far.
    details: u32,
    reasoning: Reasoning,
    /// The log probabilities of the tokens of the next text.
    logprobs: Vec<Json>,
    state: State,
}

/// The reasoning so far.
#[derive(Debug, PartialEq)]
enum Reasoning {
    None,
    /// A text, to which further text is appended.
    Open,
    /// A text that is complete, so that further text is another paragraph.
    Complete,
}

#[derive(Debug, PartialEq)]
enum State {
    Before,
    Open,
    Ended,
}

impl Encoder {
    /// Creates an encoder that has emitted nothing yet. With `include_usage` the stream ends with a
    /// usage chunk.
    #[must_use]
    pub fn new(head: Head, include_usage: bool) -> Self {
        Self {
            head,
            include_usage,
            calls: 0,
            details: 0,
            reasoning: Reasoning::None,
            logprobs: Vec::new(),
            state: State::Before,
        }
    }

    /// Opens the stream. Optional: the first output opens it as well.
    pub fn open(&mut self, out: &mut Vec<Event>) {
        if self.state == State::Before {
            self.state = State::Open;
            let delta = Delta {
                role: Some("assistant".to_owned()),
                content: Some(String::new()),
                ..Delta::default()
            };
            out.push(self.chunk(delta, None));
        }
    }

    /// Adds log probabilities of the tokens of the next output text.
    pub fn logprobs(&mut self, tokens: Vec<Json>) {
        self.logprobs.extend(tokens);
    }

    /// Appends output text.
    pub fn text(&mut self, text: &str, out: &mut Vec<Event>) {
        self.delta(
            Delta {
                content: some(text),
                ..Delta::default()
            },
            out,
        );
    }

    /// Appends reasoning text. Behind the end of a part of the reasoning, a blank line comes first
    /// (<https://github.com/zed-industries/zed/pull/62466>).
    pub fn reasoning(&mut self, text: &str, out: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        if std::mem::replace(&mut self.reasoning, Reasoning::Open) == Reasoning::Complete {
            self.reasoning_delta(PARAGRAPH, out);
        }
        self.reasoning_delta(text, out);
    }

    /// Ends a part of the reasoning, which has a text of its own.
    pub fn end_reasoning(&mut self) {
        if self.reasoning == Reasoning::Open {
            self.reasoning = Reasoning::Complete;
        }
    }

    fn reasoning_delta(&mut self, text: &str, out: &mut Vec<Event>) {
        self.delta(
            Delta {
                reasoning_content: some(text),
                ..Delta::default()
            },
            out,
        );
    }

    /// Adds reasoning that only its server can read, as a detail of the reasoning
    /// (<https://openrouter.ai/docs/use-cases/reasoning-tokens>).
    pub fn encrypted_reasoning(&mut self, data: &str, out: &mut Vec<Event>) {
        let detail = json!({"type": "reasoning.encrypted", "data": data, "index": self.details});
        self.details += 1;
        let members = [("reasoning_details".to_owned(), json!([detail]))];
        self.delta(
            Delta {
                extra: members.into_iter().collect(),
                ..Delta::default()
            },
            out,
        );
    }

    /// Appends refusal text.
    pub fn refusal(&mut self, text: &str, out: &mut Vec<Event>) {
        self.delta(
            Delta {
                refusal: some(text),
                ..Delta::default()
            },
            out,
        );
    }

    /// Starts a tool call.
    pub fn call(&mut self, id: &str, name: &str, out: &mut Vec<Event>) {
        let call = ToolCallDelta {
            id: Some(id.to_owned()),
            kind: Some("function".to_owned()),
            function: Some(FunctionDelta {
                name: Some(name.to_owned()),
                arguments: Some(String::new()),
            }),
            ..ToolCallDelta::new(self.calls)
        };
        self.delta(
            Delta {
                tool_calls: Some(vec![call]),
                ..Delta::default()
            },
            out,
        );
        self.calls += 1;
    }

    /// Starts a call of a custom tool
    /// (<https://platform.openai.com/docs/guides/function-calling#custom-tools>).
    pub fn custom_call(&mut self, id: &str, name: &str, out: &mut Vec<Event>) {
        let custom = json!({ "name": name, "input": "" });
        let call = ToolCallDelta {
            id: Some(id.to_owned()),
            kind: Some(CUSTOM.to_owned()),
            extra: [(CUSTOM.to_owned(), custom)].into_iter().collect(),
            ..ToolCallDelta::new(self.calls)
        };
        self.call_delta(call, out);
        self.calls += 1;
    }

    /// Appends to the input of the last call, which is one of a custom tool.
    pub fn custom_input(&mut self, text: &str, out: &mut Vec<Event>) {
        let Some(index) = self.calls.checked_sub(1).filter(|_| !text.is_empty()) else {
            return;
        };
        let custom = json!({ "input": text });
        let call = ToolCallDelta {
            extra: [(CUSTOM.to_owned(), custom)].into_iter().collect(),
            ..ToolCallDelta::new(index)
        };
        self.call_delta(call, out);
    }

    fn call_delta(&mut self, call: ToolCallDelta, out: &mut Vec<Event>) {
        let delta = Delta {
            tool_calls: Some(vec![call]),
            ..Delta::default()
        };
        self.delta(delta, out);
    }

    /// Appends to the arguments of the last call.
    pub fn arguments(&mut self, text: &str, out: &mut Vec<Event>) {
        let Some(index) = self.calls.checked_sub(1).filter(|_| !text.is_empty()) else {
            return;
        };
        let function = FunctionDelta {
            name: None,
            arguments: some(text),
        };
        let call = ToolCallDelta {
            function: Some(function),
            ..ToolCallDelta::new(index)
        };
        self.delta(
            Delta {
                tool_calls: Some(vec![call]),
                ..Delta::default()
            },
            out,
        );
    }

    /// Ends the stream successfully.
    pub fn finish(&mut self, reason: FinishReason, usage: Option<Usage>, out: &mut Vec<Event>) {
        if self.state == State::Ended {
            return;
        }
        self.open(out);
        out.push(self.chunk(Delta::default(), Some(reason)));
        if let Some(usage) = usage.filter(|_| self.include_usage) {
            out.push(Event::Chunk(Chunk {
                usage: Some(Some(usage)),
                ..self.of_choices(Vec::new())
            }));
        }
        out.push(Event::Done);
        self.state = State::Ended;
    }

    /// Ends the stream with a failure.
    pub fn fail(&mut self, error: &ApiError, out: &mut Vec<Event>) {
        if self.state != State::Ended {
            self.state = State::Ended;
            out.push(Event::Error(error.body()));
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<Event>) {
        if self.state != State::Ended && delta != Delta::default() {
            self.open(out);
            let tokens = match delta.content {
                Some(_) => std::mem::take(&mut self.logprobs),
                None => Vec::new(),
            };
            let mut chunk = self.chunk(delta, None);
            if let (Event::Chunk(chunk), false) = (&mut chunk, tokens.is_empty()) {
                let logprobs = Logprobs::of_text(tokens).json();
                chunk
                    .choices
                    .iter_mut()
                    .for_each(|choice| choice.logprobs.clone_from(&logprobs));
            }
            out.push(chunk);
        }
    }

    fn chunk(&self, delta: Delta, finish_reason: Option<FinishReason>) -> Event {
        let choice = ChunkChoice {
            index: 0,
            delta,
            logprobs: None,
            finish_reason,
            extra: Object::new(),
        };
        Event::Chunk(self.of_choices(vec![choice]))
    }

    fn of_choices(&self, choices: Vec<ChunkChoice>) -> Chunk {
        let Head { id, created, model } = self.head.clone();
        let chunk = Chunk::new(id, Chunk::OBJECT.to_owned(), created, model, choices);
        Chunk {
            usage: self.include_usage.then_some(None),
            ..chunk
        }
    }
}

/// The separator of parts of the reasoning.
const PARAGRAPH: &str = "\n\n";

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
