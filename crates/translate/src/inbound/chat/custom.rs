//! The custom tools of a Chat client as functions, and their calls in the form that the client knows
//! (<https://platform.openai.com/docs/guides/function-calling#custom-tools>).

use std::collections::HashSet;

use chat::{CustomTool, CustomToolCall, Encoder, Event, Request, Tool};
use serde_json::{Value, json};
use wire::{ApiError, Json};

use super::super::freeform::{self, INPUT, InputReader};

/// Returns the function that stands for a custom tool, and true if its input follows a grammar.
pub(super) fn function(tool: &CustomTool) -> Option<(engine::Tool, bool)> {
    let custom = members(&tool.custom);
    let grammar = &custom["format"]["grammar"];
    let grammar = grammar["syntax"]
        .as_str()
        .zip(grammar["definition"].as_str());
    let function = engine::Tool {
        name: custom["name"].as_str()?.to_owned(),
        description: custom["description"].as_str().map(str::to_owned),
        parameters: Some(freeform::parameters(grammar)),
        strict: Some(false),
    };
    Some((function, grammar.is_some()))
}

/// Returns the call of the function that stands for a custom tool.
pub(super) fn call(call: &CustomToolCall) -> Option<engine::ToolCall> {
    let custom = members(&call.custom);
    Some(engine::ToolCall {
        id: call.id.clone(),
        name: custom["name"].as_str()?.to_owned(),
        arguments: json!({ INPUT: custom["input"].as_str().unwrap_or_default() }).to_string(),
        seal: None,
    })
}

fn members(custom: &Json) -> Value {
    serde_json::from_str(custom.text()).unwrap_or_default()
}

/// An encoder of Chat Completions that knows the custom tools of the client.
#[derive(Debug)]
pub struct ToolEncoder {
    pub(super) inner: Encoder,
    custom: HashSet<String>,
    /// The input of the custom tool that is being called.
    open: Option<InputReader>,
}

impl ToolEncoder {
    pub(super) fn new(inner: Encoder, request: &Request) -> Self {
        let tools = request.tools.iter().flatten();
        let custom = tools.filter_map(|tool| match tool {
            Tool::Custom(tool) => Some(members(&tool.custom)["name"].as_str()?.to_owned()),
            _ => None,
        });
        Self {
            inner,
            custom: custom.collect(),
            open: None,
        }
    }

    /// Opens the stream.
    pub(crate) fn open(&mut self, out: &mut Vec<Event>) {
        self.inner.open(out);
    }

    /// Ends the stream with a failure. An open call is abandoned.
    pub(crate) fn fail(&mut self, error: &ApiError, out: &mut Vec<Event>) {
        self.open = None;
        self.inner.fail(error, out);
    }

    /// Starts a call of the function with this name.
    pub(super) fn call(&mut self, id: &str, name: &str, out: &mut Vec<Event>) {
        self.end_call(out);
        if self.custom.contains(name) {
            self.inner.custom_call(id, name, out);
            self.open = Some(InputReader::default());
        } else {
            self.inner.call(id, name, out);
        }
    }

    /// Adds to the arguments of the last call.
    pub(super) fn arguments(&mut self, text: &str, out: &mut Vec<Event>) {
        match &mut self.open {
            None => self.inner.arguments(text, out),
            Some(input) => {
                let text = input.push(text);
                self.inner.custom_input(&text, out);
            }
        }
    }

    /// Completes the call of a custom tool.
    pub(super) fn end_call(&mut self, out: &mut Vec<Event>) {
        if let Some(input) = self.open.take() {
            self.inner.custom_input(&input.finish(), out);
        }
    }
}
