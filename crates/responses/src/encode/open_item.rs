//! The item that is being streamed, with its content so far.

use serde_json::Value;

use crate::request::ReasoningPart;
use crate::response::{OutputItem, OutputPart, OutputText};

#[derive(Debug)]
pub(super) struct OpenItem {
    pub(super) item: OutputItem,
    /// True if its last part is open too.
    pub(super) in_part: bool,
}

impl OpenItem {
    pub(super) fn parts(&self) -> usize {
        match &self.item {
            OutputItem::Message(message) => message.content.len(),
            OutputItem::Reasoning(reasoning) => reasoning.summary.len(),
            _ => 0,
        }
    }

    /// Returns true if a message part of that kind is open.
    pub(super) fn is_in_part(&self, kind: &str) -> bool {
        match &self.item {
            OutputItem::Message(message) if self.in_part => message
                .content
                .last()
                .is_some_and(|part| part.kind() == kind),
            _ => false,
        }
    }

    /// The output text that is open, if the last part is one.
    pub(super) fn output_text(&mut self) -> Option<&mut OutputText> {
        match &mut self.item {
            OutputItem::Message(message) => match message.content.last_mut()? {
                OutputPart::Text(part) => Some(part),
                _ => None,
            },
            _ => None,
        }
    }

    /// The text that the next delta is appended to.
    pub(super) fn text(&mut self) -> Option<&mut String> {
        match &mut self.item {
            OutputItem::Message(message) => match message.content.last_mut()? {
                OutputPart::Text(part) => Some(&mut part.text),
                OutputPart::Refusal(part) => Some(&mut part.refusal),
                OutputPart::Other(_) => None,
            },
            OutputItem::Reasoning(reasoning) => match reasoning.summary.last_mut()? {
                ReasoningPart::Summary(part) => Some(&mut part.text),
                _ => None,
            },
            OutputItem::FunctionCall(call) => Some(&mut call.arguments),
            OutputItem::Other(members) => match members.get_mut("input")? {
                Value::String(input) => Some(input),
                _ => None,
            },
        }
    }
}
