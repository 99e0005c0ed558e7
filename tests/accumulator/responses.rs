//! Responses.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Answer, Call, index, list, text};

#[derive(Default)]
pub(super) struct Responses {
    items: BTreeMap<u64, Item>,
}

#[derive(Default)]
struct Item {
    call: Option<Call>,
    /// The texts, by their kinds and indexes.
    texts: BTreeMap<(Kind, u64), String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Text,
    Refusal,
    Summary,
    Reasoning,
}

impl Kind {
    /// The kind of text of events with this name, and the name of the index of its part.
    fn of_event(name: &str) -> Option<(Self, &'static str)> {
        Some(match name {
            "output_text" => (Self::Text, "content_index"),
            "refusal" => (Self::Refusal, "content_index"),
            "reasoning_summary_text" => (Self::Summary, "summary_index"),
            "reasoning_text" | "reasoning" => (Self::Reasoning, "content_index"),
            _ => return None,
        })
    }

    fn of_part(part: &Value) -> Option<(Self, &str)> {
        Some(match text(part, "type") {
            "output_text" => (Self::Text, text(part, "text")),
            "refusal" => (Self::Refusal, text(part, "refusal")),
            "summary_text" => (Self::Summary, text(part, "text")),
            "reasoning_text" => (Self::Reasoning, text(part, "text")),
            _ => return None,
        })
    }
}

impl super::Stream for Responses {
    fn add(&mut self, event: &Value, problems: &mut Vec<String>) {
        let kind = text(event, "type");
        if kind == "response.completed" || kind == "response.incomplete" {
            self.end(&event["response"], problems);
            return;
        }
        let Some((name, step)) = kind
            .strip_prefix("response.")
            .and_then(|kind| kind.rsplit_once('.'))
        else {
            return;
        };
        let is_item = matches!(name, "output_item" | "function_call_arguments");
        let part = Kind::of_event(name);
        if !is_item && part.is_none() {
            return;
        }
        let Some(number) = index(event, "output_index", problems) else {
            return;
        };
        let item = self.items.entry(number).or_default();
        match (part, step) {
            (Some((kind, place)), _) => {
                if let Some(place) = index(event, place, problems) {
                    item.text((kind, place), step, event, problems);
                }
            }
            (None, "added") => item.begin(&event["item"]),
            (None, "done") if name == "output_item" => item.complete(&event["item"], problems),
            (None, "delta") => item.call().arguments += text(event, "delta"),
            _ => {}
        }
    }

    fn answers(self: Box<Self>) -> BTreeMap<u64, Answer> {
        let mut answer = Answer::default();
        for item in self.items.into_values() {
            for ((kind, _), text) in item.texts {
                match kind {
                    Kind::Text => answer.text += &text,
                    Kind::Refusal => answer.refusal += &text,
                    Kind::Summary | Kind::Reasoning => answer.reasoning += &text,
                }
            }
            answer.calls.extend(item.call);
        }
        BTreeMap::from([(0, answer)])
    }
}

impl Responses {
    /// Takes the output at the end, which repeats the items of the stream in their order.
    fn end(&mut self, response: &Value, problems: &mut Vec<String>) {
        let output: Vec<_> = list(response, "output").collect();
        if self.items.is_empty() {
            let numbers = 0..output.len() as u64;
            self.items
                .extend(numbers.map(|number| (number, Item::default())));
        }
        if self.items.len() != output.len() {
            problems.push(format!(
                "{} items, and others: {response}",
                self.items.len()
            ));
        }
        for (known, item) in self.items.values_mut().zip(output) {
            known.complete(item, problems);
        }
    }
}

impl Item {
    fn call(&mut self) -> &mut Call {
        self.call.get_or_insert_default()
    }

    fn begin(&mut self, item: &Value) {
        if item["type"] == "function_call" {
            let call = self.call();
            text(item, "call_id").clone_into(&mut call.id);
            text(item, "name").clone_into(&mut call.name);
        }
    }

    fn text(&mut self, place: (Kind, u64), step: &str, event: &Value, problems: &mut Vec<String>) {
        let known = self.texts.entry(place).or_default();
        match step {
            "delta" => *known += text(event, "delta"),
            _ => {
                let complete = [text(event, "text"), text(event, "refusal")].concat();
                agree(known, &complete, problems);
            }
        }
    }

    /// Takes the complete form of the item, which repeats all text that came before.
    fn complete(&mut self, item: &Value, problems: &mut Vec<String>) {
        self.begin(item);
        if let Some(call) = &mut self.call {
            agree(&mut call.arguments, text(item, "arguments"), problems);
        }
        for name in ["summary", "content"] {
            for (part, number) in list(item, name).zip(0..) {
                if let Some((kind, complete)) = Kind::of_part(part) {
                    let known = self.texts.entry((kind, number)).or_default();
                    agree(known, complete, problems);
                }
            }
        }
    }
}

/// Takes a complete text, which begins with its deltas.
fn agree(known: &mut String, complete: &str, problems: &mut Vec<String>) {
    if complete.starts_with(known.as_str()) {
        complete.clone_into(known);
    } else {
        problems.push(format!(
            "{known:?} was streamed, {complete:?} is at the end"
        ));
    }
}
