//! Messages.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Answer, Call, index, text};

#[derive(Default)]
pub(super) struct Messages {
    blocks: BTreeMap<u64, Block>,
}

struct Block {
    start: Value,
    text: String,
}

impl super::Stream for Messages {
    fn add(&mut self, event: &Value, problems: &mut Vec<String>) {
        match text(event, "type") {
            "content_block_start" => {
                let Some(number) = index(event, "index", problems) else {
                    return;
                };
                let block = Block::start(&event["content_block"]);
                if self.blocks.insert(number, block).is_some() {
                    problems.push(format!("another block with the same index: {event}"));
                }
            }
            "content_block_delta" => {
                let number = index(event, "index", problems);
                match number.and_then(|number| self.blocks.get_mut(&number)) {
                    Some(block) => block.add(&event["delta"], problems),
                    None => problems.push(format!("a delta of no block: {event}")),
                }
            }
            _ => {}
        }
    }

    fn answers(self: Box<Self>) -> BTreeMap<u64, Answer> {
        let mut answer = Answer::default();
        for Block { start, text } in self.blocks.into_values() {
            match super::text(&start, "type") {
                "text" => answer.text += &text,
                "thinking" => answer.reasoning += &text,
                "tool_use" => answer.calls.push(Call {
                    id: super::text(&start, "id").to_owned(),
                    name: super::text(&start, "name").to_owned(),
                    arguments: match (text.as_str(), &start["input"]) {
                        ("", input @ Value::Object(_)) => input.to_string(),
                        ("", _) => "{}".to_owned(),
                        _ => text,
                    },
                }),
                _ => {}
            }
        }
        BTreeMap::from([(0, answer)])
    }
}

impl Block {
    fn start(start: &Value) -> Self {
        let name = match text(start, "type") {
            "thinking" => "thinking",
            _ => "text",
        };
        Self {
            start: start.clone(),
            text: text(start, name).to_owned(),
        }
    }

    /// The SDKs append a delta to its block if the types match, and ignore others.
    fn add(&mut self, delta: &Value, problems: &mut Vec<String>) {
        let kinds = (text(&self.start, "type"), text(delta, "type"));
        let name = match kinds {
            ("text", "text_delta") => "text",
            ("thinking", "thinking_delta") => "thinking",
            ("tool_use", "input_json_delta") => "partial_json",
            ("thinking", "signature_delta") | ("text", "citations_delta") => return,
            ("text" | "thinking" | "tool_use", _) => {
                problems.push(format!("a delta of another type than its block: {delta}"));
                return;
            }
            _ => return,
        };
        self.text += text(delta, name);
    }
}
