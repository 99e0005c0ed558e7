//! Calls of custom tools, and items of other types. The stream grammar has no types for them.

use serde_json::{Value, json};
use wire::Object;

use super::Encoder;
use super::open_item::OpenItem;
use crate::event::Event;
use crate::response::OutputItem;
use crate::status::Status;

impl Encoder {
    /// Starts a call of a custom tool, whose input is free text, with further members
    /// (<https://platform.openai.com/docs/api-reference/responses-streaming/response/custom_tool_call_input/delta>).
    pub fn custom_call(&mut self, call_id: &str, name: &str, extra: Object, out: &mut Vec<Event>) {
        if !self.begin_call(out) {
            return;
        }
        let mut call = json!({
            "type": CUSTOM_CALL,
            "id": self.item_id("ctc"),
            "call_id": call_id,
            "name": name,
            "input": "",
        });
        if let Value::Object(members) = &mut call {
            members.extend(extra);
        }
        self.add(other(call), out);
    }

    /// Appends to the input of the last custom call. Has no effect once another item has started.
    pub fn custom_input(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.accepts(text) && self.is_in(CUSTOM_CALL) {
            self.append(text);
            out.push(self.place().custom_input_delta(text));
        }
    }

    /// Adds a complete item of another type, which gets an id with this prefix.
    pub fn item(&mut self, prefix: &str, mut item: Value, out: &mut Vec<Event>) {
        if self.begin_call(out) {
            item["id"] = self.item_id(prefix).into();
            self.add(other(item), out);
            self.close(Status::Completed, None, out);
        }
    }

    /// Ends the input of an open custom call.
    pub(super) fn close_input(&mut self, out: &mut Vec<Event>) {
        if self.is_in(CUSTOM_CALL) {
            let input = self.open.as_mut().and_then(OpenItem::text).cloned();
            out.push(self.place().custom_input_done(&input.unwrap_or_default()));
        }
    }
}

fn other(item: Value) -> OutputItem {
    match item {
        Value::Object(members) => OutputItem::Other(members),
        _ => OutputItem::Other(Object::new()),
    }
}

/// The type of the call of a custom tool.
const CUSTOM_CALL: &str = "custom_tool_call";
