//! Chat Completions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Answer, Call, index, list, text};

#[derive(Default)]
pub(super) struct Chat {
    choices: BTreeMap<u64, Choice>,
}

#[derive(Default)]
struct Choice {
    answer: Answer,
    calls: BTreeMap<u64, Call>,
}

impl super::Stream for Chat {
    fn add(&mut self, chunk: &Value, problems: &mut Vec<String>) {
        if !chunk["choices"].is_array() {
            problems.push(format!("no list of choices: {chunk}"));
        }
        for choice in list(chunk, "choices") {
            if !choice["delta"].is_object() {
                problems.push(format!("no delta: {choice}"));
            }
            if let Some(number) = index(choice, "index", problems) {
                let known = self.choices.entry(number).or_default();
                known.add(&choice["delta"], problems);
            }
        }
    }

    fn answers(self: Box<Self>) -> BTreeMap<u64, Answer> {
        let answer = |choice: Choice| Answer {
            calls: choice.calls.into_values().collect(),
            ..choice.answer
        };
        let choices = self.choices.into_iter();
        choices
            .map(|(number, choice)| (number, answer(choice)))
            .collect()
    }
}

impl Choice {
    fn add(&mut self, delta: &Value, problems: &mut Vec<String>) {
        if !matches!(delta["content"], Value::Null | Value::String(_)) {
            problems.push(format!("a content that is no text: {delta}"));
        }
        self.answer.text += text(delta, "content");
        self.answer.refusal += text(delta, "refusal");
        // Servers that have several names for it send the same text in each.
        let names = ["reasoning_content", "reasoning", "thinking"];
        let mut reasoning = names.into_iter().map(|name| text(delta, name));
        self.answer.reasoning += reasoning.find(|text| !text.is_empty()).unwrap_or_default();
        for piece in list(delta, "tool_calls") {
            let Some(number) = index(piece, "index", problems) else {
                continue;
            };
            let (call, function) = (self.calls.entry(number).or_default(), &piece["function"]);
            if !matches!(function["arguments"], Value::Null | Value::String(_)) {
                problems.push(format!("arguments that are no text: {piece}"));
            }
            // The SDKs append every text to the one before.
            call.id += text(piece, "id");
            call.name += text(function, "name");
            call.arguments += text(function, "arguments");
        }
    }
}
