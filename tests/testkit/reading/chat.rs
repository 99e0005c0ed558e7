//! Chat Completions: <https://platform.openai.com/docs/api-reference/chat>.

use serde_json::Value;
use simulator::Protocol;

use super::finish::Finish;
use super::json::{list, text, texts};
use super::{Call, End, Reading, Usage};

/// Parses a completion; returns true if all of its choices are finished.
pub(super) fn reply(completion: &Value, reading: &mut Reading) -> bool {
    for (place, choice) in list(completion, "choices").enumerate() {
        let (message, word) = (&choice["message"], text(choice, "finish_reason"));
        reading.words += &words(message);
        reading.finish(Protocol::Chat, word);
        let calls = list(message, "tool_calls").map(|call| &call["function"]);
        let arguments = calls.clone().filter_map(|call| call["arguments"].as_str());
        reading.check(Finish::checked(Protocol::Chat, word, arguments));
        // Clients ask for one choice, which is the first.
        if place == 0 {
            Content::of(message).add_to(reading);
            calls.for_each(|call| reading.call(&call["name"], &call["arguments"]));
            word.clone_into(&mut reading.word);
        }
    }
    let mut choices = list(completion, "choices").peekable();
    choices.peek().is_some() && choices.all(|choice| choice["finish_reason"].is_string())
}

/// A stream of chunks.
#[derive(Default)]
pub(super) struct Stream {
    calls: Vec<PartialCall>,
    /// True once a choice has a finish reason.
    is_finished: bool,
}

/// A call as far as it is known.
#[derive(Default)]
struct PartialCall {
    choice: u64,
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl super::Stream for Stream {
    fn event(&mut self, chunk: &Value, reading: &mut Reading) {
        reading.name(&chunk["model"]);
        reading.usage = Usage::of(&chunk["usage"]).or(reading.usage);
        list(chunk, "choices").for_each(|choice| self.choice(choice, reading));
    }

    fn done(&mut self, reading: &mut Reading) {
        if self.is_finished {
            reading.end = End::Success;
        } else {
            reading.problem("[DONE] without a finish reason");
            reading.end = End::Failure(None);
        }
    }

    fn finish(&mut self, is_whole: bool, reading: &mut Reading) {
        // A finished stream may lack its terminal event, but only a stream of an upstream.
        if reading.end == End::Missing && self.is_finished && is_whole {
            reading.end = End::Success;
            reading.problem("no [DONE]");
        }
        let calls = self.calls.drain(..).filter(|call| call.choice == 0);
        reading.calls.extend(calls.map(|call| Call {
            name: call.name,
            arguments: call.arguments,
        }));
    }
}

impl Stream {
    fn choice(&mut self, choice: &Value, reading: &mut Reading) {
        let (delta, index) = (&choice["delta"], choice["index"].as_u64().unwrap_or(0));
        let content = Content::of(delta);
        let has_calls = list(delta, "tool_calls").next().is_some();
        if !self.is_finished {
            reading.words += &words(delta);
        } else if has_calls || !content.is_empty() {
            reading.check(Err::<(), _>("content after the end"));
            if index == 0 {
                reading.problem(format!("content after the finish reason: {choice}"));
            }
        }
        if index == 0 {
            content.add_to(reading);
        }
        for call in list(delta, "tool_calls") {
            self.call(index, call, reading);
        }
        let word = text(choice, "finish_reason");
        if !word.is_empty() {
            self.end(index, word, reading);
        }
    }

    fn end(&mut self, choice: u64, word: &str, reading: &mut Reading) {
        let arguments = self.calls.iter().map(|call| call.arguments.as_str());
        reading.check(Finish::checked(Protocol::Chat, word, arguments));
        if !self.is_finished {
            reading.finish(Protocol::Chat, word);
        }
        if choice == 0 {
            word.clone_into(&mut reading.word);
        }
        self.is_finished = true;
    }

    fn call(&mut self, choice: u64, piece: &Value, reading: &mut Reading) {
        let (index, id) = (piece["index"].as_u64(), text(piece, "id"));
        let find = |is_it: &dyn Fn(&PartialCall) -> bool| {
            self.calls
                .iter()
                .rposition(|call| call.choice == choice && is_it(call))
        };
        let place = match index {
            Some(_) => find(&|call| call.index == index),
            None if id.is_empty() => find(&|_| true),
            // Some servers send an id in place of the index.
            None => find(&|call| call.id == id),
        };
        let place = place.unwrap_or_else(|| {
            self.calls.push(PartialCall {
                choice,
                index,
                id: id.to_owned(),
                ..PartialCall::default()
            });
            self.calls.len() - 1
        });
        let (call, function) = (&mut self.calls[place], &piece["function"]);
        // The official SDKs append every text of a delta to the one before.
        call.name += text(function, "name");
        match &function["arguments"] {
            Value::Null => {}
            Value::String(arguments) => call.arguments += arguments,
            other => reading.problem(format!("arguments that are no text: {other}")),
        }
    }
}

/// The content of a message or of a delta.
#[derive(Default)]
struct Content {
    text: String,
    reasoning: String,
}

impl Content {
    fn of(message: &Value) -> Self {
        let mut content = Self::default();
        match &message["content"] {
            Value::Array(parts) => parts.iter().for_each(|part| content.part(part)),
            text => content.text += text.as_str().unwrap_or_default(),
        }
        content.text += text(message, "refusal");
        // Servers that send several of these send the same text in each.
        let thoughts =
            ["reasoning_content", "reasoning", "thinking"].map(|name| text(message, name));
        content.reasoning += thoughts
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        content
    }

    /// Takes a part as Mistral sends it, <https://docs.mistral.ai/capabilities/reasoning/>, or
    /// Databricks, whose thoughts are a summary.
    fn part(&mut self, part: &Value) {
        self.text += text(part, "text");
        for thoughts in [&part["thinking"], &part["summary"]] {
            match thoughts {
                Value::Array(parts) => self
                    .reasoning
                    .extend(parts.iter().map(|part| text(part, "text"))),
                thoughts => self.reasoning += thoughts.as_str().unwrap_or_default(),
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty()
    }

    fn add_to(self, reading: &mut Reading) {
        reading.text += &self.text;
        reading.reasoning += &self.reasoning;
    }
}

/// Reasoning, text, refusal and arguments of a message or of a delta, one after another.
fn words(message: &Value) -> String {
    let parts = list(message, "content").map(|part| text(part, "text"));
    let calls = list(message, "tool_calls").map(|call| text(&call["function"], "arguments"));
    let mut words = texts(message, &["reasoning_content", "content", "refusal"]);
    words.extend(parts.chain(calls));
    words
}
